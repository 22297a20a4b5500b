"""Long tools for clients that can neither take tasks nor resume event streams."""

from __future__ import annotations

from typing import Any

import pytest

from local.deployment import LocalStack
from tests.integration.support.client import Client
from tests.integration.support.session_client import SessionClient

COMPANIONS = {"task_result", "task_answer", "task_cancel"}


def listed(result: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in result["tools"]}


def test_a_workflow_answers_a_client_without_tasks(plain_client: Client) -> None:
    """It asks, and the client's model brings the answer."""
    assert listed(plain_client.request("tools/list").result) >= COMPANIONS
    told = plain_client.call("tally_columns", csv="a\n1\n").result["structuredContent"]
    assert told["status"] == "input_required"
    (question,) = told["questions"]
    answered = plain_client.call(
        "task_answer",
        task_id=told["taskId"],
        key=question["key"],
        content={"show_values": True, "title": "Mine"},
    )
    result = answered.result
    while result.get("structuredContent", {}).get("status") == "working":
        result = plain_client.call("task_result", task_id=told["taskId"]).result
    assert not result.get("isError"), result
    assert "Mine" in str(result)


@pytest.mark.parametrize("name", ["Visual Studio Code", "an old client"])
def test_a_host_that_does_not_resume_gets_the_result_later(stack: LocalStack, name: str) -> None:
    client = SessionClient(stack.url, "2025-06-18", {}, name)
    assert listed(client.request("tools/list").message["result"]) >= COMPANIONS
    reply = client.request("tools/call", {"name": "linger", "arguments": {"seconds": 25}}).message[
        "result"
    ]
    told = reply["structuredContent"]
    assert told["status"] == "working"
    reply = client.request(
        "tools/call", {"name": "task_result", "arguments": {"task_id": told["taskId"]}}
    ).message["result"]
    assert reply["content"][0]["text"] == "25 seconds with nobody"


def test_a_task_is_cancelled_by_a_model(plain_client: Client) -> None:
    told = plain_client.call("tally_columns", csv="a\n1\n").result["structuredContent"]
    cancelled = plain_client.call("task_cancel", task_id=told["taskId"]).result
    assert cancelled["structuredContent"]["status"] == "cancelled"
