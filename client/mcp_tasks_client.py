"""The tasks extension for the official `mcp` client (SDK 2.3), in one file made to be copied.

Long tools then look like any other; `call_tool` returns when the task has ended:

    extension = TasksExtension(on_update=lambda task: print(task.status, task.status_message))
    async with Client(url, elicitation_callback=ask_the_user, extensions=[extension]) as client:
        result = await client.call_tool("profile_dataset", {"csv": text})

A task outlives its client. To go on after a crash, keep the task's id and poll on by it:

    created = await start_tool(client.session, "profile_dataset", {"csv": text})
    save(created.task_id)
    ...                                                       # later, in another process
    result = await wait_for_task(client.session, task_id)

To be told of changes instead of polling for them, by one request for up to 100 tasks:

    await extension.follow(client.session, task_ids, lambda task: print(task.task_id, task.status))

Every client must be constructed with a `TasksExtension`: servers refuse the tasks methods to
clients that do not declare it. Titles in quotes are sections of the extension's specification,
tasks.md of `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import anyio
from mcp import MCPError
from mcp.client import (
    ClaimContext,
    ClientExtension,
    ClientRequestContext,
    ClientSession,
    NotificationBinding,
    ResultClaim,
)
from mcp_types import (
    CallToolResult,
    EmptyResult,
    ErrorData,
    InputRequest,
    InputRequests,
    InputResponse,
    InputResponses,
    Request,
    RequestParams,
    Result,
    ResultType,
)
from pydantic import Field, RootModel, TypeAdapter

EXTENSION: Final = "io.modelcontextprotocol/tasks"

DEFAULT_POLL_MS: Final = 1000
"""Between two polls when the server suggests nothing (`pollIntervalMs` is optional)."""

MIN_POLL_MS: Final = 100
"""Whatever the server suggests."""

LISTEN_SECONDS: Final = 16 * 60.0
"""How long one listen may take: servers on AWS end it within 15 minutes."""

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]


class Task(Result):
    """What every shape of a task has ("Tasks"). Times are ISO 8601, durations milliseconds."""

    task_id: str
    status: TaskStatus
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    """How long the server keeps the task, from its creation; None is for ever."""
    poll_interval_ms: int | None = None


class CreateTaskResult(Task):
    """A tool call's answer when it became a task ("Task Creation")."""

    result_type: Literal["task"]


class WorkingTask(Task):
    """The task runs."""

    status: Literal["working"]
    result_type: ResultType = "complete"


class InputRequiredTask(Task):
    """The task waits for answers."""

    status: Literal["input_required"]
    result_type: ResultType = "complete"
    input_requests: InputRequests
    """All requests that wait, by keys that are unique over the task's life."""


class CompletedTask(Task):
    """The tool call has a result, which may be the tool's own error (`is_error`)."""

    status: Literal["completed"]
    result_type: ResultType = "complete"
    result: CallToolResult


class FailedTask(Task):
    """The tool call failed with a JSON-RPC error."""

    status: Literal["failed"]
    result_type: ResultType = "complete"
    error: ErrorData


class CancelledTask(Task):
    """The task was cancelled before its end."""

    status: Literal["cancelled"]
    result_type: ResultType = "complete"


DetailedTask: TypeAlias = (
    WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask
)
"""What `tasks/get` answers ("Task Status")."""

_DETAILED_TASK: TypeAdapter[DetailedTask] = TypeAdapter(
    Annotated[DetailedTask, Field(discriminator="status")]
)


class TaskParams(RequestParams):
    """Names a task."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Names a task, and answers its requests."""

    input_responses: InputResponses


