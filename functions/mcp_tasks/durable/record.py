"""What the journal keeps of a tool's operations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..payloads.pointer import PayloadPointer


class Kind(StrEnum):
    """The operations of a TaskContext that the journal knows."""

    STEP = "step"
    SLEEP = "sleep"
    WAIT_FOR = "wait_for"
    MAP = "map"
    ITEM = "item"
    """One item of a map."""
    CALL = "call"
    """Subtasks that the task starts."""
    SUBTASK = "subtask"
    """One of them: how it ended."""
    ASK = "ask"
    NOW = "now"
    VERSION = "version"
    ON_CANCEL = "on_cancel"
    UNDO = "undo"
    """What undoes a step."""
    RUN = "run"
    """The tool itself: its first durable operation, and how it failed."""


class State(StrEnum):
    """How far an operation is."""

    STARTED = "started"
    """It has begun; nobody knows how far it is."""
    WAITING = "waiting"
    """It goes on at `due_at`: a sleep, or a step before its next attempt."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Operation:
    """What tells one operation from another: a tool that runs again has to come to the same."""

    kind: Kind
    name: str
    """Of the function that it runs."""
    key: str | None = None
    """The author's own name for it."""
    arguments: str = ""
    """A hash of what it was called with."""

    def __str__(self) -> str:
        """As an error names it. The arguments are not shown; their hash says nothing."""
        return f"{self.kind} {self.name}" + (f" ({self.key})" if self.key else "")


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that an operation has ended with."""

    name: str
    message: str
    reference: str | None = None
    """What finds the exception in the log."""


@dataclass(frozen=True, slots=True)
class Record:
    """One item of the journal."""

    id: str
    """Where the tool came to the operation: `000003` for the third."""
    operation: Operation
    state: State
    value: Any = None
    """What the operation returned, as JSON; a large one is in `payload`."""
    payload: PayloadPointer | None = None
    failure: Failure | None = None
    attempts: int = 0
    due_at: int | None = None
    """In milliseconds since the epoch."""
    undo: str | None = None
    """The name of the function that undoes the step."""
    written_at: int = 0
    """In milliseconds since the epoch."""

    @property
    def ended(self) -> bool:
        """Whether the operation has its result, or has failed for good."""
        return self.state in (State.DONE, State.FAILED)
