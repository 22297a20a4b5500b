"""The exceptions for tasks that ended without a result."""

from __future__ import annotations

from mcp import MCPError
from mcp_types import ErrorData


class TaskFailed(MCPError):
    """The task ended as `failed`.

    `code`, `message` and `data` are those of the JSON-RPC error with which the call would have been
    answered, had it not become a task.
    """

    def __init__(self, task_id: str, error: ErrorData) -> None:
        super().__init__(error.code, error.message, error.data)
        self.task_id = task_id


class TaskCancelled(Exception):
    """The task ended as `cancelled`."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task {task_id} was cancelled")
        self.task_id = task_id
