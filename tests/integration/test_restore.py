"""The walk of docs/restore.md on the emulator: rows are lost, restored and copied back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from local.deployment import LocalStack
from operations.restore_rows import ALL, MISSING, restore
from tests.integration.support.aws import executions
from tests.integration.support.client import Client, accept

COPY = "restored-tasks"
EXECUTION_SECONDS = 30


class Tables:
    """The tasks table, and what is restored of it."""

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name

    def restore(self) -> None:
        """Restore the table into another one, as DynamoDB does."""
        self.client.restore_table_to_point_in_time(
            SourceTableName=self.name, TargetTableName=COPY, UseLatestRestorableTime=True
        )
        self.client.get_waiter("table_exists").wait(TableName=COPY)

    def row(self, task_id: str) -> dict[str, Any] | None:
        """A task's row."""
        key = {"taskId": {"S": task_id}}
        found = self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True)
        row: dict[str, Any] | None = found.get("Item")
        return row

    def lose(self, task_id: str) -> None:
        """Delete a row, as an accident would."""
        self.client.delete_item(TableName=self.name, Key={"taskId": {"S": task_id}})


@pytest.fixture
def tables(stack: LocalStack, aws: Any) -> Iterator[Tables]:
    """The tables; the restored one is deleted in the end."""
    client = aws("dynamodb")
    yield Tables(client, stack.outputs["TasksTable"])
    client.delete_table(TableName=COPY)


def _await_end_of_execution(stack: LocalStack, stepfunctions: Any, task_id: str) -> str:
    deadline = time.monotonic() + EXECUTION_SECONDS
    while True:
        found = {e["name"]: e["status"] for e in executions(stack, stepfunctions, "linger")}
        if found[task_id] != "RUNNING":
            return str(found[task_id])
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def test_tasks_whose_rows_were_lost_are_there_again_and_end(
    client: Client, stack: LocalStack, aws: Any, tables: Tables
) -> None:
    """One had ended and one waits for its client. Two ran: their rows say `working` when they are
    back, and their executions say how they ended, one before its row was lost and one at its first
    report after that.
    """
    ended, asked = client.start("fill", size=10), client.start("ask_choice")
    result = client.end(ended)
    keys = client.until_asked(asked, "answer")
    # Their rows are copied before the first report: a task that has reported is believed to run
    # for as long as its tool may be silent.
    ran = client.start("linger", seconds=2, quiet=5)
    cut_off = client.start("linger", seconds=60, quiet=5)
    for task_id in (ran, cut_off):
        assert client.get(task_id)["status"] == "working"
    tables.restore()
    rows = {task_id: tables.row(task_id) for task_id in (ended, asked)}
    assert client.end(ran)["status"] == "completed"
    for task_id in (ended, asked, ran, cut_off):
        tables.lose(task_id)
        assert client.request("tasks/get", {"taskId": task_id}).error["code"] == -32602
    assert _await_end_of_execution(stack, aws("stepfunctions"), cut_off) == "FAILED"

    copied = restore(tables.client, COPY, tables.name, MISSING, time.time())
    assert copied.written >= 4
    assert {task_id: tables.row(task_id) for task_id in rows} == rows
    assert client.get(ended) == result
    client.update(asked, {keys["answer"]: accept(name="Ada", colour="blue", count=3)})
    assert client.end(asked)["status"] == "completed"
    assert client.end(ran)["status"] == "completed"
    assert client.end(cut_off)["status"] == "failed"


def test_a_damaged_row_is_replaced_when_told(client: Client, tables: Tables) -> None:
    task_id = client.start("fill", size=10)
    result = client.end(task_id)
    tables.restore()
    tables.client.update_item(
        TableName=tables.name,
        Key={"taskId": {"S": task_id}},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":s": {"S": "cancelled"}},
    )
    assert restore(tables.client, COPY, tables.name, MISSING, time.time()).present >= 1
    assert client.get(task_id)["status"] == "cancelled"
    restore(tables.client, COPY, tables.name, ALL, time.time())
    assert client.get(task_id) == result
