"""What an operation costs in calls to DynamoDB: the table of docs/durable-functions.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from mcp_tasks import TaskContext, tool
from mcp_tasks.durable.journal_table import JournalTable
from mcp_tasks.durable.record import Record
from mcp_tasks.testing import LocalTask, start_task
from tests.unit.support.aws import JOURNAL, Calls, create_journal, real

Body = Callable[[TaskContext], Any]


def one() -> int:
    return 1


def double(number: int) -> int:
    return 2 * number


def forget(number: int) -> None:
    pass


def never(seen: list[int]) -> bool:
    seen.append(1)
    return len(seen) > 2


class Kept(JournalTable):
    """Where the outcomes of subtasks are written by another function, which is not counted."""

    def keep(self, partition: str, record: Record) -> None:
        """Write an outcome."""
        JournalTable(real("dynamodb"), JOURNAL).write(partition, record, None, 2_000_000_000)


@tool(task="required")
def called(number: int) -> int:
    """A tool that is called."""
    return number


@pytest.fixture
def cost(aws: Calls) -> Callable[[Body], tuple[Counter[str], LocalTask]]:
    """The calls of a tool, and its task."""
    table: Any = Kept(aws.client("dynamodb"), create_journal())

    def run(body: Body) -> tuple[Counter[str], LocalTask]:
        @tool(task="required")
        def paid(task: TaskContext) -> str:
            """A tool."""
            return str(body(task))

        aws.forget()
        task = start_task(paid, journal_table=table)
        assert task.status == "completed", task.error
        return Counter(aws.operations), task

    return run


Cost = Callable[[Body], tuple[Counter[str], LocalTask]]
OPENED = Counter({"query": 1, "put_item": 1})


def test_a_tool_without_durable_operations_costs_nothing(cost: Cost) -> None:
    calls, _ = cost(lambda task: task.report("working"))
    assert calls == Counter()


@pytest.mark.parametrize(
    ("body", "writes"),
    [
        (lambda task: task.step(one), 1),
        (lambda task: [task.step(one) for _ in range(50)], 50),
        (lambda task: task.step(double, 1, undo=forget), 2),
        (lambda task: task.now(), 1),
        (lambda task: task.version("change"), 1),
        (lambda task: (task.random(), task.uuid()), 0),
    ],
    ids=["step", "50 steps", "undo", "now", "version", "random"],
)
def test_an_operation_costs_its_writes(cost: Cost, body: Body, writes: int) -> None:
    calls, task = cost(body)
    assert calls == OPENED + Counter({"put_item": writes})
    assert task.runs == 1


def test_a_sleep_costs_a_write_and_a_run(cost: Cost) -> None:
    calls, task = cost(lambda task: task.sleep(timedelta(days=0.5)))
    assert calls == OPENED + Counter({"put_item": 1, "query": 1})
    assert task.runs == 2


def test_a_wait_costs_two_writes_and_a_run_for_each_check(cost: Cost) -> None:
    check = partial(never, [])
    calls, task = cost(
        lambda task: task.wait_for(check, every=timedelta(minutes=1), until=timedelta(hours=1))
    )
    assert calls == OPENED + Counter({"put_item": 2, "query": 2})
    assert task.runs == 3


def test_a_map_costs_a_write_for_each_item(cost: Cost) -> None:
    calls, task = cost(lambda task: task.map(double, range(20), concurrency=4))
    around = Counter({"put_item": 2, "query": 1 + 2})  # the run that follows, and the items
    lanes = Counter({"query": 4 * 2})
    assert calls == OPENED + around + lanes + Counter({"put_item": 20})
    assert task.runs == 1 + 4 + 1


@pytest.mark.parametrize("count", [1, 20])
def test_subtasks_cost_two_writes_and_a_run_however_many(cost: Cost, count: int) -> None:
    """And what `workflows/test_subtasks.py` counts for each."""
    calls, task = cost(lambda task: task.map(called, [{"number": n} for n in range(count)]))
    assert len(task.subtasks) == count
    of_the_function_that_starts_them = Counter({"query": 2})
    calls -= of_the_function_that_starts_them
    assert calls == OPENED + Counter({"put_item": 2, "query": 3})
    assert task.runs == 2


def test_what_is_undone_costs_two_writes_for_each_step(cost: Cost, aws: Calls) -> None:
    _, task = cost(lambda task: task.step(double, 1, undo=forget))
    aws.forget()
    task.status, task.to_undo = "working", True
    task.cancel()
    assert Counter(aws.operations) == Counter({"query": 1, "put_item": 2})
