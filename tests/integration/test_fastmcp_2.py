"""FastMCP 2.14's client, by the handshake of 2025-11-25."""

from __future__ import annotations

import json

from tests.integration.support.client import Client
from tests.integration.support.foreign_clients import ForeignClient

LONG = {"tool": "linger", "arguments": {"seconds": 60}}


def test_tools_are_listed_and_called(fastmcp_2: ForeignClient, endpoint: str) -> None:
    observed = fastmcp_2.play(endpoint, "list_and_call")
    assert observed.only("initialized")["protocolVersion"] == "2025-11-25"
    names = {tool["name"] for tool in observed.only("tools")["tools"]}
    assert {"hello", "narrate", "survey"} <= names
    assert observed.text == "Hello, Ada!"


def test_progress_of_a_quick_call_reaches_the_callback(
    fastmcp_2: ForeignClient, endpoint: str
) -> None:
    observed = fastmcp_2.play(endpoint, "call", tool="narrate", arguments={"steps": 2})
    told = [(event["progress"], event["message"]) for event in observed.all("progress")]
    assert told == [(0, "step 0"), (50, "step 1")]
    assert observed.text == "2 steps"


def test_an_error_of_a_tool_is_a_result(fastmcp_2: ForeignClient, endpoint: str) -> None:
    call = {"tool": "refuse", "arguments": {"reason": "too late"}}
    observed = fastmcp_2.play(endpoint, "call", **call)
    assert observed.result["isError"]
    assert observed.text == "Refused: too late"


def test_questions_reach_the_callbacks_in_the_midst_of_a_call(
    fastmcp_2: ForeignClient, endpoint: str
) -> None:
    observed = fastmcp_2.play(endpoint, "call", tool="survey", arguments={})
    kinds = [event["method"] for event in observed.all("asked")]
    assert kinds[:2] == ["elicitation/create", "elicitation/create"]
    assert sorted(kinds[2:]) == ["roots/list", "sampling/createMessage"]
    told = json.loads(observed.text)
    assert told == ["Ada", "Roses are red", "file:///home/ada"]


def test_a_call_as_a_task_is_polled(fastmcp_2: ForeignClient, endpoint: str) -> None:
    call = {"tool": "count_up", "arguments": {"to": 3, "every_ms": 500}}
    observed = fastmcp_2.play(endpoint, "task_call", **call)
    assert not observed.only("created")["immediate"]
    assert observed.statuses[-1] == "completed"
    assert observed.text == "3"


def test_a_quick_tool_refuses_to_be_a_task(fastmcp_2: ForeignClient, endpoint: str) -> None:
    """-32601 (tasks.mdx, "Tool-Level Negotiation")."""
    call = {"tool": "hello", "arguments": {"name": "Ada"}}
    observed = fastmcp_2.play(endpoint, "task_call", **call)
    assert observed.only("error")["code"] == -32601


def test_a_task_asks_on_the_sessions_stream(fastmcp_2: ForeignClient, endpoint: str) -> None:
    """It asks for the result only when the task has ended, so it is asked nowhere else."""
    call = {"tool": "linger", "arguments": {"seconds": 1, "ask": True}}
    observed = fastmcp_2.play(endpoint, "task_call", **call)
    assert len(observed.all("asked")) == 1
    assert observed.text == "1 seconds with Ada"


def test_a_task_is_cancelled(fastmcp_2: ForeignClient, endpoint: str) -> None:
    observed = fastmcp_2.play(endpoint, "task_cancel", **LONG)
    assert observed.statuses == ["cancelled"]


def test_an_ended_session_is_not_found(fastmcp_2: ForeignClient, endpoint: str) -> None:
    observed = fastmcp_2.play(endpoint, "end_session")
    (ended,) = observed.all("http", method="DELETE")
    assert ended["status"] in (200, 204)
    headers = {"Mcp-Session-Id": observed.only("initialized")["sessionId"]}
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello"}}'
    assert Client(endpoint).send(body, headers).status == 404
