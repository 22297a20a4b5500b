"""What a stack and the ledger hold, read behind the server's back."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.state_machine_definition import UNKNOWN_OUTCOME_ERRORS
from local.deployment import LocalStack
from mcp_tasks.durable.journal_table import record_of
from mcp_tasks.durable.record import Record
from mcp_tasks.workflows.execution_names import UNDO, task_of_execution
from mcp_tasks.workflows.execution_outcome import TIMEOUTS
from tests.campaigns.chaos.tools._ledger import DURABLE, EFFECTS, RUNS
from tests.integration.support.aws import executions, listed, log_groups, log_lines, rows

A_MINUTE_MS: Final = 61_000
SECRET: Final = frozenset({"token"})
"""What is left out when a row is shown."""


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution; its name begins with its task's id."""

    arn: str
    name: str
    status: str

    @property
    def task_id(self) -> str:
        """Of the task that it runs, goes on with, or undoes."""
        return task_of_execution(self.name)[0]

    @property
    def part(self) -> str:
        """Nothing for a task's first execution, `2` for its successor, `undo` for what undoes."""
        return task_of_execution(self.name)[1]


@dataclass(frozen=True, slots=True)
class Noted:
    """A line of the ledger, of a tool without durable operations."""

    task_id: str
    mark: int
    step: str
    item: str
    value: Any


@dataclass(frozen=True, slots=True)
class DurablyNoted:
    """A line of the ledger, of a tool with durable operations."""

    task_id: str
    mark: int
    what: str
    """`did` or `undid`, in a step; `tried`, in one that may fail; `sleeps`, `woke`, `looked`."""
    key: str
    value: Any
    token: str
    """Of the step."""
    began: float
    """When the run began in which it happened: seconds since the epoch."""
    at: float


class Ledger:
    """The folder that the tools write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / EFFECTS).mkdir(parents=True)

    def runs(self) -> list[Noted]:
        """Every time that a step's body ran."""
        file = self.folder / RUNS
        lines = file.read_text().splitlines() if file.exists() else []
        return [Noted(*json.loads(line)) for line in lines]

    def effects(self) -> list[Noted]:
        """What was changed."""
        files = [file for file in (self.folder / EFFECTS).iterdir() if file.name[0] != "."]
        return [Noted(*json.loads(file.read_text())) for file in files]

    def durable(self) -> dict[str, list[DurablyNoted]]:
        """What the durable tools noted, by task, in its order."""
        files = self.folder.glob(f"{DURABLE} *")
        lines = {file.name.partition(" ")[2]: file.read_text().splitlines() for file in files}
        return {
            task_id: [DurablyNoted(*json.loads(line)) for line in of_task]
            for task_id, of_task in lines.items()
        }


