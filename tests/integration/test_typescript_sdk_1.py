"""The official TypeScript SDK 1.x, by the handshake of 2025-11-25."""

from __future__ import annotations

import json
import time
from typing import Any

from local.deployment import LocalStack
from tests.integration.support.aws import executions
from tests.integration.support.client import Client
from tests.integration.support.foreign_clients import ForeignClient

LONG = {"tool": "linger", "arguments": {"seconds": 60}}


def test_tools_are_listed_and_called(typescript_sdk_1: ForeignClient, endpoint: str) -> None:
    observed = typescript_sdk_1.play(endpoint, "list_and_call")
    assert observed.only("initialized")["protocolVersion"] == "2025-11-25"
    names = {tool["name"] for tool in observed.only("tools")["tools"]}
    assert {"hello", "narrate", "survey"} <= names
    assert observed.text == "Hello, Ada!"


def test_progress_of_a_quick_call_reaches_the_callback(
    typescript_sdk_1: ForeignClient, endpoint: str
) -> None:
    observed = typescript_sdk_1.play(endpoint, "call", tool="narrate", arguments={"steps": 2})
    told = [(event["progress"], event["message"]) for event in observed.all("progress")]
    assert told == [(0, "step 0"), (50, "step 1")]
    assert observed.text == "2 steps"


def test_an_error_of_a_tool_is_a_result(typescript_sdk_1: ForeignClient, endpoint: str) -> None:
    call = {"tool": "refuse", "arguments": {"reason": "too late"}}
    observed = typescript_sdk_1.play(endpoint, "call", **call)
    assert observed.result["isError"]
    assert observed.text == "Refused: too late"


def test_questions_reach_the_callbacks_in_the_midst_of_a_call(
    typescript_sdk_1: ForeignClient, endpoint: str
) -> None:
    observed = typescript_sdk_1.play(endpoint, "call", tool="survey", arguments={})
    kinds = [event["method"] for event in observed.all("asked")]
    assert kinds[:2] == ["elicitation/create", "elicitation/create"]
    assert sorted(kinds[2:]) == ["roots/list", "sampling/createMessage"]
    told = json.loads(observed.text)
    assert told == ["Ada", "Roses are red", "file:///home/ada"]


def test_a_cancelled_call_stops_its_work(
    typescript_sdk_1: ForeignClient, endpoint: str, stack: LocalStack, aws: Any
) -> None:
    """notifications/cancelled, when the client's code gives up."""
    observed = typescript_sdk_1.play(endpoint, "cancel_call", **LONG)
    assert not observed.all("result")
    deadline = time.monotonic() + 20
    while any(e["status"] == "RUNNING" for e in executions(stack, aws("stepfunctions"), "linger")):
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.2)


def test_the_tools_definition_makes_a_task_of_a_call(
    typescript_sdk_1: ForeignClient, endpoint: str
) -> None:
    """What VS Code does with a tool whose `taskSupport` is `required`."""
    call = {"tool": "count_up", "arguments": {"to": 3, "every_ms": 500}}
    observed = typescript_sdk_1.play(endpoint, "call_stream", **call)
    assert observed.statuses == ["working", "completed"]
    assert observed.text == "3"


def test_a_task_asks_while_the_client_waits_for_its_result(
    typescript_sdk_1: ForeignClient, endpoint: str
) -> None:
    call = {"tool": "linger", "arguments": {"seconds": 1, "ask": True}}
    observed = typescript_sdk_1.play(endpoint, "task_call", **call)
    assert observed.statuses[-1] == "input_required"
    (asked,) = observed.all("asked")
    related = asked["params"]["_meta"]["io.modelcontextprotocol/related-task"]
    assert related == {"taskId": observed.all("task")[0]["taskId"]}
    assert observed.text == "1 seconds with Ada"


def test_a_task_that_fails_is_an_error(typescript_sdk_1: ForeignClient, endpoint: str) -> None:
    observed = typescript_sdk_1.play(endpoint, "task_call", tool="over_time", arguments={})
    assert observed.statuses == ["working", "failed"]
    assert observed.all("task")[-1]["statusMessage"]
    assert "failed" in observed.only("error")["message"]


def test_a_task_is_cancelled(typescript_sdk_1: ForeignClient, endpoint: str) -> None:
    observed = typescript_sdk_1.play(endpoint, "task_cancel", **LONG)
    assert observed.statuses == ["working", "cancelled"]


def test_a_subscribed_resource_tells_that_it_has_changed(
    typescript_sdk_1: ForeignClient, endpoint: str
) -> None:
    change = {"tool": "edit_note", "arguments": {"text": "another note"}}
    observed = typescript_sdk_1.play(endpoint, "subscribe_resource", uri="note://fixed", **change)
    updated = observed.all("notification", method="notifications/resources/updated")
    assert [event["params"]["uri"] for event in updated] == ["note://fixed"]
    assert observed.all("unsubscribed")


def test_an_ended_session_is_not_found(typescript_sdk_1: ForeignClient, endpoint: str) -> None:
    observed = typescript_sdk_1.play(endpoint, "end_session")
    (ended,) = observed.all("http", method="DELETE")
    assert ended["status"] in (200, 204)
    headers = {"Mcp-Session-Id": observed.only("initialized")["sessionId"]}
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello"}}'
    assert Client(endpoint).send(body, headers).status == 404
