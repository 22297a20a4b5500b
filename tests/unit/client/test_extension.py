"""The extension of a client, alone and with the SDK's client and server in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client import ClaimContext, ClientRequestContext
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    InputRequest,
    RequestParams,
)

from mcp_tasks_client import (
    EXTENSION,
    CreateTaskResult,
    Task,
    TaskParams,
    TasksExtension,
    UpdateTaskParams,
    start_tool,
)
from tests.unit.client.scripted import (
    ANSWERED,
    ID,
    YES,
    FakeSession,
    asking,
    completed,
    task,
    text_of,
    wire,
)


def test_a_tool_call_is_polled_with_the_options_of_its_extension(session: FakeSession) -> None:
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
    """The server's side of the extension: calls of `count` become a task with scripted polls."""

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
    """A client of a server with the tools `count`, which becomes a task, and `greet`."""
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
    """tasks.md, "Task Creation": a result with `resultType: "task"` is polled to its end."""
    server = TaskServer(task("working"), asking("a"), completed(structuredContent={"n": 1}))
    seen: list[Task] = []

    async def call() -> CallToolResult:
        async with client_of(server, seen.append) as client:
            return await client.call_tool("count")

    assert asyncio.run(call()).structured_content == {"n": 1}
    assert server.updates == [{"a": ANSWERED}]
    # The new task comes first. The first poll waits for the interval that the server suggested.
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
