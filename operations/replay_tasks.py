"""`make replay-task TASK=id`, `make replay-check`: run tools of this folder against journals.

    python -m operations.replay_tasks [--task ID] [--save FILE | --file FILE] [--stack NAME]

With a task's id, its tool runs on this machine against the recorded journal, under a debugger if
you like, without a side effect, and the command says where it leaves the record. `--save` keeps the
record in a file, which has the task's arguments, answers and results; `--file` reads one.

Without an id, this is done for every live task, and those are named that a deployment of this code
would break. `docs/durable-functions.md` describes both.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say
from local.environment import ROOT
from mcp_tasks.aws.dynamodb_values import from_attribute
from mcp_tasks.durable.journal import Journal
from mcp_tasks.durable.journal_table import JournalTable, item_of, record_of
from mcp_tasks.payloads.offloading import MAX_OBJECT_BYTES
from mcp_tasks.payloads.pointer import payload_prefix
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.executions import execution_arn
from mcp_tasks.workflows.replay import Replayed, replay

from .deployed_stack import (
    Clients,
    NoStack,
    NotDeployed,
    add_stack_options,
    chosen_stack,
    clients_of,
    outputs_of,
)
from .live_rows import live_rows


@dataclass(frozen=True, slots=True)
class Recorded:
    """A task's journal and arguments."""

    task_id: str
    tool: str
    arguments: Mapping[str, Any]
    journal: Journal


class Records:
    """The tasks and journals of a deployed stack."""

    def __init__(self, outputs: Mapping[str, str], clients: Clients) -> None:
        self._dynamodb, self._states = clients("dynamodb"), clients("stepfunctions")
        self._tasks = outputs["TasksTable"]
        self._journals = JournalTable(self._dynamodb, outputs["JournalTable"])
        self._payloads = PayloadStore(lambda: clients("s3"), outputs["PayloadsBucket"])

    def find(self, task_id: str) -> Recorded:
        """A task. Raises LookupError when there is none."""
        item = self._dynamodb.get_item(TableName=self._tasks, Key={"taskId": {"S": task_id}})
        if "Item" not in item:
            raise LookupError(f"there is no task {task_id}")
        return self._recorded(item["Item"])

    def live(self) -> Iterator[Recorded]:
        """Every task that has not ended."""
        yield from map(self._recorded, live_rows(self._dynamodb, self._tasks, ConsistentRead=True))

    def _recorded(self, item: Mapping[str, Any]) -> Recorded:
        row = {name: from_attribute(value) for name, value in item.items()}
        task_id, tool = row["taskId"], row["tool"]
        text = row.get("input")
        if text is None:  # the task has ended
            arn = execution_arn(row["stateMachineArn"], task_id)
            text = self._states.describe_execution(executionArn=arn)["input"]
        arguments = self._payloads.resolve(
            json.loads(text)["arguments"], payload_prefix(tool, task_id), MAX_OBJECT_BYTES
        )
        journal = Journal(self._journals, self._payloads, tool, task_id, 0, now_ms)
        return Recorded(task_id, tool, arguments, journal)


def save(recorded: Recorded, file: Path) -> None:
    """Keep a task's arguments and journal in a file."""
    recorded.journal.read()
    items = []
    for record in recorded.journal.records.values():
        items.append(item_of("", recorded.journal.inline(record), 0))
    kept = {"task": recorded.task_id, "tool": recorded.tool, "arguments": recorded.arguments}
    file.write_text(json.dumps({**kept, "journal": items}, indent=1), encoding="utf-8")


def load(file: Path) -> Recorded:
    """A task that `save` has kept."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    unused: Any = None
    journal = Journal(unused, unused, kept["tool"], kept["task"], 0, now_ms)
    journal.records = {record.id: record for record in map(record_of, kept["journal"])}
    return Recorded(kept["task"], kept["tool"], kept["arguments"], journal)


def replayed(recorded: Recorded, catalogue: Catalogue) -> Replayed | None:
    """What the tool of this folder does; None for a tool that has no journal.

    Raises LookupError for a tool that this folder does not have.
    """
    entry = catalogue.tools.get(recorded.tool)
    if entry is None:
        raise LookupError(f"this folder has no tool {recorded.tool}")
    tool = entry.load()
    if not isinstance(tool, FunctionTool) or tool.context_parameter is None:
        return None
    recorded.journal.ttl_ms = tool.ttl // timedelta(milliseconds=1)
    return replay(tool, recorded.journal, recorded.arguments)


def check(records: Records, catalogue: Catalogue) -> int:
    """Replay every live task; returns how many a deployment would break."""
    seen, broken = 0, 0
    for recorded in records.live():
        try:
            result = replayed(recorded, catalogue)
        except (LookupError, ValueError) as error:
            result = Replayed(0, "", str(error))
        seen += 1
        if result is not None and result.difference is not None:
            broken += 1
            say(f"{recorded.task_id} ({recorded.tool}): {result.difference}")
    say(f"{seen} live tasks, {broken} of which this code would break")
    return broken


def main() -> int:
    """Replay one task, or check all. Returns 1 when a task would break, or could not be read."""
    parser = argparse.ArgumentParser(prog="python -m operations.replay_tasks")
    parser.add_argument("--task", help="a task's id; without it, all live tasks are checked")
    parser.add_argument("--save", type=Path, help="keep the task's record in a file")
    parser.add_argument("--file", type=Path, help="a record that was kept, instead of a task")
    parser.add_argument("--tools", type=Path, default=ROOT / "functions" / "tools")
    add_stack_options(parser)
    options = parser.parse_args()
    catalogue = Catalogue.discover(options.tools)
    try:
        if options.file is not None:
            return _one(load(options.file), catalogue)
        clients = clients_of(options.profile)
        stack = chosen_stack(options)
        records = Records(outputs_of(clients("cloudformation"), stack), clients)
        if options.task is None:
            return 1 if check(records, catalogue) else 0
        recorded = records.find(options.task)
        if options.save is not None:
            save(recorded, options.save)
        return _one(recorded, catalogue)
    except NotDeployed as error:
        if options.task is not None:
            return fail(error)
        say(f"{error}: there is no task that a deployment could break")
        return 0
    except (NoStack, OSError, LookupError, ValueError, ClientError, BotoCoreError) as error:
        return fail(error)


def _one(recorded: Recorded, catalogue: Catalogue) -> int:
    result = replayed(recorded, catalogue)
    if result is None:
        return fail(f"{recorded.tool} has no durable operations")
    if result.error is not None:
        traceback.print_exception(result.error)
    say(f"{recorded.tool} came to {result.operations} recorded operations, and {result.end}")
    if result.difference is None:
        return 0
    say(result.difference)
    return 1


if __name__ == "__main__":
    sys.exit(main())
