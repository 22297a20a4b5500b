"""The event stream of a call that became a task: what it brings, when it ends, how it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.server.methods.stream_connection import (
    BUFFERED_MS,
    MAX_ERROR_RESPONSES,
    READ_INTERVAL_SECONDS,
    RETRY_MS,
)
from mcp_tasks.server.stream_position import LIFETIME_MS
from mcp_tasks.tasks.questions import (
    FormQuestion,
    Kind,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    open_ask,
)
from mcp_tasks.tasks.state import Status
from tests import wire
from tests.unit.support.aws import SESSIONS, TABLE, refusing
from tests.unit.support.in_session import Reply, SessionClient, time_of
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.stack import Stack, buffered
from tests.unit.support.whole import HANDSHAKE

INVALID_REQUEST: Final = -32600
ALICE: Final = "arn:aws:iam::111122223333:user/alice"
MALLORY: Final = "arn:aws:iam::111122223333:user/mallory"
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Time:
    return time_of(stack, monkeypatch)


@pytest.fixture
def client(stack: Stack, time: Time) -> SessionClient:
    return SessionClient(stack)


def task_id(stack: Stack) -> str:
    """The only task's id."""
    (row,) = stack.rows
    found: str = row["taskId"]["S"]
    return found


def completes(stack: Stack, time: Time) -> Callable[[], None]:
    return lambda: _complete(stack, time)


def _complete(stack: Stack, time: Time) -> None:
    stack.deployment.task_table.complete(task_id(stack), RESULT, time.now)


def reports(stack: Stack, time: Time, message: str) -> Callable[[], None]:
    return lambda: stack.deployment.task_table.report(task_id(stack), message, time.now)


def asks(
    stack: Stack, time: Time, questions: dict[str, Question] | None = None
) -> Callable[[], None]:
    ask = open_ask("token", questions or {"who": FormQuestion("Who?", FORM)})
    return lambda: stack.deployment.task_table.ask(task_id(stack), ask, time.now)


def answers_reach(stack: Stack) -> list[Any]:
    """Where the answers that reach a waiting state are collected."""
    reached: list[Any] = []

    def send(**arguments: Any) -> dict[str, Any]:
        reached.append(arguments["output"])
        return {}

    stack.calls.instead["send_task_success"] = send
    return reached


