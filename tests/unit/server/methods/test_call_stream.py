"""Calls that run within their requests and ask, in the revisions with sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.server.methods.call_quota import GRACE_MS, MAX_CALL_MS
from mcp_tasks.server.methods.multi_round_trip import MultiRoundTrip
from mcp_tasks.server.methods.stream_connection import MAX_ERROR_RESPONSES
from mcp_tasks.sessions.call_table import RESPONSE_KEPT_MS, WAITS_MS
from tests import wire
from tests.unit.support.aws import SESSIONS, Calls, real, refusing
from tests.unit.support.in_session import ALL_KINDS, Reply, SessionClient, time_of
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.stack import Stack, buffered
from tests.unit.support.whole import HANDSHAKE, accept, whole_stack

INVALID_PARAMS: Final = -32602
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603
COMPLETION: Final = {
    "role": "assistant",
    "model": "m",
    "content": {"type": "text", "text": "Hi there"},
}
ANSWERS: Final[dict[str, Any]] = {
    "Where to?": accept(place="Rome"),
    "How long in Rome?": accept(days=3),
    "To Rome?": accept(sure=True),
    "Really?": accept(sure=True),
    "Pay here": {"action": "accept"},
    "Pay": {"action": "accept"},
    "sampling/createMessage": COMPLETION,
    "roots/list": {"roots": [{"uri": "file:///a"}]},
}


@pytest.fixture
def stack(aws: Calls) -> Stack:
    return whole_stack(aws)


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    return time_of(stack, monkeypatch)


@pytest.fixture
def client(stack: Stack, time: Time) -> SessionClient:
    return SessionClient(stack)


def questions(reply: Reply) -> list[dict[str, Any]]:
    """The requests of the server's."""
    return [each for each in reply.messages if "method" in each and "id" in each]


def answer(client: SessionClient, asked: dict[str, Any]) -> Reply:
    """Answer one of them as a person would."""
    wire.check_request(asked, client.version)
    message = asked.get("params", {}).get("message")
    found = ANSWERS.get(message) or ANSWERS[asked["method"]]
    return client.respond(asked["id"], found)


def finish(client: SessionClient, reply: Reply, method: str = "tools/call") -> Reply:
    """Answer all questions, and resume the stream until there is a response."""
    for _ in range(10):
        for asked in questions(reply):
            assert answer(client, asked).status == 202
        if "method" not in reply.messages[-1]:
            return reply
        client.stack.serve()
        reply = client.resume(reply.last_id)
        client.check(method, reply)
    raise AssertionError("no response")


TRIP: Final[dict[str, Any]] = {"name": "Ada"}
ASKING: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "a tool": ("tools/call", {"name": "trip", "arguments": TRIP}, "Ada: 3 days in Rome"),
    "a prompt": ("prompts/get", {"name": "plan", "arguments": TRIP}, "Ada goes to Rome"),
    "a resource": ("resources/read", {"uri": "trips://Ada"}, "Ada is in Rome"),
}


@pytest.mark.parametrize("revision", HANDSHAKE[:2])
@pytest.mark.parametrize(("method", "params", "text"), ASKING.values(), ids=ASKING)
def test_what_asks_is_run_again_with_the_answers(
    stack: Stack, time: Time, revision: str, method: str, params: dict[str, Any], text: str
) -> None:
    """On another instance each time. Clients of 2025-06-18 have to show that they resume."""
    client = SessionClient(stack, revision)
    stack.deployment.session_table.mark_resumes(_key_of(stack, client), 10**13)
    reply = finish(client, client.request(method, params, request_id="mine"), method)
    assert reply.response["id"] == "mine"
    assert text in str(reply.result)


def _key_of(stack: Stack, client: SessionClient) -> str:
    sessions = stack.server._methods.sessions  # type: ignore[union-attr]
    return sessions.open(str(client.session_id), "anonymous").key


@pytest.mark.parametrize("kind", ["form", "url", "sampling", "roots"])
def test_every_kind_of_question_is_a_request(client: SessionClient, kind: str) -> None:
    reply = client.call("needs", {"kinds": [kind]})
    (asked,) = questions(reply)
    assert finish(client, reply).result["content"]
    assert asked["method"].partition("/")[0] in ("elicitation", "sampling", "roots")


