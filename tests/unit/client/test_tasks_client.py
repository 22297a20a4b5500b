"""The tasks extension for the official SDK's client, against scripted polls and a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client import ClaimContext, ClientRequestContext, ClientSession
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputResponse,
    Request,
    RequestParams,
)
from pydantic import BaseModel, TypeAdapter

from mcp_tasks_client import (
    DEFAULT_POLL_INTERVAL_MS,
    EXTENSION,
    MIN_POLL_INTERVAL_MS,
    CreateTaskResult,
    Task,
    TaskCancelled,
    TaskFailed,
    TaskParams,
    TasksExtension,
    UpdateTaskParams,
    cancel_task,
    get_task,
    start_tool,
    update_task,
    wait_for_task,
)

ID: Final = "c1-0123456789abcdef0123456789abcdef"
FORM: Final = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
YES: Final = ElicitResult(action="accept", content={"sure": True})
ANSWERED: Final = {"action": "accept", "content": {"sure": True}}


def task(status: str, **fields: Any) -> dict[str, Any]:
    """A task on the wire (tasks.md, "Tasks"); `fields` add to it, and replace."""
    return {
        "resultType": "complete",
        "taskId": ID,
        "status": status,
        "createdAt": "2026-11-01T00:00:00.000Z",
        "lastUpdatedAt": "2026-11-01T00:00:00.000Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 500,
        **fields,
    }


def asking(*keys: str) -> dict[str, Any]:
    """A task that waits for an answer to each of `keys`."""
    params = {"mode": "form", "message": "Are you sure?", "requestedSchema": FORM}
    requests = {key: {"method": "elicitation/create", "params": params} for key in keys}
    return task("input_required", inputRequests=requests)


def completed(text: str = "done", **fields: Any) -> dict[str, Any]:
    """A task with a result."""
    result = {"resultType": "complete", "content": [{"type": "text", "text": text}], **fields}
    return task("completed", result=result)


FAILED: Final = task("failed", error={"code": -32603, "message": "It broke", "data": {"a": 1}})


def wire(model: BaseModel) -> dict[str, Any]:
    """A request as JSON, as the SDK writes it."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class FakeSession:
    """A client's session: answers `tasks/get` from a script, and logs what it does."""

    def __init__(self, log: list[Any], answer: InputResponse | ErrorData = YES) -> None:
        self.polls: list[dict[str, Any]] = []
        self.requests: list[Request[Any, Any]] = []
        self.timeouts: list[float | None] = []
        self.asked: list[ElicitRequest] = []
        self.log = log
        self._answer = answer

    def scripted(self, *polls: dict[str, Any]) -> ClientSession:
        """Itself, with what to answer."""
        self.polls = list(polls)
        return cast(ClientSession, self)

    @property
    def updates(self) -> list[dict[str, Any]]:
        """What was sent as `inputResponses`."""
        updates = [wire(request) for request in self.requests if request.method == "tasks/update"]
        return [update["params"]["inputResponses"] for update in updates]

    async def send_request(
        self, request: Request[Any, Any], result_type: Any, timeout_seconds: float | None = None
    ) -> Any:
        """As the SDK's: the answer comes as JSON."""
        self.requests.append(request)
        self.timeouts.append(timeout_seconds)
        self.log.append(request.method)
        raw = self.polls.pop(0) if request.method == "tasks/get" else {"resultType": "complete"}
        if isinstance(result_type, TypeAdapter):
            return result_type.validate_python(raw, by_name=False)
        return result_type.model_validate(raw, by_name=False)

    async def dispatch_input_request(
        self, context: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """As the SDK's: the client's own callbacks."""
        assert isinstance(request, ElicitRequest)
        self.asked.append(request)
        return self._answer


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What happens, in its order: each request's method, each sleep's seconds. Nobody sleeps."""
    log: list[Any] = []

    async def sleep(seconds: float) -> None:
        log.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    return log


@pytest.fixture
def session(log: list[Any]) -> FakeSession:
    """A session whose client says yes to everything."""
    return FakeSession(log)


# ---- How a task ends -----------------------------------------------------------------------------


def test_a_task_is_polled_until_it_has_the_tools_result(session: FakeSession) -> None:
    polls = session.scripted(task("working"), task("working"), completed("42"))
    result = asyncio.run(wait_for_task(polls, ID))
    assert text_of(result) == "42"
    assert session.log.count("tasks/get") == 3


def test_a_tools_own_error_is_a_result(session: FakeSession) -> None:
    """tasks.md, "Task Execution Errors": `completed`, with `isError`."""
    result = asyncio.run(wait_for_task(session.scripted(completed("no", isError=True)), ID))
    assert (text_of(result), result.is_error) == ("no", True)


def test_a_failed_task_raises_its_json_rpc_error(session: FakeSession) -> None:
    """tasks.md, "Task Execution Errors": the error of the request that became the task."""
    with pytest.raises(MCPError) as raised:
        asyncio.run(wait_for_task(session.scripted(task("working"), FAILED), ID))
    error = raised.value
    assert isinstance(error, TaskFailed)
    assert (error.code, error.message, error.data) == (-32603, "It broke", {"a": 1})
    assert error.task_id == ID


def test_a_cancelled_task_raises(session: FakeSession) -> None:
    with pytest.raises(TaskCancelled, match=ID) as raised:
        asyncio.run(wait_for_task(session.scripted(task("cancelled")), ID))
    assert raised.value.task_id == ID


# ---- How often it is polled ----------------------------------------------------------------------


def test_each_polls_own_interval_is_waited_for(session: FakeSession) -> None:
    """tasks.md, "Task Polling": clients should respect `pollIntervalMs`, which may change."""
    polls = session.scripted(
        task("working", pollIntervalMs=700), task("working", pollIntervalMs=2500), completed()
    )
    asyncio.run(wait_for_task(polls, ID))
    assert session.log == ["tasks/get", 0.7, "tasks/get", 2.5, "tasks/get"]


@pytest.mark.parametrize(
    ("suggested", "waited_ms"),
    [({}, DEFAULT_POLL_INTERVAL_MS), ({"pollIntervalMs": None}, DEFAULT_POLL_INTERVAL_MS)]
    + [({"pollIntervalMs": ms}, MIN_POLL_INTERVAL_MS) for ms in (0, MIN_POLL_INTERVAL_MS - 1)],
)
def test_a_server_cannot_make_the_client_poll_without_a_pause(
    session: FakeSession, suggested: dict[str, Any], waited_ms: int
) -> None:
    working = task("working")
    del working["pollIntervalMs"]
    asyncio.run(wait_for_task(session.scripted(working | suggested, completed()), ID))
    assert session.log == ["tasks/get", waited_ms / 1000, "tasks/get"]


def test_the_interval_is_waited_for_after_an_answer_too(session: FakeSession) -> None:
    asyncio.run(wait_for_task(session.scripted(asking("a"), completed()), ID))
    assert session.log == ["tasks/get", "tasks/update", 0.5, "tasks/get"]


# ---- What it asks --------------------------------------------------------------------------------


def test_nobody_is_asked_twice(session: FakeSession) -> None:
    """tasks.md, "Task Update Requests": a request may stay in polls after its answer was sent."""
    polls = session.scripted(asking("a"), asking("a"), task("working"), asking("a"), completed())
    asyncio.run(wait_for_task(polls, ID))
    assert len(session.asked) == 1
    assert session.updates == [{"a": ANSWERED}]


def test_a_new_request_beside_an_answered_one_is_answered_alone(session: FakeSession) -> None:
    asyncio.run(wait_for_task(session.scripted(asking("a"), asking("a", "b"), completed()), ID))
    assert session.updates == [{"a": ANSWERED}, {"b": ANSWERED}]


def test_requests_that_come_together_are_answered_together(session: FakeSession) -> None:
    asyncio.run(wait_for_task(session.scripted(asking("a", "b"), completed()), ID))
    assert session.updates == [{"a": ANSWERED, "b": ANSWERED}]


def test_the_clients_own_callback_is_asked(session: FakeSession) -> None:
    """tasks.md, "Security Considerations": a request is treated like one that came directly."""
    asyncio.run(wait_for_task(session.scripted(asking("a"), completed()), ID))
    (params,) = [request.params for request in session.asked]
    assert isinstance(params, ElicitRequestFormParams)
    assert (params.message, params.requested_schema) == ("Are you sure?", FORM)


def test_a_clients_callback_that_refuses_ends_the_wait(log: list[Any]) -> None:
    session = FakeSession(log, answer=ErrorData(code=-32600, message="Elicitation not supported"))
    with pytest.raises(MCPError, match="not supported"):
        asyncio.run(wait_for_task(session.scripted(asking("a")), ID))
    assert session.updates == []


def test_answer_is_asked_in_place_of_the_callback(session: FakeSession) -> None:
    keys = []

    async def decline(key: str, request: InputRequest) -> ElicitResult:
        keys.append(key)
        return ElicitResult(action="decline")

    asyncio.run(wait_for_task(session.scripted(asking("a"), completed()), ID, answer=decline))
    assert (keys, session.asked) == (["a"], [])
    assert session.updates == [{"a": {"action": "decline"}}]


# ---- What its caller sees ------------------------------------------------------------------------


def test_on_update_gets_every_change_once(session: FakeSession) -> None:
    seen: list[tuple[str, str | None]] = []
    later = {"statusMessage": "half-way", "lastUpdatedAt": "2026-11-01T00:00:01.000Z"}
    polls = session.scripted(
        task("working"),
        task("working"),
        task("working", **later),
        task("working", **later, _meta={"trace": 1}),  # the envelope's, not the task's
        asking("a"),
        completed(),
    )
    asyncio.run(
        wait_for_task(polls, ID, lambda task: seen.append((task.status, task.status_message)))
    )
    assert seen == [
        ("working", None),
        ("working", "half-way"),
        ("input_required", None),
        ("completed", None),
    ]


def test_on_update_gets_the_end_before_it_is_raised(session: FakeSession) -> None:
    seen: list[Task] = []
    with pytest.raises(TaskFailed):
        asyncio.run(wait_for_task(session.scripted(FAILED), ID, seen.append))
    assert [task.status for task in seen] == ["failed"]


def test_every_request_names_its_task_for_the_mcp_name_header(session: FakeSession) -> None:
    """tasks.md, "Routing Headers": the SDK takes the header from the parameter `name_param`."""
    one = session.scripted(task("working"))

    async def all_three() -> None:
        await get_task(one, ID)
        await update_task(one, ID, {"a": YES})
        await cancel_task(one, ID)

    asyncio.run(all_three())
    assert session.log == ["tasks/get", "tasks/update", "tasks/cancel"]
    names = [type(request).name_param or "" for request in session.requests]
    assert [wire(r)["params"][n] for r, n in zip(session.requests, names, strict=True)] == [ID] * 3


def test_every_request_of_a_wait_has_the_callers_timeout(session: FakeSession) -> None:
    polls = session.scripted(asking("a"), completed())
    asyncio.run(wait_for_task(polls, ID, read_timeout_seconds=7))
    assert session.timeouts == [7, 7, 7]


def test_a_tool_call_is_waited_for_as_its_extension_was_told(session: FakeSession) -> None:
    seen: list[Task] = []

    async def decline(key: str, request: InputRequest) -> ElicitResult:
        return ElicitResult(action="decline")

    polls = session.scripted(asking("a"), completed())
    created = CreateTaskResult.model_validate(task("working", resultType="task"))
    context = ClaimContext(session=polls, tool_name="count", read_timeout_seconds=7)
    (claim,) = TasksExtension(seen.append, decline).claims()
    anyio.run(claim.resolve, created, context)
    assert [task.status for task in seen] == ["working", "input_required", "completed"]
    assert session.updates == [{"a": {"action": "decline"}}]
    assert session.timeouts == [7, 7, 7]


# ---- Through the SDK's client and server, in one process -----------------------------------------


class TaskServer(Extension):
    """A server's half of the extension: calls of `count` become one task, with scripted polls."""

    identifier = EXTENSION

    def __init__(self, *polls: dict[str, Any]) -> None:
        self.polls = list(polls)
        self.updates: list[dict[str, Any]] = []

    def methods(self) -> Sequence[MethodBinding]:
        return [
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/update", UpdateTaskParams, self._update),
        ]

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        if params.name == "count":
            return task("working", resultType="task")
        return await call_next(ctx)

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: RequestParams) -> Any:
        return self.polls.pop(0)

    async def _update(self, ctx: ServerRequestContext[Any, Any], params: UpdateTaskParams) -> Any:
        self.updates.append(wire(params)["inputResponses"])
        return {"resultType": "complete"}


