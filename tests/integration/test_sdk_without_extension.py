"""The official SDK's client without the tasks extension, with and without the handshake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.shared.exceptions import MCPDeprecationWarning

from local.deployment import LocalStack

MODERN, HANDSHAKE = "2026-07-28", "legacy"
SPEAKS = {MODERN: "2026-07-28", HANDSHAKE: "2025-11-25", "auto": "2026-07-28"}
"""The revision that the SDK's client negotiates with this server, by the client's mode."""


async def fill_in(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Give every question the same answer."""
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def sample(
    context: Any, params: types.CreateMessageRequestParams
) -> types.CreateMessageResult:
    """Answer sampling with one line."""
    poem = types.TextContent(type="text", text="Roses are red")
    return types.CreateMessageResult(role="assistant", content=poem, model="a-model")


async def list_roots(context: Any) -> types.ListRootsResult:
    """Answer with one directory."""
    return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///home/ada"}]})


def with_client(
    stack: LocalStack, mode: str, use: Callable[[Client], Awaitable[None]], **options: Any
) -> None:
    """Connect as a user of the SDK does, and check the negotiated revision."""

    async def run() -> None:
        async with Client(stack.url, mode=mode, **options) as client:
            assert client.protocol_version == SPEAKS[mode]
            await use(client)

    asyncio.run(run())


each_mode = pytest.mark.parametrize("mode", [MODERN, HANDSHAKE, "auto"])


@each_mode
def test_tools_are_listed_and_called(stack: LocalStack, mode: str) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"hello", "narrate", "survey"} <= set(tools)
        result = await client.call_tool("hello", {"name": "Ada"})
        assert result.content == [types.TextContent(type="text", text="Hello, Ada!")]
        # The schema of the result is checked by the SDK.
        savings = {"monthly": 100, "years": 10, "share_of_stocks": 0.5, "runs": 200}
        result = await client.call_tool("estimate_savings", savings)
        assert result.structured_content
        assert result.structured_content["paid_in"] == 12000
        refused = await client.call_tool("hello", {"name": 5})
        assert refused.is_error

    with_client(stack, mode, use)


@each_mode
def test_progress_notifications_reach_the_callback(stack: LocalStack, mode: str) -> None:
    received: list[tuple[float, float | None, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        received.append((progress, total, message))

    async def use(client: Client) -> None:
        await client.call_tool("narrate", {"steps": 2}, progress_callback=progressed)

    with_client(stack, mode, use)
    assert received == [(0, 100, "step 0"), (50, 100, "step 1")]


@each_mode
def test_log_messages_reach_the_callback(stack: LocalStack, mode: str) -> None:
    received: list[types.LoggingMessageNotificationParams] = []

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        received.append(params)

    async def use(client: Client) -> None:
        await client.call_tool("narrate", {"steps": 2})

    options: dict[str, Any] = {"logging_callback": logged}
    if mode != HANDSHAKE:
        options["log_level"] = "info"
    with_client(stack, mode, use, **options)
    assert [(message.level, message.data) for message in received] == [
        ("info", {"step": 0}),
        ("info", {"step": 1}),
    ]


@each_mode
def test_resources_are_listed_and_read(stack: LocalStack, mode: str) -> None:
    async def use(client: Client) -> None:
        uris = [str(r.uri) for r in (await client.list_resources()).resources]
        assert uris == sorted(uris)
        assert "note://fixed" in uris
        templates = (await client.list_resource_templates()).resource_templates
        assert "note://by/{name}" in [template.uri_template for template in templates]
        for uri, text in [("note://fixed", "a note"), ("note://by/ada", "a note by ada")]:
            (contents,) = (await client.read_resource(uri)).contents
            assert isinstance(contents, types.TextResourceContents)
            assert contents.text == text
        code = -32002 if mode == HANDSHAKE else -32602
        with pytest.raises(MCPError) as caught:
            await client.read_resource("note://by/nobody")
        assert caught.value.error.code == code

    with_client(stack, mode, use)


@each_mode
def test_prompts_are_listed_got_and_completed(stack: LocalStack, mode: str) -> None:
    async def use(client: Client) -> None:
        prompts = [p.name for p in (await client.list_prompts()).prompts]
        assert {"essay", "personal", "plan"} <= set(prompts)
        got = await client.get_prompt("essay", {"topic": "cells"})
        first = got.messages[0].content
        assert isinstance(first, types.TextContent)
        assert first.text == "Write a short essay about cells"
        ref = types.PromptReference(type="ref/prompt", name="essay")
        completed = await client.complete(ref, {"name": "length", "value": "s"})
        assert completed.completion.values == ["short"]

    with_client(stack, mode, use)


@each_mode
def test_the_client_is_asked_in_the_midst_of_a_call(stack: LocalStack, mode: str) -> None:
    async def use(client: Client) -> None:
        result = await client.call_tool("survey", {})
        expected = ["Ada", "Roses are red", "file:///home/ada"]
        (block,) = result.content  # an older revision has no structured content but objects
        assert isinstance(block, types.TextContent)
        assert json.loads(block.text) == expected

    callbacks = {
        "elicitation_callback": fill_in,
        "sampling_callback": sample,
        "list_roots_callback": list_roots,
    }
    with_client(stack, mode, use, **callbacks)


def test_a_client_that_cannot_be_asked_learns_why(stack: LocalStack) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(MCPError, match="does not declare"):
            await client.call_tool("survey", {})
        with pytest.raises(MCPError, match="does not declare"):
            await client.get_prompt("personal", {})
        with pytest.warns(MCPDeprecationWarning):  # ping exists until 2025-11-25
            await client.send_ping()

    with_client(stack, HANDSHAKE, use)
