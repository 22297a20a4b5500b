"""Sessions, and long calls of clients without tasks: their streams end and are resumed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.deployment import LocalStack
from tests.integration.support.session_client import SessionClient

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")


def fill_in(request: dict[str, Any]) -> dict[str, Any]:
    """Answer whatever is asked."""
    match request:
        case {"method": "elicitation/create", "params": {"mode": "url"}}:
            return {"action": "accept"}
        case {"method": "elicitation/create"}:
            return {"action": "accept", "content": {"name": "Ada", "size": "large"}}
        case {"method": "sampling/createMessage"}:
            content = {"type": "text", "text": "Roses are red"}
            return {"role": "assistant", "content": content, "model": "a-model"}
    return {"roots": [{"uri": "file:///home/ada"}]}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_begins_and_ends(endpoint: str, stack: LocalStack, version: str) -> None:
    client = SessionClient(endpoint, version)
    assert client.session_id is not None
    assert client.session_id.startswith("c1-")
    assert client.request("tools/list").status == 200
    # A streamed response has a body, which a 204 must not have.
    assert client.end().status == (204 if endpoint == stack.url else 200)
    assert client.request("tools/list").status == 404
    assert client.end().status == 404


def test_a_long_call_is_one_call(endpoint: str) -> None:
    """It takes longer than a buffered response may."""
    client = SessionClient(endpoint)
    called = client.call("walk", {"out": 28, "back": 1}, progress_token="t")
    assert called.result["structuredContent"] == {"steps": 2}
    counts = [message["params"]["progress"] for message in called.progress]
    assert counts == sorted(set(counts))


def test_questions_of_a_task_come_on_the_calls_stream(endpoint: str) -> None:
    client = SessionClient(endpoint)
    called = client.call("survey", {}, fill_in)
    told = json.loads(called.result["content"][0]["text"])
    assert told == ["Ada", "Roses are red", "file:///home/ada"]
    methods = [request["method"] for request in called.requests]
    assert methods[:2] == ["elicitation/create", "elicitation/create"]
    assert sorted(methods[2:]) == ["roots/list", "sampling/createMessage"]


def test_a_prompt_asks_in_the_midst_of_a_request(endpoint: str) -> None:
    client = SessionClient(endpoint)
    called = client.follow(client.compose("prompts/get", {"name": "personal"}), fill_in)
    assert "a poem about Ada" in called.result["messages"][0]["content"]["text"]
    assert [request["method"] for request in called.requests] == ["elicitation/create"]


def test_a_tool_asks_before_its_call_becomes_a_task(endpoint: str) -> None:
    called = SessionClient(endpoint).call("book", {"greeting": "Hello"}, fill_in)
    assert called.result["content"][0]["text"] == "Ada gets a large one"