def client_of(extension: TaskServer, on_update: Any = None) -> Client:
    """A client of a server with the tools `count`, a task, and `greet`, which is none."""
    server = MCPServer("test", extensions=[extension])

    @server.tool()
    def count() -> dict[str, int]:
        raise AssertionError("runs as a task")

    @server.tool()
    def greet() -> str:
        return "Hello"

    async def yes(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return YES

    return Client(server, elicitation_callback=yes, extensions=[TasksExtension(on_update)])


def test_call_tool_returns_when_the_task_has_ended(log: list[Any]) -> None:
    """tasks.md, "Task Creation": a `resultType` of "task" is claimed, and polled to its end."""
    server = TaskServer(task("working"), asking("a"), completed(structuredContent={"n": 1}))
    seen: list[Task] = []

    async def call() -> CallToolResult:
        async with client_of(server, seen.append) as client:
            return await client.call_tool("count")

    assert asyncio.run(call()).structured_content == {"n": 1}
    assert server.updates == [{"a": ANSWERED}]
    # The new task comes first, and is not polled at once: the server said how long to wait.
    assert isinstance(seen[0], CreateTaskResult)
    assert [task.status for task in seen] == ["working", "input_required", "completed"]
    assert log == [0.5, 0.5, 0.5]


def test_call_tool_checks_a_tasks_result_against_the_output_schema() -> None:
    server = TaskServer(completed(structuredContent={"n": "one"}))

    async def call() -> None:
        async with client_of(server) as client:
            with pytest.raises(RuntimeError, match="Invalid structured content"):
                await client.call_tool("count")

    asyncio.run(call())


def test_start_tool_returns_the_task_or_the_result_as_the_server_decides() -> None:
    """tasks.md, "Capability Negotiation": the server alone decides what becomes a task."""

    async def call() -> list[CreateTaskResult | CallToolResult]:
        async with client_of(TaskServer()) as client:
            return [await start_tool(client.session, tool) for tool in ("count", "greet")]

    created, result = asyncio.run(call())
    assert isinstance(created, CreateTaskResult)
    assert created.task_id == ID
    assert isinstance(result, CallToolResult)
    assert text_of(result) == "Hello"


def text_of(result: CallToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)
