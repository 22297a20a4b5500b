"""One task, as the table keeps it. Times are integer milliseconds since the epoch."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ..payloads.pointer import PayloadPointer
from . import reconcile_schedule as due
from .questions import Ask, Kind, Question
from .state import Status

ANYONE = "anonymous"
"""The principal of every caller of a deployment without authentication."""

MAX_POLL_INTERVAL_MS: Final = 60_000
"""How slow polling may get by the age of a task; a tool that wants it slower says so itself."""


def now_ms() -> int:
    """The clock; every function that needs the time takes it as an argument."""
    return time.time_ns() // 1_000_000


def iso(ms: int) -> str:
    """ISO 8601 in UTC with milliseconds, as `createdAt` and `lastUpdatedAt` are written."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass(frozen=True, slots=True)
class Task:
    """A row of the tasks table."""

    task_id: str
    tool: str
    principal: str
    status: Status
    created_at: int
    last_updated_at: int
    ttl_ms: int
    poll_interval_ms: int
    """What the tool suggests for a new task."""
    state_machine_arn: str
    accepts: frozenset[Kind]
    """What the client that made the task declared that it can be asked for."""
    input: str | None = None
    """The execution's input, byte for byte, as long as the task runs."""
    status_message: str | None = None
    asks: dict[str, Ask] = field(default_factory=dict)
    input_revision: int = 0
    revision: int = 1
    """Counts the states that clients can see: what follows a task puts them in order by it."""
    tool_error: str | None = None
    """What a step said to the caller when it failed; kept until the execution has ended."""
    result: dict[str, Any] | None = None
    result_payload: PayloadPointer | None = None
    """Where the result is, when it is too large for the row."""
    error: dict[str, Any] | None = None
    reconcile_at: int | None = None
    """When to look whether its execution is as the row says; None when it is known to be over."""
    silence_ms: int = due.UNKNOWN_SILENCE_MS
    """How long nothing may be heard of the execution before it is asked after."""

    @property
    def expires_at(self) -> int:
        """When the task ceases to exist; DynamoDB deletes it later, readers must not wait."""
        return self.created_at + self.ttl_ms

    def expired(self, now: int) -> bool:
        """Whether the task's time to live has passed."""
        return now >= self.expires_at

    def due(self, now: int) -> bool:
        """Whether somebody has to look at the task."""
        if self.reconcile_at is not None:
            return now >= self.reconcile_at
        # A row of version 3 has no such time. One that is over need not be looked at.
        return not self.status.terminal and now >= self.created_at + due.FIRST_MS

    def overdue(self, now: int) -> bool:
        """Whether it is time to ask how the execution is.

        A task that has just been heard of runs; but that nothing was heard of it since it was
        created, or that an answer waits to be passed on, may mean that a function died.
        """
        if not self.due(now):
            return False
        if self.status.terminal or self.expired(now) or self.revision == 1 or self.undelivered:
            return True
        return now >= self.last_updated_at + self.silence_ms

    def next_look(self, now: int) -> int:
        """When it is time again, after a look at it now."""
        return due.next_look(self.created_at, self.expires_at, now)

    @property
    def undelivered(self) -> list[Ask]:
        """What was answered and, for all that the row knows, not passed on."""
        return [ask for ask in self.asks.values() if not ask.outstanding]

    def poll_after(self, now: int) -> int:
        """Milliseconds until the next poll is worth its price (tasks.md, "Task Polling").

        A tenth of the task's age, or of how long it has been waiting for an answer, between what
        its tool suggests and a minute: a task of hours is not polled every second, and one that has
        just asked is as quick as new.
        """
        if self.status.terminal:
            return self.poll_interval_ms
        asked = self.status is Status.INPUT_REQUIRED
        age = max(0, now - (self.last_updated_at if asked else self.created_at))
        return max(self.poll_interval_ms, min(age // 10, MAX_POLL_INTERVAL_MS))

    @property
    def outstanding(self) -> dict[str, Question]:
        """All questions that wait for the client, by key."""
        return {
            key: question for ask in self.asks.values() for key, question in ask.outstanding.items()
        }
