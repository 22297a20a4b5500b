"""Tasks, as the specification's schema has them ("Tasks")."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from mcp_types import CallToolResult, ErrorData, InputRequests, Result, ResultType
from pydantic import Field, RootModel, TypeAdapter

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The extension's identifier, which client and server declare in their capabilities."""

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]


class Task(Result):
    """The fields that a task has in every status. Times are ISO 8601."""

    task_id: str
    status: TaskStatus
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    """How long the server keeps the task after its creation; None means without a limit."""
    poll_interval_ms: int | None = None
    """How long the server asks clients to wait between two polls."""
    parent_task_id: str | None = None
    """The task that this one is a subtask of (SEP-2268, "Subtasks")."""
    child_task_ids: list[str] = []
    """The task's subtasks, in their order. Only their tasks say how they are."""

    @property
    def ended(self) -> bool:
        """Whether the task never changes again."""
        return self.status in ("completed", "failed", "cancelled")


class CreateTaskResult(Task):
    """The result of a `tools/call` request that became a task ("Task Creation")."""

    result_type: Literal["task"]


class WorkingTask(Task):
    """The task runs."""

    status: Literal["working"]
    result_type: ResultType = "complete"


class InputRequiredTask(Task):
    """The task waits for answers to its questions."""

    status: Literal["input_required"]
    result_type: ResultType = "complete"
    input_requests: InputRequests
    """All open questions by their keys. A key is used once in a task's life."""


class CompletedTask(Task):
    """The tool has returned a result, which may be the tool's own error (`is_error`)."""

    status: Literal["completed"]
    result_type: ResultType = "complete"
    result: CallToolResult


class FailedTask(Task):
    """The call failed with a JSON-RPC error."""

    status: Literal["failed"]
    result_type: ResultType = "complete"
    error: ErrorData


class CancelledTask(Task):
    """The task was cancelled before it had a result."""

    status: Literal["cancelled"]
    result_type: ResultType = "complete"


DetailedTask: TypeAlias = (
    WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask
)
"""The result of `tasks/get` ("Task Polling")."""

DETAILED_TASK: Final[TypeAdapter[DetailedTask]] = TypeAdapter(
    Annotated[DetailedTask, Field(discriminator="status")]
)


class TaskNotificationParams(RootModel[DetailedTask]):
    """The params of `notifications/tasks`: the same task that `tasks/get` would return."""
