"""One task, as the table keeps it. Times are integer milliseconds since the epoch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..payloads.pointer import PayloadPointer
from .questions import Ask, Kind, Question
from .reconcile_schedule import (
    FIRST_RECONCILE_MS,
    STOP_AGAIN_MS,
    UNKNOWN_SILENCE_MS,
    next_reconcile_at,
)
from .state import Status
from .subtask import Parent, Relatives

ANYONE = "anonymous"
"""The principal of every caller of a deployment without authentication."""


def now_ms() -> int:
    """Milliseconds since the epoch; handlers pass them on, so that tests can set the time."""
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
    """The execution's input, byte for byte, until the task is terminal."""
    status_message: str | None = None
    asks: dict[str, Ask] = field(default_factory=dict)
    input_revision: int = 0
    revision: int = 1
    """Counts the changes that clients can see. Subscriptions order a task's changes by it."""
    tool_error: str | None = None
    """A failing step's message for the caller; kept until the execution has ended."""
    result: dict[str, Any] | None = None
    result_payload: PayloadPointer | None = None
    """Where the result is, when it is too large for the row."""
    error: dict[str, Any] | None = None
    reconcile_at: int | None = None
    """When to reconcile the task with its execution; None when both have ended."""
    silence_ms: int = UNKNOWN_SILENCE_MS
    """How long the row may go without a write before the task is reconciled: a step's timeout, and
    a margin."""
    sequential: bool = False
    """Whether the tool's steps run one after the other, and none while the task waits for an
    answer. Then a caller's quota need not count a task that ended while it waited."""
    scopes: tuple[str, ...] = ()
    """The scopes that the tool needed when the task was created."""
    execution: int = 1
    """Which of the task's executions runs: a long one goes on in a successor."""
    undo: bool = False
    """Whether anything that the task did is to be undone when it is cancelled or fails."""
    parent: Parent | None = None
    """The task whose subtask this is."""
    subtask_ids: tuple[str, ...] = ()
    """Its subtasks, in the order in which their results belong (`childTaskIds`)."""
    cancel_requested: bool = False
    """Whether it is to be cancelled once its subtasks have ended."""
    client_context: Mapping[str, Any] = field(default_factory=dict)
    """What the server keeps of the client that created the task. Only `server` interprets it."""

    @property
    def expires_at(self) -> int:
        """When the task ceases to exist; DynamoDB deletes its row hours or days later."""
        return self.created_at + self.ttl_ms

    @property
    def relatives(self) -> Relatives:
        """What counts when the task ends, once its subtasks have."""
        return Relatives(len(self.subtask_ids), self.parent is not None)

    @property
    def begun(self) -> bool:
        """Whether its execution may have been started. A subtask waits for its turn."""
        return self.parent is None or bool(self.parent.tokens)

    def is_same_creation(self, task: Task) -> bool:
        """Whether a row is what an earlier attempt to write `task` has written, and not another
        call's, which has the same id where clients choose it."""
        return (self.created_at, self.input, self.client_context) == (
            task.created_at,
            task.input,
            task.client_context,
        )

    def expired(self, now: int) -> bool:
        """Whether the task's time to live has passed."""
        return now >= self.expires_at

    def time_to_reconcile(self, now: int) -> bool:
        """Whether the task's `reconcile_at` has passed."""
        if self.reconcile_at is not None:
            return now >= self.reconcile_at
        if not self.begun:
            return False  # its parent sees to it
        # A row of version 3 has no such time. A terminal one need not be reconciled.
        return not self.status.terminal and now >= self.created_at + FIRST_RECONCILE_MS

    def needs_reconciling(self, now: int) -> bool:
        """Whether to ask Step Functions for the execution now.

        A task whose row was written a moment ago runs. A row that was not written since the task
        was created, or an answer that was not delivered, may mean that a function died.
        """
        if not self.time_to_reconcile(now):
            return False
        if self.status.terminal or self.expired(now) or self.cancel_requested:
            return True
        if self.revision == 1 or self.undelivered:
            return True
        return now >= self.last_updated_at + self.silence_ms

    def next_reconcile_at(self, now: int) -> int:
        """When to reconcile the task again that is reconciled now."""
        if self.status.terminal:
            return now + STOP_AGAIN_MS
        return next_reconcile_at(self.created_at, self.expires_at, now)

    @property
    def undelivered(self) -> list[Ask]:
        """The answered asks that are not marked as delivered to their state."""
        return [ask for ask in self.asks.values() if not ask.outstanding]

    @property
    def outstanding(self) -> dict[str, Question]:
        """All questions that wait for the client, by key."""
        return {
            key: question for ask in self.asks.values() for key, question in ask.outstanding.items()
        }