class Evidence:
    """Rows and executions of a stack."""

    def __init__(self, stack: LocalStack, aws: Any) -> None:
        self._table = stack.outputs["TasksTable"]
        self._journals = stack.outputs["JournalTable"]
        self._stack = stack
        self._dynamodb, self._stepfunctions = aws("dynamodb"), aws("stepfunctions")
        self._logs = aws("logs")

    def rows(self) -> dict[str, dict[str, Any]]:
        """All rows, in DynamoDB's notation, by task."""
        return rows(self._stack, self._dynamodb)

    def hurry(self, callers: str) -> None:
        """As if a minute went by: let all tasks be due that ever will be, and let whoever claimed
        an idempotency key have had the time to make its task. `callers` is the table of the keys.
        """
        now = int(time.time() * 1000)
        for task_id in self.rows():
            self._set(
                self._table,
                {"taskId": {"S": task_id}},
                "reconcileAt",
                {"reconcileAt": now, "silenceMs": 0},
            )
        for item in listed(self._dynamodb, "scan", "Items", TableName=callers):
            self._set(callers, {"pk": item["pk"]}, "createdAt", {"createdAt": now - A_MINUTE_MS})

    def _set(self, table: str, key: dict[str, Any], later: str, values: dict[str, int]) -> None:
        """Set some numbers, if one of them would be less than it is."""
        with suppress(self._dynamodb.exceptions.ConditionalCheckFailedException):
            self._dynamodb.update_item(
                TableName=table,
                Key=key,
                UpdateExpression="SET " + ", ".join(f"{name} = :{name}" for name in values),
                ConditionExpression=f"{later} > :{later}",
                ExpressionAttributeValues={
                    f":{name}": {"N": str(value)} for name, value in values.items()
                },
            )

    def executions(self) -> dict[str, list[Execution]]:
        """All executions, by task: each has a first one, and may have successors, and one that
        undoes what it did.
        """
        found = defaultdict(list)
        for each in executions(self._stack, self._stepfunctions):
            execution = Execution(each["executionArn"], each["name"], each["status"])
            found[execution.task_id].append(execution)
        return dict(found)

    def journals(self) -> dict[str, dict[str, tuple[Record, tuple[str, str]]]]:
        """The records of each task's journal, by their places; and their keys in the table.

        A place is what a step's token is made of: `000003`, or `000004#07#000123` for an item.
        """
        found: dict[str, dict[str, tuple[Record, tuple[str, str]]]] = defaultdict(dict)
        about = {"TableName": self._journals, "ConsistentRead": True}
        for item in listed(self._dynamodb, "scan", "Items", **about):
            record, partition = record_of(item), item["pk"]["S"]
            _, task_id, *within = partition.split("#")
            place = "#".join([*within, record.id])
            found[task_id][place] = (record, (partition, record.id))
        return dict(found)

    def mark(self, execution: Execution) -> int | None:
        """The number of the call that an execution runs for."""
        described = self._stepfunctions.describe_execution(executionArn=execution.arn)
        given = json.loads(described["input"])
        mark: int | None = given.get("arguments", given).get("mark")
        return mark

    def killed(self, executions: Sequence[Execution]) -> bool:
        """Whether what undoes has failed because its function was killed, or took too long."""
        undoing = (each.arn for each in executions if each.part == UNDO and each.status == "FAILED")
        ends = (self._stepfunctions.describe_execution(executionArn=arn) for arn in undoing)
        return any(end.get("error") in (*UNKNOWN_OUTCOME_ERRORS, *TIMEOUTS) for end in ends)

    def answered(self, executions: Sequence[Execution]) -> int:
        """How often a state of these executions got what it waited for by a token."""
        return sum(map(self._answered, executions))

    def _answered(self, execution: Execution) -> int:
        about = {"executionArn": execution.arn}
        ends = (
            event.get("taskSucceededEventDetails", {}).get("resource", "")
            for event in listed(self._stepfunctions, "get_execution_history", "events", **about)
        )
        return sum(end.endswith(".waitForTaskToken") for end in ends)

    def repairs(self) -> Counter[str]:
        """What was mended of tasks, and by which function, as their logs tell."""
        counts: Counter[str] = Counter()
        for group in log_groups(self._logs):
            if self._stack.name in group:
                counts += self._repairs_in(group)
        return counts

    def _repairs_in(self, log_group: str) -> Counter[str]:
        lines = (
            line
            for message in log_lines(self._logs, log_group, filterPattern="repaired")
            for line in message.splitlines()
            if line.startswith("{") and '"repaired"' in line
        )
        mended = (json.loads(line) for line in lines)
        return Counter(f"{each['found']}, by {each['service']}" for each in mended)

    def story(self, task_id: str) -> str:
        """A task's row and the end of its execution's history, to be read by whoever looks."""
        lines = [f"row: {_shown(self.rows().get(task_id))}"]
        for execution in self.executions().get(task_id, []):
            lines.append(f"execution {execution.part}: {execution.status}")
            history = self._stepfunctions.get_execution_history(
                executionArn=execution.arn, reverseOrder=True, maxResults=12
            )
            for event in reversed(history["events"]):
                details = {k: v for k, v in event.items() if k.endswith("Details")}
                at = event["timestamp"].timestamp()
                lines.append(f"  {at:.2f} {event['type']} {str(details)[:160]}")
        for place, (record, _) in sorted(self.journals().get(task_id, {}).items()):
            lines.append(f"  {place}: {record}"[:300])
        return "\n".join(lines)


def running(executions: Mapping[str, list[Execution]]) -> list[Execution]:
    """Those that have not ended."""
    return [each for all_of in executions.values() for each in all_of if each.status == "RUNNING"]


def _shown(value: Any) -> Any:
    """A row without what nobody should see."""
    if isinstance(value, dict):
        return {name: "..." if name in SECRET else _shown(member) for name, member in value.items()}
    return value[:200] if isinstance(value, str) else value
