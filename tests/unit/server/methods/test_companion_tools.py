"""Long tools for clients that can neither take tasks nor resume event streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.notifications.clock import Clock
from mcp_tasks.server.methods.companion_tools import (
    DEFAULT_WAIT_SECONDS,
    NAMES,
    CompanionTools,
)
from mcp_tasks.server.methods.stream_connection import BUFFERED_MS
from mcp_tasks.tasks.questions import FormQuestion, Question, SamplingQuestion, open_ask
from tests.unit.support.in_session import ALL_KINDS, Reply, SessionClient, time_of
from tests.unit.support.listening import Time
from tests.unit.support.stack import TASKS, Answer, Stack
from tests.unit.support.whole import accept

INVALID_PARAMS: Final = -32602
MISSING_CAPABILITY: Final = -32021
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
ALICE: Final = "arn:aws:iam::111122223333:user/alice"
MALLORY: Final = "arn:aws:iam::111122223333:user/mallory"


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    time = time_of(stack, monkeypatch)
    patient = partial(CompanionTools, clock=Clock(time.read, time.wait))
    monkeypatch.setattr("mcp_tasks.server.server.CompanionTools", patient)
    stack.environment["COMPANION_TOOLS"] = "on"
    stack.serve()
    return time


def call(stack: Stack, tool: str, can: Any = None, **arguments: Any) -> Answer:
    """`tools/call` of 2026-07-28, without the tasks extension."""
    return stack.call(tool, arguments, capabilities=can or {})


def task_id(stack: Stack) -> str:
    (row,) = stack.rows
    found: str = row["taskId"]["S"]
    return found


def completes(stack: Stack, time: Time) -> Callable[[], None]:
    return lambda: _complete(stack, time)


def _complete(stack: Stack, time: Time) -> None:
    stack.deployment.task_table.complete(task_id(stack), RESULT, time.now)


def asks(stack: Stack, time: Time, question: Question | None = None) -> Callable[[], None]:
    ask = open_ask("token", {"who": question or FormQuestion("Who?", FORM)})
    return lambda: stack.deployment.task_table.ask(task_id(stack), ask, time.now)


def test_a_result_that_comes_in_time_is_the_result(stack: Stack, time: Time) -> None:
    time.meanwhile.append(completes(stack, time))
    assert call(stack, "wait").result["content"] == RESULT["content"]


def test_a_call_that_takes_longer_tells_how_to_get_the_result(stack: Stack, time: Time) -> None:
    began_at = time.now
    result = call(stack, "wait").result
    assert time.now - began_at == DEFAULT_WAIT_SECONDS * 1000
    assert result["structuredContent"] == {"taskId": task_id(stack), "status": "working"}
    (block,) = result["content"]
    assert task_id(stack) in block["text"]
    assert "task_result" in block["text"]
    still = call(stack, "task_result", task_id=task_id(stack), wait_seconds=0).result
    assert still["structuredContent"]["status"] == "working"
    time.meanwhile.append(completes(stack, time))
    assert call(stack, "task_result", task_id=task_id(stack)).result["content"] == RESULT["content"]


def test_waiting_ends_before_the_gateway_does(stack: Stack, time: Time) -> None:
    call(stack, "wait")
    began_at = time.now
    call(stack, "task_result", task_id=task_id(stack), wait_seconds=900)
    assert time.now - began_at == BUFFERED_MS


def test_a_model_answers_for_the_user(stack: Stack, time: Time) -> None:
    """Whatever the client declares."""
    time.meanwhile.append(asks(stack, time))
    stack.calls.instead["send_task_success"] = lambda **arguments: {}
    told = call(stack, "wait").result["structuredContent"]
    assert told["status"] == "input_required"
    (question,) = told["questions"]
    assert question["params"]["requestedSchema"] == FORM
    wrong = call(stack, "task_answer", task_id=task_id(stack), key="no", content={}).result
    assert wrong["isError"]
    assert question["key"] in wrong["content"][0]["text"]
    time.meanwhile.append(completes(stack, time))
    answered = call(
        stack,
        "task_answer",
        task_id=task_id(stack),
        key=question["key"],
        action="accept",
        content={"name": "Ada"},
    )
    assert answered.result["content"] == RESULT["content"]


def test_a_client_that_can_be_asked_is_asked(stack: Stack, time: Time) -> None:
    """By a multi round-trip request, whose state names the task."""
    time.meanwhile.append(asks(stack, time))
    stack.calls.instead["send_task_success"] = lambda **arguments: {}
    request: dict[str, Any] = {"name": "wait", "arguments": {}}
    can: dict[str, Any] = {"elicitation": {}}
    asked = stack.post("tools/call", request, capabilities=can)
    (key,) = asked.result["inputRequests"]
    time.meanwhile.append(completes(stack, time))
    answers = {key: accept(name="Ada")}
    answered = stack.repeat("tools/call", request, asked, answers, capabilities=can)
    assert answered.result["content"] == RESULT["content"]
    assert len(stack.rows) == 1


def test_a_client_with_a_session_that_cannot_wait_for_a_question_gets_it_as_a_result(
    stack: Stack, time: Time
) -> None:
    """It can be asked, and does not resume the stream that would ask it."""
    client = SessionClient(stack, "2025-06-18", capabilities=ALL_KINDS)
    time.meanwhile.append(asks(stack, time))
    told = client.call("wait").result["structuredContent"]
    assert (told["taskId"], told["status"]) == (task_id(stack), "input_required")


def test_a_task_cannot_ask_for_what_nobody_can_answer(stack: Stack, time: Time) -> None:
    """A model does not write for itself what the client's model should."""
    call(stack, "wait")
    task = stack.deployment.task_table.get(task_id(stack), time.now, "anonymous")
    assert task.accepts == {"form", "url"}
    assert SamplingQuestion({"messages": []}).kind not in task.accepts


