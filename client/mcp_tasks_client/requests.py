"""The requests of the tasks extension, and one function to send each of them."""

from __future__ import annotations

from typing import Any, Literal

from mcp.client import ClientSession
from mcp_types import CallToolResult, EmptyResult, InputResponses, Request, RequestParams

from .models import DETAILED_TASK, CreateTaskResult, DetailedTask


class TaskParams(RequestParams):
    """The params of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """The params of `tasks/update`: answers by the keys of their questions."""

    input_responses: InputResponses


class GetTaskRequest(Request[TaskParams, Literal["tasks/get"]]):
    """`tasks/get` ("Task Polling")."""

    method: Literal["tasks/get"] = "tasks/get"
    # The SDK sends the value of this parameter as the Mcp-Name header ("Routing Headers").
    name_param = "taskId"


class UpdateTaskRequest(Request[UpdateTaskParams, Literal["tasks/update"]]):
    """`tasks/update` ("Task Update Requests")."""

    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class CancelTaskRequest(Request[TaskParams, Literal["tasks/cancel"]]):
    """`tasks/cancel` ("Task Cancellation")."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class SubscriptionsListenParams(RequestParams):
    """The params of `subscriptions/listen`; for tasks, `notifications` is `{"taskIds": [...]}`."""

    notifications: dict[str, Any]


class SubscriptionsListenRequest(
    Request[SubscriptionsListenParams, Literal["subscriptions/listen"]]
):
    """`subscriptions/listen` ("Task Status Notifications"). Its response ends the subscription."""

    method: Literal["subscriptions/listen"] = "subscriptions/listen"


async def start_tool(
    session: ClientSession, name: str, arguments: dict[str, Any] | None = None
) -> CreateTaskResult | CallToolResult:
    """Call a tool. Returns the task without waiting for its end, if the call became a task.

    The server alone decides which calls become tasks ("Capability Negotiation"): the caller has to
    handle both results.
    """
    result = await session.call_tool(name, arguments, allow_claimed=True)
    if not isinstance(result, CreateTaskResult | CallToolResult):
        raise TypeError(f"another extension claimed the result: {type(result).__name__}")
    return result


async def get_task(
    session: ClientSession, task_id: str, read_timeout_seconds: float | None = None
) -> DetailedTask:
    """Read a task's current state.

    Raises MCPError with the code -32602 when the task is unknown or has expired.
    """
    params = TaskParams(task_id=task_id)
    return await session.send_request(
        GetTaskRequest(params=params), DETAILED_TASK, read_timeout_seconds
    )


async def update_task(
    session: ClientSession,
    task_id: str,
    input_responses: InputResponses,
    read_timeout_seconds: float | None = None,
) -> None:
    """Send answers to a task's questions. The task's status may change some time later.

    Raises MCPError, with the code -32602 when the server refuses an answer or does not know the
    task.
    """
    params = UpdateTaskParams(task_id=task_id, input_responses=input_responses)
    await session.send_request(UpdateTaskRequest(params=params), EmptyResult, read_timeout_seconds)


async def cancel_task(
    session: ClientSession, task_id: str, read_timeout_seconds: float | None = None
) -> None:
    """Ask the server to cancel a task. A task that has ended does not change.

    The server may cancel the task later, or not at all: `get_task` shows what came of it.
    """
    params = TaskParams(task_id=task_id)
    await session.send_request(CancelTaskRequest(params=params), EmptyResult, read_timeout_seconds)
