"""Why a read or a write of the tasks table did not happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .task import Task


class UnknownTask(LookupError):
    """There is no such task, it has expired, or it is another principal's: callers cannot tell."""


class TaskEnded(Exception):
    """The task is terminal, so nothing was written; `task` is the row as it was found."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.task_id)
        self.task = task


class Conflict(Exception):
    """Another write changed what this one had read; `task` is the row as it was found."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.task_id)
        self.task = task


class ClientCannotAnswer(Exception):
    """The client that made the task did not declare that it can answer such questions."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.task_id)
        self.task = task


class Busy(Exception):
    """DynamoDB is throttling, or other requests were faster each time; the call may be repeated."""