def test_a_result_that_comes_in_time_is_the_response(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    time.meanwhile = [completes(stack, time)]
    reply = client.call("wait")
    assert reply.result["content"] == RESULT["content"]
    assert reply.events[0].message is None
    assert reply.events[0].id is not None
    assert reply.events[0].retry_ms == RETRY_MS


def test_a_stream_that_ends_too_early_is_resumed_on_another_instance(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reply = client.call("wait", request_id="a request")
    assert (reply.status, reply.messages) == (200, [])
    assert time.now >= BUFFERED_MS
    stack.serve()
    time.meanwhile = [completes(stack, time)]
    again = client.resume(reply.last_id)
    client.check("tools/call", again)
    assert again.result["content"] == RESULT["content"]
    assert again.response["id"] == "a request"
    # The response is not computed: it is there as long as the task is.
    assert client.resume(reply.last_id).response == again.response


def test_one_call_is_one_task(stack: Stack, time: Time, client: SessionClient) -> None:
    """A client that has lost the stream may also send the request again."""
    reply = client.call("wait")
    client.resume(reply.last_id)
    assert client.call("wait").status == 200
    assert len(stack.rows) == 1
    refused = client.call("count", {"upto": 3})
    assert (refused.status, refused.code) == (400, INVALID_REQUEST)
    assert "request id" in refused.response["error"]["message"]
    client.call("wait", request_id="1")  # a string is another id than the number
    assert len(stack.rows) == 2


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_a_client_that_may_not_resume_gets_no_stream_that_ends_too_early(
    stack: Stack, time: Time, version: str
) -> None:
    reply = SessionClient(stack, version).call("wait")
    assert not stack.rows
    assert reply.code == INVALID_REQUEST


@pytest.mark.parametrize("name", ["Visual Studio Code", "Visual Studio Code - Insiders"])
def test_visual_studio_code_does_not_resume(stack: Stack, time: Time, name: str) -> None:
    SessionClient(stack, name=name).call("wait")
    assert not stack.rows


@pytest.mark.parametrize("tool", ["count", "echo"])
def test_a_tool_that_may_run_within_the_request_does_so_without_a_session(
    stack: Stack, time: Time, client: SessionClient, tool: str
) -> None:
    client.session_id = None
    arguments = {"text": "a"} if tool == "echo" else {"upto": 3}
    assert "isError" not in client.call(tool, arguments).result
    assert not stack.rows


def test_progress_counts_up_over_all_connections(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    time.meanwhile = [reports(stack, time, "one"), reports(stack, time, "two")]
    first = client.call("wait", progressToken="t")
    time.meanwhile = [reports(stack, time, "three"), completes(stack, time)]
    second = client.resume(first.last_id)
    sent = [m["params"] for m in (*first.messages, *second.messages) if "method" in m]
    assert {params["progressToken"] for params in sent} == {"t"}
    counts = [params["progress"] for params in sent]
    assert counts == sorted(set(counts))
    assert [p["message"] for p in sent if "message" in p][-1] == "three"


def test_without_a_token_there_is_no_progress(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    time.meanwhile = [reports(stack, time, "one"), completes(stack, time)]
    assert len(client.call("wait").messages) == 1


def test_progress_is_not_held_back_for_as_long_as_a_stream_may_last(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    time.meanwhile = [reports(stack, time, "one")]
    began = time.now
    client.call("wait", progressToken="t")
    assert time.now - began < BUFFERED_MS / 2


def test_a_silent_call_shows_signs_of_life(stack: Stack, time: Time, client: SessionClient) -> None:
    """Some clients give up a call that makes no progress for a minute."""
    first_began = time.now
    first = client.call("wait", progressToken="t")
    assert [m["method"] for m in first.messages] == ["notifications/progress"]
    assert time.now - first_began >= BUFFERED_MS


def test_a_question_ends_a_buffered_stream_and_its_answer_reaches_the_task(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reached = answers_reach(stack)
    time.meanwhile = [asks(stack, time)]
    reply = client.call("wait")
    (question,) = reply.messages
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Who?"
    answer = {"action": "accept", "content": {"name": "Ada"}}
    assert client.respond(question["id"], answer).status == 202
    assert len(reached) == 1
    assert client.respond(question["id"], answer).status == 202, "a doubled answer"
    assert len(reached) == 1
    # The client knows the question: it is not asked again.
    time.meanwhile = [completes(stack, time)]
    assert client.resume(reply.last_id).result["content"] == RESULT["content"]


def test_a_question_that_a_lost_connection_brought_is_asked_again(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    time.meanwhile = [asks(stack, time, {"a": FormQuestion("A?", FORM), "b": RootsQuestion()})]
    reply = client.call("wait")
    assert len(reply.messages) == 2
    before, first, second = (event.id for event in reply.events)
    for event_id, asked in ((before, 2), (first, 2), (second, 0)):
        assert len(client.resume(event_id).messages) == asked


def test_an_unusable_answer_is_refused_and_the_question_stays(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    time.meanwhile = [asks(stack, time)]
    (question,) = client.call("wait").messages
    refused = client.respond(question["id"], {"action": "accept", "content": {"name": 5}})
    assert (refused.status, refused.code) == (400, INVALID_REQUEST)
    assert stack.deployment.task_table.get(task_id(stack), time.now).status is Status.INPUT_REQUIRED


@pytest.mark.parametrize("request_id", ["", "x", 7, "c1-", f"c1-{'0' * 32}", f"c1-{'0' * 32}.x"])
def test_an_answer_to_no_question_is_refused(client: SessionClient, request_id: Any) -> None:
    assert client.respond(request_id, {"action": "accept"}).status == 400


def test_an_answer_of_another_caller_changes_nothing(stack: Stack, time: Time) -> None:
    alice, mallory = SessionClient(stack, user_arn=ALICE), SessionClient(stack, user_arn=MALLORY)
    time.meanwhile = [asks(stack, time)]
    (question,) = alice.call("wait").messages
    answer = {"action": "accept", "content": {"name": "Mallory"}}
    assert mallory.respond(question["id"], answer).status == 400
    assert stack.deployment.task_table.get(task_id(stack), time.now).status is Status.INPUT_REQUIRED


def test_a_response_that_is_an_error_declines(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    reached = answers_reach(stack)
    time.meanwhile = [asks(stack, time)]
    (question,) = client.call("wait").messages
    error = {"code": -1, "message": "User rejected"}
    reply = client.post({"jsonrpc": "2.0", "id": question["id"], "error": error})
    assert reply.status == 202
    assert len(reached) == 1
    assert '"cancel"' in reached[0]


def test_a_cancelled_request_cancels_its_task(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    client.call("wait", request_id=7)
    assert client.notify("notifications/cancelled", requestId="7").status == 202
    assert stack.deployment.task_table.get(task_id(stack), time.now).status is Status.WORKING
    assert client.notify("notifications/cancelled", requestId=7, reason="tired").status == 202
    assert stack.deployment.task_table.get(task_id(stack), time.now).status is Status.CANCELLED


def test_a_request_of_another_session_is_not_cancelled(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    client.call("wait", request_id=7)
    SessionClient(stack).notify("notifications/cancelled", requestId=7)
    assert stack.deployment.task_table.get(task_id(stack), time.now).status is Status.WORKING


def fails(stack: Stack, time: Time) -> None:
    error = {"code": -32603, "message": "broken"}
    stack.deployment.task_table.fail(task_id(stack), error, time.now)


def test_a_failed_task_is_the_calls_error(stack: Stack, time: Time, client: SessionClient) -> None:
    """One client resumes the stream after an error: the second time, there is no more of it."""
    time.meanwhile = [lambda: fails(stack, time)]
    reply = client.call("wait")
    seen: list[Reply] = []
    while reply.status == 200:
        assert reply.response["error"] == {"code": -32603, "message": "broken"}
        seen.append(reply)
        reply = client.resume(reply.last_id)
    assert len(seen) == MAX_ERROR_RESPONSES
    assert reply.status == 405


def test_an_event_id_is_good_for_its_session_alone(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    event_id = client.call("wait").last_id
    other = SessionClient(stack)
    assert other.resume(event_id).status == 400
    other.session_id = None
    assert other.resume(event_id).status == 400
    assert client.resume(event_id).status == 200


@pytest.mark.parametrize("event_id", ["", "x", "c1-", "c1-AAAA", "c2-AAAA", "1"])
def test_an_unknown_event_id_is_refused(client: SessionClient, event_id: str) -> None:
    reply = client.resume(event_id)
    assert (reply.status, reply.code) == (400, INVALID_REQUEST)


def test_an_event_id_expires(stack: Stack, time: Time, client: SessionClient) -> None:
    event_id = client.call("wait").last_id
    time.now += LIFETIME_MS
    assert client.resume(event_id).status == 400


def test_a_client_of_an_older_revision_that_has_resumed_is_known_to(
    stack: Stack, time: Time
) -> None:
    """The streamed channel lasts; when its connection breaks, the client shows what it can do."""
    client = SessionClient(stack, "2025-06-18")
    stack.way = Streamed(time, remaining_ms=60_000)
    time.meanwhile = [reports(stack, time, "one"), completes(stack, time)]
    reply = client.call("wait", progressToken="t")
    assert reply.result["content"] == RESULT["content"]
    assert all(event.message is not None for event in reply.events)
    assert client.resume(reply.events[0].id).result["content"] == RESULT["content"]
    stack.serve()
    stack.way = buffered
    assert client.call("count", {"upto": 3}, request_id=2).messages == []


def test_a_streamed_stream_stays_open_over_a_question(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    stack.way = Streamed(time, remaining_ms=200_000)
    time.meanwhile = [asks(stack, time), completes(stack, time)]
    reply = client.call("wait")
    assert [m.get("method", "response") for m in reply.messages] == [
        "elicitation/create",
        "response",
    ]


# What it costs


def test_an_unaugmented_long_call_costs_what_a_task_costs_and_a_read_per_half_second(
    stack: Stack, time: Time, client: SessionClient
) -> None:
    stack.calls.forget()
    began = time.now
    time.meanwhile = [reports(stack, time, "at work")]
    reply = client.call("wait")
    waited = (time.now - began) / 1000
    session, put, start, *reads = stack.calls.made
    assert session.arguments["TableName"] == SESSIONS
    assert (put.operation, start.operation) == ("put_item", "start_execution")
    reads = [call for call in reads if call.operation != "update_item"]  # the worker's report
    assert {call.operation for call in reads} == {"get_item"}
    assert {call.arguments["TableName"] for call in reads} == {TABLE}
    assert len(reads) <= waited / READ_INTERVAL_SECONDS + 1
    stack.calls.forget()
    began = time.now
    client.resume(reply.last_id)
    session, *reads = stack.calls.made
    assert session.arguments["TableName"] == SESSIONS
    assert {call.operation for call in reads} == {"get_item"}
    assert len(reads) <= (time.now - began) / 1000 / READ_INTERVAL_SECONDS + 1


def test_a_connection_counts_in_its_callers_quota_of_calls(stack: Stack, time: Time) -> None:
    """A wait takes a function's instance, as a call does that runs within its request."""
    stack.environment["LIMITS"] = Limits(max_open_calls=1).to_json()
    stack.serve()
    client = SessionClient(stack)
    event_id = client.call("wait").last_id
    refused: list[Reply] = []
    time.meanwhile = [lambda: refused.append(client.resume(event_id))]
    assert client.resume(event_id).status == 200
    assert refused[0].status == 429


# The shape of questions


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_question_is_a_request_of_its_revision(stack: Stack, time: Time, version: str) -> None:
    questions: dict[str, Question] = {
        "form": FormQuestion("Who?", FORM),
        "url": UrlQuestion("Sign", "https://example.com/sign"),
        "model": SamplingQuestion({"messages": [MESSAGE], "maxTokens": 9}),
        "roots": RootsQuestion(),
    }
    stack.way = Streamed(time, remaining_ms=200_000)
    client = SessionClient(stack, version)
    kinds = {Kind.FORM, Kind.URL, Kind.SAMPLING, Kind.ROOTS} & KINDS[version]
    asked = {name: q for name, q in questions.items() if q.kind in kinds}
    time.meanwhile = [asks(stack, time, asked), completes(stack, time)]
    requests = client.call("wait").messages[:-1]
    assert len(requests) == len(asked)
    for request in requests:
        wire.check_request(request, version)
    params = [r["params"] for r in requests if r["method"] == "elicitation/create"]
    assert [p.get("mode") for p in params] == MODES[version]
    assert ["elicitationId" in p for p in params if p.get("mode") == "url"] == [True] * (
        version == "2025-11-25"
    )


MESSAGE: Final = {"role": "user", "content": {"type": "text", "text": "A poem"}}
KINDS: Final = {
    "2025-11-25": frozenset(Kind),
    "2025-06-18": frozenset({Kind.FORM, Kind.SAMPLING, Kind.ROOTS}),
    "2025-03-26": frozenset({Kind.SAMPLING, Kind.ROOTS}),
}
MODES: Final = {"2025-11-25": ["form", "url"], "2025-06-18": [None], "2025-03-26": []}


def test_a_stream_survives_that_aws_fails_for_a_moment(
    stack: Stack, time: Time, client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would be the response."""
    reply = client.call("wait")
    table = stack.deployment.task_table
    get, failures = table.get, [1, 2]

    def fail_twice(*arguments: Any) -> Any:
        if failures and failures.pop():
            return refusing("dynamodb", "ProvisionedThroughputExceededException")()
        return get(*arguments)

    monkeypatch.setattr(table, "get", fail_twice)
    time.meanwhile = [lambda: None, completes(stack, time)]
    assert client.resume(reply.last_id).result["content"] == RESULT["content"]
    assert not failures