class GetTaskRequest(Request[TaskParams, Literal["tasks/get"]]):
    """`tasks/get` ("Task Polling"). `name_param` makes the SDK set the Mcp-Name header."""

    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class UpdateTaskRequest(Request[UpdateTaskParams, Literal["tasks/update"]]):
    """`tasks/update` ("Task Update Requests")."""

    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class CancelTaskRequest(Request[TaskParams, Literal["tasks/cancel"]]):
    """`tasks/cancel` ("Task Cancellation")."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class ListenParams(RequestParams):
    """What to listen to: for tasks, `{"taskIds": [...]}`."""

    notifications: dict[str, Any]


class ListenRequest(Request[ListenParams, Literal["subscriptions/listen"]]):
    """`subscriptions/listen` ("Task Status Notifications"). It is answered when it ends."""

    method: Literal["subscriptions/listen"] = "subscriptions/listen"


class TaskNotification(RootModel[DetailedTask]):
    """The params of `notifications/tasks`: what `tasks/get` would have answered."""


class TaskFailed(MCPError):
    """The task ended as `failed`: what the call itself would have raised, had it not been a task.

    `code`, `message` and `data` are the JSON-RPC error's.
    """

    def __init__(self, task_id: str, error: ErrorData) -> None:
        super().__init__(error.code, error.message, error.data)
        self.task_id = task_id


class TaskCancelled(Exception):
    """The task ended as `cancelled`: there is no result."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task {task_id} was cancelled")
        self.task_id = task_id


OnUpdate = Callable[[Task], None]
"""Called with a task when it is created and whenever it has changed, its end included."""

Answer = Callable[[str, InputRequest], Awaitable[InputResponse]]
"""Answers one of a task's requests, given its key. Treat it like a request that came directly: a
task is not to be trusted more ("Security Considerations")."""


class TasksExtension(ClientExtension):
    """Declares the extension, and finishes tool calls that became tasks.

    Without `answer`, a task's requests go to the client's own callbacks: an elicitation to its
    `elicitation_callback`. A client needs that callback in any case, since it is what declares to
    the server that somebody can be asked.

    `on_update` is the place to save a task's id: it gets the new task before the first poll.
    """

    identifier = EXTENSION

    def __init__(self, on_update: OnUpdate | None = None, answer: Answer | None = None) -> None:
        self._on_update = on_update
        self._answer = answer
        self._followers: list[Callable[[DetailedTask], None]] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """A tool call may be answered with `resultType: "task"`."""
        return [ResultClaim(result_type="task", model=CreateTaskResult, resolve=self._resolve)]

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """`notifications/tasks` goes to whoever follows the task."""
        return [
            NotificationBinding(
                method="notifications/tasks", params_type=TaskNotification, handler=self._notified
            )
        ]

    async def follow(
        self,
        session: ClientSession,
        task_ids: Iterable[str],
        on_change: Callable[[DetailedTask], None],
    ) -> None:
        """Call `on_change` with each task's state and then with every change, until all are over.

        It never goes back to an earlier state, and answers nothing that a task asks. A listen that
        ends is begun again. What no listen told of is polled, so that this also ends with a server
        that does not push. Raises MCPError for a task that the server does not know (-32602).
        """
        seen: dict[str, DetailedTask] = {}
        left = set(task_ids)

        def heard(task: DetailedTask) -> None:
            # The SDK may bring two notifications in the wrong order.
            before = seen.get(task.task_id)
            if task.task_id not in left or (
                before is not None
                and (task.last_updated_at < before.last_updated_at or _same(task, before))
            ):
                return
            seen[task.task_id] = task
            on_change(task)
            if isinstance(task, CompletedTask | FailedTask | CancelledTask):
                left.discard(task.task_id)

        self._followers.append(heard)
        try:
            while left:
                before = dict(seen)
                params = ListenParams(notifications={"taskIds": sorted(left)})
                await session.send_request(
                    ListenRequest(params=params), EmptyResult, LISTEN_SECONDS
                )
                for task_id in left - seen.keys():
                    heard(await get_task(session, task_id))
                if left and seen == before:
                    await anyio.sleep(DEFAULT_POLL_MS / 1000)
        finally:
            self._followers.remove(heard)

    async def _notified(self, notification: TaskNotification) -> None:
        for heard in list(self._followers):
            heard(notification.root)

    async def _resolve(self, created: CreateTaskResult, context: ClaimContext) -> CallToolResult:
        return await _poll(
            context.session,
            created.task_id,
            created,
            self._on_update,
            self._answer,
            context.read_timeout_seconds,
        )


async def start_tool(
    session: ClientSession, name: str, arguments: dict[str, Any] | None = None
) -> CreateTaskResult | CallToolResult:
    """Call a tool and do not wait for the task, if the call becomes one.

    Only the server decides whether it does, so be prepared for both ("Capability Negotiation").
    """
    result = await session.call_tool(name, arguments, allow_claimed=True)
    if not isinstance(result, CreateTaskResult | CallToolResult):
        raise TypeError(f"another extension claimed the result: {type(result).__name__}")
    return result