def test_the_last_answer_is_what_runs_a_call(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """A stream whose questions are open only waits."""
    reply = client.call("trip", TRIP)
    stack.calls.made.clear()
    waited = client.resume(reply.last_id)
    assert waited.messages == []
    writes = {o for o in stack.calls.operations if o not in ("get_item", "get_secret_value")}
    assert not writes
    (asked,) = questions(reply)
    answer(client, asked)
    (second,) = questions(client.resume(reply.last_id))
    assert second["params"]["message"] == "How long in Rome?"


def test_a_streamed_connection_stays_open_until_the_response(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    stack.way = Streamed(time)
    answered: list[str] = []

    def answer_what_is_asked() -> None:
        for asked in _open_questions(stack):
            answered.append(asked["id"])
            stack.way, way = buffered, stack.way
            assert client.respond(asked["id"], asked["answer"]).status == 202
            stack.way = way

    time.meanwhile = [answer_what_is_asked] * 4
    reply = client.call("trip", TRIP)
    assert [asked["id"] for asked in questions(reply)] == answered
    assert len(answered) == 2
    assert "3 days in Rome" in str(reply.result)


def _open_questions(stack: Stack) -> list[dict[str, Any]]:
    """What the only call in the table waits for."""
    (item,) = items(stack)
    call_id = item["pk"]["S"].partition("#")[2]
    answers = {"place": accept(place="Rome"), "days": accept(days=3)}
    return [
        {"id": f"call.{call_id}.{key}", "answer": answers[key]}
        for key in item["questions"]["M"]
        if key not in item["answers"]["M"]
    ]


def items(stack: Stack) -> list[dict[str, Any]]:
    """The calls in the session table."""
    found = real("dynamodb").scan(TableName=SESSIONS)["Items"]
    return [item for item in found if item["pk"]["S"].startswith("call#")]


def test_a_response_is_kept_and_given_again(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reply = client.call("trip", TRIP)
    finish(client, reply)
    stack.calls.made.clear()
    again = client.resume(reply.last_id)
    assert "3 days in Rome" in str(again.result)
    assert "update_item" not in stack.calls.operations
    (item,) = items(stack)
    assert not {"params", "questions", "answers"} & set(item)
    time.now += RESPONSE_KEPT_MS + 1000
    late = client.resume(reply.last_id)
    assert late.code == INVALID_REQUEST
    assert "call again" in late.response["error"]["message"]


def test_a_call_that_waits_too_long_is_forgotten(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reply = client.call("trip", TRIP)
    time.now += WAITS_MS + 1000
    (asked,) = questions(reply)
    assert answer(client, asked).status == 400
    assert client.resume(reply.last_id).code == INVALID_REQUEST


def test_an_answer_is_taken_once(client: SessionClient) -> None:
    reply = client.call("trip", TRIP)
    (asked,) = questions(reply)
    assert client.respond(asked["id"], accept(place="Rome")).status == 202
    assert client.respond(asked["id"], accept(place="Paris")).status == 202
    (second,) = questions(client.resume(reply.last_id))
    assert second["params"]["message"] == "How long in Rome?"
    assert client.respond(asked["id"], accept(place="Oslo")).status == 202, "the round is over"
    assert client.respond(second["id"], accept(days=3)).status == 202
    assert "3 days in Rome" in str(client.resume(reply.last_id).result)
    assert client.respond(second["id"], accept(days=4)).status == 202, "the call is over"


WRONG: Final[dict[str, tuple[Callable[[str], Any], Any]]] = {
    "a content of another type": (lambda asked: asked, accept(place=1)),
    "no action": (lambda asked: asked, {}),
    "no such question": (lambda asked: asked.replace(".place", ".other"), accept(place="Rome")),
    "no such call": (lambda asked: f"call.c1-{'0' * 32}.place", accept(place="Rome")),
    "no id of the server's": (lambda asked: 7, accept(place="Rome")),
    "an id without a key": (lambda asked: "call.c1", accept(place="Rome")),
}


@pytest.mark.parametrize(("made", "result"), WRONG.values(), ids=WRONG)
def test_an_answer_to_no_question_changes_nothing(
    stack: Stack, client: SessionClient, made: Callable[[str], Any], result: Any
) -> None:
    (asked,) = questions(client.call("trip", TRIP))
    before = items(stack)
    reply = client.respond(made(asked["id"]), result)
    assert (reply.status, reply.code) == (400, INVALID_REQUEST)
    assert items(stack) == before


def test_another_session_neither_answers_nor_resumes(stack: Stack, client: SessionClient) -> None:
    reply = client.call("trip", TRIP)
    (asked,) = questions(reply)
    other = SessionClient(stack)
    assert other.respond(asked["id"], accept(place="Rome")).status == 400
    assert other.resume(reply.last_id).status == 400
    assert other.call("trip", TRIP).status == 200, "with the same request id"
    assert len(items(stack)) == 2


@pytest.mark.parametrize("tool", ["trip", "polite"])
def test_an_error_is_an_answer_that_declines(client: SessionClient, tool: str) -> None:
    reply = client.call(tool, TRIP if tool == "trip" else {})
    (asked,) = questions(reply)
    error = {"code": -1, "message": "The user would not"}
    assert client.post({"jsonrpc": "2.0", "id": asked["id"], "error": error}).status == 202
    result = client.resume(reply.last_id).result
    assert result.get("isError", False) == (tool == "trip")


@pytest.mark.parametrize("kind", ["sampling", "roots"])
def test_a_client_may_refuse_what_has_no_action(client: SessionClient, kind: str) -> None:
    reply = client.call("needs", {"kinds": [kind]})
    (asked,) = questions(reply)
    error = {"code": -1, "message": "User rejected sampling request"}
    assert client.post({"jsonrpc": "2.0", "id": asked["id"], "error": error}).status == 202
    assert client.resume(reply.last_id).result["isError"]


def test_a_request_that_is_sent_again_is_the_same_call(stack: Stack, client: SessionClient) -> None:
    """Its client has lost the stream before it knew an event."""
    client.call("trip", TRIP)
    again = client.call("trip", TRIP)
    assert len(items(stack)) == 1
    ended = finish(client, again)
    assert client.call("trip", TRIP).response == ended.response


def test_a_request_id_is_used_once(stack: Stack, client: SessionClient) -> None:
    client.call("trip", TRIP)
    before = items(stack)
    assert client.call("trip", {"name": "Bob"}).code == INVALID_REQUEST
    assert items(stack) == before


def test_a_cancelled_call_is_not_run(stack: Stack, time: Time, client: SessionClient) -> None:
    reply = client.call("trip", TRIP)
    assert client.notify("notifications/cancelled", requestId=1).status == 202
    for asked in questions(reply):
        assert answer(client, asked).status == 202
    ended = client.resume(reply.last_id)
    assert ended.code == INTERNAL_ERROR
    assert "cancelled" in ended.response["error"]["message"]
    assert client.notify("notifications/cancelled", requestId=2).status == 202
    assert len(items(stack)) == 1


def test_an_error_ends_a_stream_that_is_resumed_after_it(
    stack: Stack, client: SessionClient
) -> None:
    reply = client.call("trip", TRIP)
    client.notify("notifications/cancelled", requestId=1)
    for _ in range(MAX_ERROR_RESPONSES):
        reply = client.resume(reply.last_id)
        assert reply.code == INTERNAL_ERROR
    assert client.resume(reply.last_id).status == 405


def test_a_claim_expires_with_the_instance_that_has_it(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reply = client.call("trip", TRIP)
    (asked,) = questions(reply)
    answer(client, asked)
    table, call_id = stack.deployment.call_table, asked["id"].split(".")[1]
    (item,) = items(stack)
    waiting = table.read(call_id, item["owner"]["S"], time.now)
    assert table.claim(waiting, "dead", time.now + MAX_CALL_MS + GRACE_MS, time.now)
    assert client.resume(reply.last_id).messages == []
    assert "How long in Rome?" in str(client.resume(reply.last_id).messages)
    # What the dead instance might still write is too late.
    assert not table.finish(waiting, "dead", {"result": {}}, time.now)
    assert not table.ask_again(waiting, "dead", waiting.questions, time.now)


def test_questions_that_aws_does_not_take_are_asked_when_the_claim_expires(
    stack: Stack, time: Time, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would be the response."""
    reply = client.call("trip", TRIP)
    (asked,) = questions(reply)
    answer(client, asked)
    with monkeypatch.context() as failing:
        throttled = refusing("dynamodb", "ProvisionedThroughputExceededException")
        failing.setattr(stack.deployment.call_table, "ask_again", lambda *_: throttled())
        assert client.resume(reply.last_id).messages == []
    time.now += MAX_CALL_MS + GRACE_MS
    assert "How long in Rome?" in str(client.resume(reply.last_id).messages)


def test_the_first_response_is_the_only_one(
    stack: Stack, time: Time, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is cancelled while it runs."""
    reply = client.call("polite")
    (asked,) = questions(reply)
    answer(client, asked)
    table, call_id = stack.deployment.call_table, asked["id"].split(".")[1]
    claim = table.claim

    def cancelled_meanwhile(*arguments: Any) -> bool:
        held = claim(*arguments)
        table.cancel(call_id, {"error": {"code": INTERNAL_ERROR, "message": "cancelled"}}, time.now)
        return held

    monkeypatch.setattr(table, "claim", cancelled_meanwhile)
    assert client.resume(reply.last_id).code == INTERNAL_ERROR


def test_an_unexpected_error_ends_the_call(
    stack: Stack, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = client.call("polite")
    (asked,) = questions(reply)
    answer(client, asked)
    ran: list[object] = []

    def crash(*arguments: Any) -> None:
        ran.append(arguments)
        raise RuntimeError("secret")

    monkeypatch.setattr(MultiRoundTrip, "run", crash)
    crashed = client.resume(reply.last_id)
    assert crashed.code == INTERNAL_ERROR
    assert "secret" not in str(crashed)
    assert client.resume(reply.last_id).response == crashed.response
    assert len(ran) == 1


def test_a_call_becomes_a_task_after_its_questions(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    """The task is followed where its call was."""
    time.meanwhile = []
    reply = client.call("arrive", {"place": "Rome"})
    for asked in questions(reply):
        answer(client, asked)
    reply = client.resume(reply.last_id)
    for asked in questions(reply):
        answer(client, asked)
    result = {"content": [{"type": "text", "text": "Arrived"}]}

    def completes() -> None:
        (row,) = stack.rows
        stack.deployment.task_table.complete(row["taskId"]["S"], result, time.now)

    time.meanwhile = [completes]
    ended = client.resume(reply.last_id)
    assert ended.result["content"] == result["content"]
    assert len(stack.rows) == 1
    assert client.resume(reply.last_id).result == ended.result


def test_a_call_for_a_task_is_answered_with_the_task_after_its_questions(
    stack: Stack, client: SessionClient
) -> None:
    params = {"name": "arrive", "arguments": {"place": "Rome"}, "task": {}}
    reply = finish(client, client.request("tools/call", params))
    (row,) = stack.rows
    assert reply.result["task"]["taskId"] == row["taskId"]["S"]


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_client_that_cannot_be_asked_gets_an_error(
    stack: Stack, time: Time, revision: str
) -> None:
    nothing = SessionClient(stack, revision, capabilities={})
    refused = nothing.call("trip", TRIP)
    assert (refused.status, refused.code) == (200, INVALID_REQUEST)
    assert "does not declare" in refused.response["error"]["message"]
    host = SessionClient(stack, revision, name="Visual Studio Code")
    refused = host.call("trip", TRIP)
    assert refused.code == INVALID_REQUEST
    assert items(stack) == []


def test_the_kinds_of_2025_03_26_are_sampling_and_roots(stack: Stack, time: Time) -> None:
    client = SessionClient(stack, "2025-03-26", capabilities=ALL_KINDS)
    stack.deployment.session_table.mark_resumes(_key_of(stack, client), 10**13)
    assert client.call("needs", {"kinds": ["form"]}).code == INVALID_REQUEST
    assert questions(client.call("needs", {"kinds": ["roots"]}, request_id=2))


def test_a_call_that_is_too_large_cannot_ask(stack: Stack, client: SessionClient) -> None:
    refused = client.call("trip", {"name": "A" * 200_000})
    assert refused.code == INVALID_PARAMS
    assert items(stack) == []


def test_a_response_that_is_too_large_is_given_once(client: SessionClient) -> None:
    reply = client.call("trip", {"name": "A" * 140_000})
    (asked,) = questions(reply)
    answer(client, asked)
    second = client.resume(reply.last_id)
    for asked in questions(second):
        answer(client, asked)
    assert "3 days" in str(client.resume(second.last_id).messages)


def test_a_call_counts_in_its_callers_quota_until_it_has_ended(stack: Stack, time: Time) -> None:
    stack.environment["LIMITS"] = replace(Limits(), max_open_calls=3).to_json()
    stack.serve()
    client = SessionClient(stack)
    first = client.call("trip", TRIP)
    assert client.call("trip", TRIP, request_id=2).status == 200
    assert client.call("trip", TRIP, request_id=3).status == 429
    finish(client, first)
    assert client.call("trip", TRIP, request_id=4).status == 200


def test_a_call_that_is_sent_again_after_its_end_is_not_counted_again(
    stack: Stack, time: Time
) -> None:
    stack.environment["LIMITS"] = replace(Limits(), max_open_calls=2).to_json()
    stack.serve()
    client = SessionClient(stack)
    ended = finish(client, client.call("trip", TRIP))
    assert client.call("trip", TRIP).result == ended.result
    for request_id in (2, 3):
        reply = finish(client, client.call("trip", TRIP, request_id=request_id))
        assert reply.result == ended.result


def test_a_stream_survives_that_aws_fails_for_a_moment(
    stack: Stack, time: Time, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would be the response."""
    reply = client.call("polite")
    (asked,) = questions(reply)
    answer(client, asked)
    table = stack.deployment.call_table
    refuse = refusing("dynamodb", "ProvisionedThroughputExceededException")
    claim, failures = table.claim, [1, 2]

    def fail_twice(*arguments: Any) -> Any:
        return refuse() if failures and failures.pop() else claim(*arguments)

    monkeypatch.setattr(table, "claim", fail_twice)
    monkeypatch.setattr(table, "finish", lambda *arguments: refuse())
    assert client.resume(reply.last_id).result["content"], "sent, although it could not be kept"
    assert not failures
