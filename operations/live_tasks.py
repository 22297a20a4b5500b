"""`make tasks [TASK=id]`: the tasks that have not ended, or one task.

    python -m operations.live_tasks [--task ID] [--tool NAME] [--stack NAME] [--profile aws|local]

It reads what is needed to say how a task goes on: no argument, answer or result. A task's
statusMessage, which its tool reported, is shown. Subtasks stand below their parents.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say
from mcp_tasks.aws.dynamodb_values import from_attribute
from mcp_tasks.durable.journal import journal_partition
from mcp_tasks.durable.journal_table import JournalTable
from mcp_tasks.durable.record import Record
from mcp_tasks.tasks.task import iso, now_ms
from mcp_tasks.workflows.executions import execution_arn

from .deployed_stack import (
    DeployedStack,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
)
from .live_rows import live_rows

READ: Final = (
    *("taskId", "tool", "status", "createdAt", "lastUpdatedAt", "expiresAtMs", "statusMessage"),
    *("principal", "execution", "stateMachineArn", "parent", "childTaskIds", "cancelRequested"),
    "error",
)
HEAD: Final = ("task", "tool", "status", "age", "changed", "message")
MESSAGE_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class Row:
    """What is read of a task."""

    values: Mapping[str, Any]

    @property
    def task_id(self) -> str:
        """The task's id."""
        return str(self.values["taskId"])

    @property
    def parent_id(self) -> str | None:
        """The id of the task whose subtask it is."""
        parent = self.values.get("parent")
        return str(parent["taskId"]) if parent else None

    def columns(self, depth: int, now: int) -> tuple[str, ...]:
        """The task as a line of the table."""
        values = self.values
        message = str(values.get("statusMessage") or "")
        shown = f"{message[: MESSAGE_CHARACTERS - 1]}…"
        return (
            "  " * depth + self.task_id,
            values["tool"],
            "to be cancelled" if values.get("cancelRequested") else values["status"],
            _since(values["createdAt"], now),
            _since(values["lastUpdatedAt"], now),
            message if len(message) <= MESSAGE_CHARACTERS else shown,
        )


def live(stack: DeployedStack, tool: str | None) -> list[Row]:
    """The tasks that have not ended, oldest first. It reads the whole table."""
    items = live_rows(stack.client("dynamodb"), stack.outputs["TasksTable"], **_projection())
    rows = [_row(item) for item in items]
    return sorted(
        (row for row in rows if tool in (None, row.values["tool"])),
        key=lambda row: (row.values["createdAt"], row.task_id),
    )


def one(stack: DeployedStack, task_id: str) -> Row:
    """A task, ended or not. Raises LookupError when there is none."""
    answer = stack.client("dynamodb").get_item(
        TableName=stack.outputs["TasksTable"], Key={"taskId": {"S": task_id}}, **_projection()
    )
    if "Item" not in answer:
        raise LookupError(f"there is no task {task_id}; its row is deleted after its ttl")
    return _row(answer["Item"])


def _projection() -> dict[str, Any]:
    """Let DynamoDB return these attributes only."""
    names = {f"#{name}": name for name in READ}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}


def _row(item: Mapping[str, Any]) -> Row:
    return Row({name: from_attribute(value) for name, value in item.items()})


def table(rows: Sequence[Row], now: int) -> list[str]:
    """The tasks as lines, subtasks below their parents, and their number by status."""
    children: dict[str | None, list[Row]] = {}
    ids = {row.task_id for row in rows}
    for row in rows:
        parent = row.parent_id if row.parent_id in ids else None
        children.setdefault(parent, []).append(row)

    def below(parent: str | None, depth: int) -> Iterator[tuple[str, ...]]:
        for row in children.get(parent, ()):
            yield row.columns(depth, now)
            yield from below(row.task_id, depth + 1)

    lines = [HEAD, *below(None, 0)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    counts = Counter(str(row.values["status"]) for row in rows)
    total = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return [
        *(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ),
        "",
        total or "no task runs",
    ]


def detail(row: Row, records: Sequence[Record]) -> list[str]:
    """One task: its row, and the operations of its journal."""
    values = row.values
    number = int(values.get("execution", 1))
    name = row.task_id if number == 1 else f"{row.task_id}-{number}"
    facts = {
        "task": row.task_id,
        "tool": values["tool"],
        "status": values["status"],
        "message": values.get("statusMessage"),
        "error": (values.get("error") or {}).get("code"),
        "principal": values["principal"],
        "created": iso(values["createdAt"]),
        "changed": iso(values["lastUpdatedAt"]),
        "expires": iso(values["expiresAtMs"]),
        "parent": row.parent_id,
        "subtasks": ", ".join(values.get("childTaskIds", ())),
        "execution": execution_arn(values["stateMachineArn"], name),
    }
    lines = [f"{name:<10} {value}" for name, value in facts.items() if value]
    operations = [
        f"  {record.id}  {record.operation}: {record.state}"
        + (f", attempt {record.attempts}" if record.attempts > 1 else "")
        + (f", until {iso(record.due_at)}" if record.due_at else "")
        for record in records
    ]
    return [*lines, *(["journal", *operations] if operations else [])]


def _since(ms: int, now: int) -> str:
    """How long ago, without fractions of a second: `1 day, 2:03:04`."""
    return str(timedelta(seconds=max(0, now - ms) // 1000))


def main() -> int:
    """Print the table, or one task. Returns 1 when it cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m operations.live_tasks")
    parser.add_argument("--task", help="one task's id")
    parser.add_argument("--tool", help="only the tasks of one tool")
    add_stack_options(parser)
    options = parser.parse_args()
    try:
        stack = DeployedStack(chosen_stack(options), clients_of(options.profile))
        if options.task is None:
            lines = table(live(stack, options.tool), now_ms())
        else:
            row = one(stack, options.task)
            journal = JournalTable(stack.client("dynamodb"), stack.outputs["JournalTable"])
            lines = detail(row, journal.read(journal_partition(row.values["tool"], row.task_id)))
        for line in lines:
            say(line)
    except (NoStack, LookupError, ClientError, BotoCoreError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
