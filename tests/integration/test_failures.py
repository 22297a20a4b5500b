"""Tool errors, failures and timeouts (tasks.md, "Task Execution Errors")."""

from __future__ import annotations

import pytest

from mcp_tasks.crash_report import without_reference
from tests.integration.support.aws import log_groups, log_lines
from tests.integration.support.client import Client

SECRET = "hunter2-in-an-argument"


def test_a_tool_error_is_a_result(client: Client) -> None:
    task = client.end(client.start("refuse", reason="because"))
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True
    assert task["result"]["content"][0]["text"] == "Refused: because"


def test_a_tool_error_within_the_request_is_the_same_result(plain_client: Client) -> None:
    result = plain_client.call("refuse", reason="because").result
    assert (result["isError"], result["content"][0]["text"]) == (True, "Refused: because")


def test_an_exception_fails_the_task_and_only_its_class_is_shown(client: Client) -> None:
    task = client.end(client.start("crash", secret=SECRET))
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32603
    assert without_reference(task["error"]["message"]) == "The tool failed: ValueError"
    assert task["statusMessage"] == task["error"]["message"]
    assert SECRET not in str(task)
    assert "Traceback" not in str(task)


def test_an_exception_within_the_request_is_an_internal_error(plain_client: Client) -> None:
    answer = plain_client.call("crash", secret=SECRET)
    assert (answer.status, answer.error["code"]) == (500, -32603)
    assert SECRET.encode() not in answer.body


def test_a_tool_that_exceeds_its_time_fails_with_that_message(client: Client) -> None:
    task = client.end(client.start("over_time"))
    assert (task["status"], task["error"]["code"]) == ("failed", -32603)
    assert "ran over its time" in task["error"]["message"]


@pytest.mark.parametrize(
    ("how", "text"),
    [("step_error", "The step says no"), ("fail_tool_error", "The workflow says no")],
)
def test_a_workflow_ends_with_a_tool_error(client: Client, how: str, text: str) -> None:
    task = client.end(client.start("broken_flow", how=how))
    assert task["status"] == "completed"
    assert (task["result"]["isError"], task["result"]["content"][0]["text"]) == (True, text)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("step_crash", "The tool failed: KeyError"),
        ("fail_state", "The tool failed: OutOfStock"),
        ("wrong_output", "The workflow's output does not match the tool's output schema"),
    ],
)
def test_a_failed_workflow_shows_only_the_errors_name(
    client: Client, how: str, message: str
) -> None:
    task = client.end(client.start("broken_flow", how=how))
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32603
    assert without_reference(task["error"]["message"]) == message
    assert ("data" in task["error"]) == (how == "step_crash")


def test_no_secret_is_in_the_logs(client: Client, aws: object) -> None:
    """No argument, answer or exception message reaches a log group."""
    client.end(client.start("crash", secret=SECRET))
    client.end(client.start("refuse", reason=SECRET))
    logs = aws("logs")  # type: ignore[operator]
    lines = 0
    for group in log_groups(logs):
        for line in log_lines(logs, group):
            lines += 1
            assert SECRET not in line, group
    assert lines