async def get_task(
    session: ClientSession, task_id: str, read_timeout_seconds: float | None = None
) -> DetailedTask:
    """Read a task as it is now. Raises MCPError (-32602) when it is unknown or expired."""
    return await session.send_request(
        GetTaskRequest(params=TaskParams(task_id=task_id)), _DETAILED_TASK, read_timeout_seconds
    )


async def update_task(
    session: ClientSession,
    task_id: str,
    input_responses: InputResponses,
    read_timeout_seconds: float | None = None,
) -> None:
    """Answer a task's requests, by key. Its status may follow later.

    Raises MCPError, with -32602 when the server refuses the answer or does not know the task.
    """
    params = UpdateTaskParams(task_id=task_id, input_responses=input_responses)
    await session.send_request(UpdateTaskRequest(params=params), EmptyResult, read_timeout_seconds)


async def cancel_task(
    session: ClientSession, task_id: str, read_timeout_seconds: float | None = None
) -> None:
    """Ask the server to cancel a task; one that has ended stays as it is.

    The server may honour it late or never: `get_task` tells.
    """
    params = TaskParams(task_id=task_id)
    await session.send_request(CancelTaskRequest(params=params), EmptyResult, read_timeout_seconds)


async def wait_for_task(
    session: ClientSession,
    task_id: str,
    on_update: OnUpdate | None = None,
    answer: Answer | None = None,
    read_timeout_seconds: float | None = None,
) -> CallToolResult:
    """Poll a task until it ends, answering what it asks, and return the tool's result.

    It may have been created by another client, in another process. Unlike `call_tool`, this does
    not know the tool, and so does not check the result against its output schema;
    `session.validate_tool_result(name, result)` does.

    Raises TaskFailed and TaskCancelled for the task's other ends, and MCPError for a request that
    the server refused. A broken connection ends the SDK's client as a whole. In both cases the task
    goes on and can be waited for again, after a broken connection by a new client.
    """
    return await _poll(session, task_id, None, on_update, answer, read_timeout_seconds)


async def _poll(
    session: ClientSession,
    task_id: str,
    seen: Task | None,
    on_update: OnUpdate | None,
    answer: Answer | None,
    read_timeout_seconds: float | None,
) -> CallToolResult:
    answered: set[str] = set()
    if seen is not None:
        if on_update is not None:
            on_update(seen)
        await _pause(seen)
    while True:
        task = await get_task(session, task_id, read_timeout_seconds)
        if on_update is not None and (seen is None or _state(task) != _state(seen)):
            on_update(task)
        seen = task
        match task:
            case CompletedTask():
                return task.result
            case FailedTask():
                raise TaskFailed(task.task_id, task.error)
            case CancelledTask():
                raise TaskCancelled(task.task_id)
            case InputRequiredTask():
                # A request stays in the answers to polls until the server has dealt with its
                # answer; nobody should be asked twice.
                new = {k: r for k, r in task.input_requests.items() if k not in answered}
                if new:
                    # One update for all: a server need not accept a part of them.
                    responses = {
                        key: await (answer(key, request) if answer else _ask(session, key, request))
                        for key, request in new.items()
                    }
                    await update_task(session, task_id, responses, read_timeout_seconds)
                    answered.update(new)
        await _pause(task)


async def _ask(session: ClientSession, key: str, request: InputRequest) -> InputResponse:
    """Answer through the client's own callbacks, as the SDK does for direct requests."""
    meta = request.params.meta if request.params else None
    context = ClientRequestContext(session=session, request_id=key, meta=meta)
    response = await session.dispatch_input_request(context, request)
    if isinstance(response, ErrorData):
        raise MCPError.from_error_data(response)
    return response


async def _pause(task: Task) -> None:
    suggested = DEFAULT_POLL_MS if task.poll_interval_ms is None else task.poll_interval_ms
    await anyio.sleep(max(suggested, MIN_POLL_MS) / 1000)


def _same(task: Task, other: Task) -> bool:
    """Whether nothing but the advice on polling differs, which followers are given another."""
    return _state(task) | {"poll_interval_ms": other.poll_interval_ms} == _state(other)


def _state(task: Task) -> dict[str, Any]:
    """What makes two polls differ: everything but the envelope."""
    return task.model_dump(exclude={"meta", "result_type"})
