"""The official Python SDK 1.x, by the handshake of 2025-11-25."""

from __future__ import annotations

from tests.integration.support.foreign_clients import ForeignClient


def test_tools_are_listed_and_called(python_sdk_1: ForeignClient, endpoint: str) -> None:
    observed = python_sdk_1.play(endpoint, "list_and_call")
    assert observed.only("initialized")["protocolVersion"] == "2025-11-25"
    names = {tool["name"] for tool in observed.only("tools")["tools"]}
    assert {"hello", "narrate", "survey"} <= names
    assert observed.text == "Hello, Ada!"


def test_progress_of_a_quick_call_reaches_the_callback(
    python_sdk_1: ForeignClient, endpoint: str
) -> None:
    observed = python_sdk_1.play(endpoint, "call", tool="narrate", arguments={"steps": 2})
    told = [(event["progress"], event["message"]) for event in observed.all("progress")]
    assert told == [(0, "step 0"), (50, "step 1")]
    assert observed.text == "2 steps"


def test_an_error_of_a_tool_is_a_result(python_sdk_1: ForeignClient, endpoint: str) -> None:
    call = {"tool": "refuse", "arguments": {"reason": "too late"}}
    observed = python_sdk_1.play(endpoint, "call", **call)
    assert observed.result["isError"]
    assert observed.text == "Refused: too late"
