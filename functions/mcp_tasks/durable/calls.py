"""Call other tools, each call a subtask: `task.call`, and `task.map` over a tool.

The tool's run writes what it calls into the journal and ends. The state machine starts the
subtasks, and waits for their ends (`mcp_tasks.workflows.subtasks`). How each has ended is written
into the journal by the function that ends it. Then the tool runs again, and finds it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from ..registry.asking import ToolError
from ..registry.durable_errors import SubtaskFailed
from ..registry.results import returned_value
from ..registry.tool import Tool
from ..tasks.subtask import MAX_SUBTASKS
from .maps import MAX_LANES
from .record import Failure, Record, State
from .run import Run
from .slot import Slot
from .suspension import StartSubtasks


@dataclass(frozen=True, slots=True)
class Called:
    """What the journal has of a call: the tool, and the arguments of each subtask."""

    tool: str
    arguments: list[dict[str, Any]]
    concurrency: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Called:
        """Read what `as_json` wrote."""
        return cls(value["tool"], value["arguments"], value["concurrency"])

    def as_json(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a tool that the calling tool has come to."""

    run: Run
    slot: Slot
    tool: Tool
    arguments: Sequence[dict[str, Any]]

    async def results(self, concurrency: int, tolerate: int) -> list[Any]:
        """What the tool returned for each of the arguments; the exception for one that failed.

        Raises the first failure when more than `tolerate` have failed: SubtaskFailed, or the
        tool's own ToolError. Raises ValueError for too many calls.
        """
        if len(self.arguments) > MAX_SUBTASKS:
            raise ValueError(f"a task has at most {MAX_SUBTASKS} subtasks")
        if not self.arguments:
            return []
        record = self.slot.record
        if record is None:
            self.run.go_forward()
            called = Called(self.tool.name, list(self.arguments), min(concurrency, MAX_LANES))
            record = self.run.journal.write(self.slot.new(State.STARTED, value=called.as_json()))
        if not record.ended:
            record = self._ended(record)
        if record.failure is not None:
            raise self._failure(record.failure)
        kept = self.run.journal.whole(self.run.journal.value(record))
        results = [self._result(each) for each in kept]
        failures = [each for each in results if isinstance(each, Exception)]
        if len(failures) > tolerate:
            raise failures[0]
        return results

    def _ended(self, record: Record) -> Record:
        """The record with all outcomes. Raises Suspended while there are subtasks to wait for."""
        self.run.go_forward()
        found = self.run.journal.items(self.slot.id)
        left = len(self.arguments) - len(found)
        if left:
            self.run.suspend(0, StartSubtasks(self.slot.id, left, self.tool))
        outcomes = [_outcome(found[number]) for number in range(len(self.arguments))]
        return self.run.journal.write(self.slot.new(State.DONE, value=outcomes, attempts=1))

    def _result(self, outcome: Mapping[str, Any]) -> Any:
        if "failure" in outcome:
            return self._failure(Failure(**outcome["failure"]))
        result = outcome["result"]
        if result.get("isError"):
            return ToolError(_text(result))
        return returned_value(result, self.tool.result)

    def _failure(self, failure: Failure) -> SubtaskFailed:
        return SubtaskFailed(self.tool.name, failure.name, failure.message)


def checked_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's arguments as JSON values, as a client would send them.

    Raises schema.InvalidArguments for arguments that the tool does not take.
    """
    given: dict[str, Any] = to_jsonable_python(dict(arguments), by_alias=True)
    tool.check_arguments(given)
    return given


def _outcome(record: Record) -> dict[str, Any]:
    """How a subtask has ended, as the call's record has it. A large result stays where it is."""
    if record.failure is not None:
        return {"failure": {"name": record.failure.name, "message": record.failure.message}}
    pointer = record.payload
    return {"result": record.value if pointer is None else pointer.as_json()}


def _text(result: Mapping[str, Any]) -> str:
    texts = [block["text"] for block in result.get("content", ()) if "text" in block]
    return "\n".join(texts)