def test_a_task_is_cancelled_once(stack: Stack, time: Time) -> None:
    call(stack, "wait")
    cancelled = call(stack, "task_cancel", task_id=task_id(stack)).result
    assert cancelled["structuredContent"]["status"] == "cancelled"
    assert call(stack, "task_cancel", task_id=task_id(stack)).result == cancelled
    ended = call(stack, "task_result", task_id=task_id(stack)).result
    assert ended["isError"]


def test_a_failed_task_says_why(stack: Stack, time: Time) -> None:
    call(stack, "wait")
    error = {"code": -32603, "message": "out of paper"}
    stack.deployment.task_table.fail(task_id(stack), error, time.now)
    ended = call(stack, "task_result", task_id=task_id(stack)).result
    assert ended["isError"]
    assert "out of paper" in ended["content"][0]["text"]


@pytest.mark.parametrize("tool", sorted(NAMES))
@pytest.mark.parametrize("wrong", [None, 7, "x", f"c1-{'0' * 32}", f"c9-{'0' * 32}"])
def test_an_unknown_task_is_an_error_that_a_model_reads(
    stack: Stack, time: Time, tool: str, wrong: Any
) -> None:
    result = call(stack, tool, task_id=wrong, key="k").result
    assert result["isError"]
    assert "structuredContent" not in result


def test_a_task_is_its_callers(stack: Stack, time: Time) -> None:
    stack.environment["AUTH"] = "iam"
    stack.serve()
    alice = SessionClient(stack, "2025-06-18", user_arn=ALICE)
    mallory = SessionClient(stack, "2025-06-18", user_arn=MALLORY)
    alice.call("wait")
    for tool in sorted(NAMES):
        result = mallory.call(tool, {"task_id": task_id(stack)}, request_id=tool).result
        assert result["isError"], tool
    assert alice.call("task_cancel", {"task_id": task_id(stack)}, 2).result.get("isError") is None


def names(reply: Reply | Answer) -> set[str]:
    return {tool["name"] for tool in reply.result["tools"]}


def test_the_tools_are_listed_to_clients_that_need_them(stack: Stack, time: Time) -> None:
    assert names(stack.post("tools/list", capabilities={})) >= NAMES
    with_tasks = stack.post("tools/list", capabilities={"extensions": {TASKS: {}}})
    assert not names(with_tasks) & NAMES
    assert with_tasks.result["cacheScope"] == "private"
    for revision in ("2025-06-18", "2025-03-26"):
        assert names(SessionClient(stack, revision).request("tools/list")) >= NAMES
    assert not names(SessionClient(stack, "2025-11-25").request("tools/list")) & NAMES
    host = SessionClient(stack, "2025-11-25", name="Visual Studio Code")
    assert names(host.request("tools/list")) >= NAMES


def test_a_tool_that_may_be_answered_for_has_no_output_schema(stack: Stack, time: Time) -> None:
    """Clients check `structuredContent` by it."""
    listed = {t["name"]: t for t in stack.post("tools/list", capabilities={}).result["tools"]}
    whole = stack.post("tools/list", capabilities={"extensions": {TASKS: {}}}).result["tools"]
    lost = {t["name"] for t in whole if "outputSchema" in t} - {
        name for name, tool in listed.items() if "outputSchema" in tool
    }
    entries = stack.catalogue.tools
    assert all(entries[name].without_tasks == "task" for name in lost)


def test_a_deployment_may_do_without_them(stack: Stack, time: Time) -> None:
    stack.environment["COMPANION_TOOLS"] = "off"
    stack.serve()
    assert not names(stack.post("tools/list", capabilities={})) & NAMES
    refused = call(stack, "task_result", task_id="x")
    assert refused.code == INVALID_PARAMS
    assert call(stack, "wait").code == MISSING_CAPABILITY


@pytest.mark.parametrize("name", ["unit", "Visual Studio Code"])
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-03-26"])
def test_a_client_of_an_older_revision_is_not_left_hanging(
    stack: Stack, time: Time, revision: str, name: str
) -> None:
    client = SessionClient(stack, revision, capabilities=ALL_KINDS, name=name)
    result = client.call("wait").result
    assert task_id(stack) in result["content"][0]["text"]
    client.session_id = None
    time.meanwhile.append(completes(stack, time))
    ended = client.call("task_result", {"task_id": task_id(stack)}).result
    assert ended["content"] == RESULT["content"]
