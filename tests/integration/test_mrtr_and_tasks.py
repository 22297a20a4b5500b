"""The messages of "MRTR and Tasks": its walk-through of a task that asks, and its option two.

The document's messages are those of the tasks of 2025-11-25 (2025-11-25 basic/utilities/tasks.mdx);
where it is loose (the names of statuses, where `_meta` is), that revision's schema decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from local.deployment import LocalStack
from tests import wire
from tests.integration.support.session_client import EVERYTHING, SessionClient

RELATED = "io.modelcontextprotocol/related-task"
IN_CONTENT: dict[str, Any] = {"mcp-tasks/questionsInContent": {}}
ARGUMENTS = {"seconds": 0, "ask": True}
PATIENCE_SECONDS = 30.0


def begin(client: SessionClient) -> str:
    """Messages 1 and 2; returns the task's id."""
    call = {"name": "linger", "arguments": ARGUMENTS, "task": {"ttl": 60_000}}
    task = client.request("tools/call", call).message["result"]["task"]
    assert (task["status"], task["ttl"]) == ("working", 60_000)
    task_id: str = task["taskId"]
    return task_id


def until(client: SessionClient, task_id: str, status: str) -> dict[str, Any]:
    """Messages 3 and 4, or 9 and 10: poll until there is this status."""
    for task in polls(client, task_id):
        if task["status"] == status:
            return task
    raise AssertionError(f"the task is never {status}")


def polls(client: SessionClient, task_id: str) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        task: dict[str, Any] = client.request("tasks/get", {"taskId": task_id}).message["result"]
        yield task
        time.sleep(task["pollInterval"] / 1000)


@pytest.fixture
def client(stack: LocalStack) -> SessionClient:
    return SessionClient(stack.url)


def test_the_walk_through(client: SessionClient) -> None:
    task_id = begin(client)
    assert until(client, task_id, "input_required")["taskId"] == task_id
    # 5 and 6
    asking = client.post(client.compose("tasks/result", {"taskId": task_id}, "five"))
    question = asking.message
    wire.check_request(question, client.version)
    assert question["method"] == "elicitation/create"
    assert question["params"]["mode"] == "form"
    assert question["params"]["_meta"] == {RELATED: {"taskId": task_id}}
    # 7 and 8
    answer = {
        "action": "accept",
        "content": {"name": "World"},
        "_meta": {RELATED: {"taskId": task_id}},
    }
    taken = client.post({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    assert taken.status == 202
    until(client, task_id, "completed")
    # 11 and 12
    result = client.request("tasks/result", {"taskId": task_id}).message["result"]
    assert result["content"] == [{"type": "text", "text": "0 seconds with World"}]
    assert result["_meta"] == {RELATED: {"taskId": task_id}}
    # The request of message 5 gets the same: its stream is resumed.
    assert client.get(asking.last_id).message == {"jsonrpc": "2.0", "id": "five", "result": result}


def test_a_question_is_content_of_a_result(stack: LocalStack) -> None:
    """Option two, for a client that says so in `capabilities.experimental`."""
    client = SessionClient(stack.url, capabilities={**EVERYTHING, "experimental": IN_CONTENT})
    task_id = begin(client)
    until(client, task_id, "input_required")
    reply = client.post(client.compose("tasks/result", {"taskId": task_id}))
    result = reply.message["result"]
    (block,) = result["content"]
    assert (block["type"], block["mode"]) == ("elicitation", "form")
    assert block["requestedSchema"]["properties"]["name"]
    assert result["isError"] is False
    answer = {"action": "accept", "content": {"name": "World"}}
    taken = client.post({"jsonrpc": "2.0", "id": block["id"], "result": answer})
    assert taken.status == 202
    until(client, task_id, "completed")
    result = client.request("tasks/result", {"taskId": task_id}).message["result"]
    assert result["content"] == [{"type": "text", "text": "0 seconds with World"}]
