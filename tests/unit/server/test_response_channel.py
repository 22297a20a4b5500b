"""The ways of an answer: as a whole, and as it happens (basic/transports/streamable-http.mdx)."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.protocol.errors import invalid_params
from mcp_tasks.protocol.headers import Headers
from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.server.call import Call, Complete, Method
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.event_stream import EVENT_STREAM_HEADERS, end_stream, streamed_channel
from mcp_tasks.server.http.messages import JSON_HEADERS, HttpRequest, HttpResponse
from mcp_tasks.server.methods.subscriptions import STREAM_END_MS, STREAMED_MAX_BYTES
from mcp_tasks.server.response_channel import response_size
from mcp_tasks.server.server_methods import ServerMethods
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.ids import new_task_id
from mcp_tasks.tasks.task import ANYONE
from mcp_tasks.tasks.task_table import TaskTable
from tests import wire
from tests.unit.support.aws import Calls, create_callers, create_mailboxes, create_table, real
from tests.unit.support.cloud import Context
from tests.unit.support.example_task import a_task
from tests.unit.support.listening import Streamed, Taken, Time, events
from tests.unit.support.stack import ENVIRONMENT, LOGGER, Answer, buffered, meta, mirrored
from tests.unit.support.whole import whole_stack

HEARD: Final = {"progressToken": "token", "io.modelcontextprotocol/logLevel": "debug"}
NOTE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "method": "notifications/x",
    "params": {"a": "ä\n"},
}
RESULT: Final = '{"jsonrpc": "2.0", "id": 1, "result": {}}'


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A proxy event."""
    params = {**params, "_meta": {**meta(), **params.get("_meta", {})}}
    return {
        "headers": mirrored(method, params),
        "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        "requestContext": {"identity": {}},
    }


def http(method: str, params: dict[str, Any]) -> HttpRequest:
    """A request of anyone's."""
    event = request(method, params)
    headers = {name: [value] for name, value in event["headers"].items()}
    return HttpRequest(Headers(headers), event["body"].encode(), Caller(ANYONE))


def messages(taken: Taken) -> list[Any]:
    """What a client reads."""
    return [json.loads(data) for data in events(taken.text)]


# the streamed channel


def test_a_stream_begins_with_its_first_notification() -> None:
    """Until then, an answer may have another status."""
    taken = Taken()
    channel = streamed_channel(taken, 0)
    assert not taken.started
    channel.send(NOTE)
    assert (taken.status, taken.headers) == (200, EVENT_STREAM_HEADERS)
    assert taken.pieces == [f"event: message\ndata: {json.dumps(NOTE)}\n\n".encode()]
    channel.send(NOTE)
    assert messages(taken) == [NOTE, NOTE]


def test_the_answer_is_the_last_event() -> None:
    taken = Taken()
    streamed_channel(taken, 0).send(NOTE)
    end_stream(HttpResponse(500, RESULT), taken)
    assert taken.status == 200
    assert messages(taken) == [NOTE, json.loads(RESULT)]


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_an_answer_without_notifications_is_json_with_its_own_status(status: int) -> None:
    taken = Taken()
    end_stream(HttpResponse(status, RESULT), taken)
    assert (taken.status, taken.headers, taken.text) == (status, JSON_HEADERS, RESULT)


def test_an_answer_without_a_message_has_no_body() -> None:
    taken = Taken()
    end_stream(HttpResponse(202), taken)
    assert (taken.status, taken.headers, taken.pieces) == (202, {}, [])


def test_what_keeps_a_stream_alive_is_no_event() -> None:
    """WHATWG HTML, 9.2.6: a line that starts with a colon is ignored."""
    taken = Taken()
    channel = streamed_channel(taken, 0)
    channel.send(NOTE)
    channel.keep_alive()
    assert taken.pieces[1:] == [b": keep-alive\n\n"]
    channel.send(NOTE)
    channel.keep_alive()
    end_stream(HttpResponse(200, RESULT), taken)
    assert messages(taken) == [NOTE, NOTE, json.loads(RESULT)]


def test_a_listen_ends_before_its_function_does() -> None:
    """Lambda cuts a stream off without a word; it streams 200 MB."""
    channel = streamed_channel(Taken(), 100_000)
    assert (channel.deadline_ms, channel.streams) == (100_000, True)
    assert channel.takes_notifications
    assert STREAM_END_MS > 0
    assert STREAMED_MAX_BYTES < 200_000_000


def offering(method: Method) -> Endpoint:
    """A server of nothing else."""
    identity = ServerIdentity("n", "1")
    return Endpoint(
        ServerMethods(identity, Catalogue(), method, method, method, method, {}, method)
    )


def test_progress_of_a_call_reaches_the_client_while_it_runs() -> None:
    arrived: list[int] = []
    way = Streamed(Time())

    def method(call: Call) -> Complete:
        for step in range(3):
            call.notifications.report(f"step {step}", step / 4)
            call.notifications.log("info", "a", None)
            arrived.append(len(events(way.taken.text)))
        return Complete({"content": []})

    way(offering(method), http("tools/call", {"name": "x", "_meta": HEARD}))
    assert arrived == [2, 4, 6]
    assert len(messages(way.taken)) == 7


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(RuntimeError("hunter2"), 500, -32603), (invalid_params("no"), 400, -32602)],
)
def test_an_error_has_its_status_as_long_as_nothing_was_sent(
    error: Exception, status: int, code: int
) -> None:
    way = Streamed(Time())

    def method(call: Call) -> Complete:
        call.notifications.report("heard", 0.5)
        raise error

    way(offering(method), http("tools/call", {"name": "x"}))
    assert (way.taken.status, way.taken.headers) == (status, JSON_HEADERS)
    assert json.loads(way.taken.text)["error"]["code"] == code
    way(offering(method), http("tools/call", {"name": "x", "_meta": HEARD}))
    assert (way.taken.status, way.taken.headers) == (200, EVENT_STREAM_HEADERS)
    assert [message.get("error", {}).get("code") for message in messages(way.taken)] == [None, code]
    assert "hunter2" not in way.taken.text


def test_a_client_that_is_gone_is_told_to_the_runtime() -> None:
    """Which logs it, and goes on to the next event."""

    class Gone(Taken):
        def write(self, data: bytes) -> None:
            raise BrokenPipeError

    def method(call: Call) -> Complete:
        call.notifications.report("heard", 0.5)
        return Complete({"content": []})

    taken = Gone()
    answer = offering(method).answer(
        http("tools/call", {"name": "x", "_meta": HEARD}), streamed_channel(taken, 0)
    )
    with pytest.raises(BrokenPipeError):
        end_stream(answer, taken)


POSTS: Final[list[tuple[str, dict[str, Any], dict[str, Any]]]] = [
    ("tools/list", {}, {}),
    ("server/discover", {}, {}),
    ("tools/call", {"name": "noisy", "_meta": HEARD}, {}),
    ("tools/call", {"name": "noisy", "_meta": HEARD}, {"headers": {"Accept": "application/json"}}),
    ("tools/call", {"name": "noisy", "_meta": HEARD, "arguments": {"fail": "x"}}, {}),
    ("tools/call", {"name": "noisy", "arguments": {"fail": "x"}}, {}),
    ("tools/call", {"name": "nothing of the kind"}, {}),
    ("tools/call", {"name": "noisy", "_meta": HEARD}, {"revision": "2025-06-18"}),
    ("ping", {}, {"revision": "2025-03-26"}),
    ("nonsense", {}, {}),
    (wire.LISTEN, {"notifications": {}}, {}),
    (wire.LISTEN, {"notifications": {"taskIds": [f"c1-{'0' * 32}"]}}, {}),
    (wire.LISTEN, {}, {}),
]


@pytest.mark.parametrize(("method", "params", "options"), POSTS)
def test_both_channels_bring_the_same_answer(
    aws: Calls, method: str, params: dict[str, Any], options: dict[str, Any]
) -> None:
    server = whole_stack(aws)
    answers: list[Answer] = []
    for way in (buffered, Streamed(Time())):
        server.way = way
        answers.append(server.post(method, params, **options))
    assert answers[0] == answers[1]


def test_both_channels_bring_the_same_batch(aws: Calls) -> None:
    server = whole_stack(aws)
    bodies = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "noisy"}}
            for n in range(2)
        ),
    ]
    for body in (bodies, bodies[:1]):
        answers = []
        for way in (buffered, Streamed(Time())):
            server.way = way
            answers.append(server.send(json.dumps(body), {}, revision="2025-03-26"))
        assert answers[0] == answers[1]
        assert len(answers[0].batch or []) == (2 if body is bodies else 0)


# the buffered one


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_the_size_of_an_answer_is_what_lambda_carries(value: Any) -> None:
    """A proxy response is JSON, in which the body is a string."""
    text = json.dumps(value)
    assert response_size(text) == len(json.dumps(text)) - len('""')


# the streaming function


@dataclass
class Invocation(Context):
    """What the runtime loop says beside the event."""

    remaining_ms: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    found.rule(monkeypatch)
    monkeypatch.setattr("mcp_tasks.tasks.task.now_ms", found.read)
    return found


@pytest.fixture
def function(
    moto: None, aws: Calls, catalogue: Catalogue, time: Time, tmp_path: Path, monkeypatch: Any
) -> Iterator[Callable[..., None]]:
    """The function as a new instance of it starts."""
    catalogue.write(tmp_path / FILE_NAME)
    ServerIdentity("n", "1").write(tmp_path)
    monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", tmp_path)
    session = SimpleNamespace(create_client=lambda service, config: real(service))
    monkeypatch.setattr("mcp_tasks.aws.clients.get_session", lambda: session)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    create_table()
    create_mailboxes()
    create_callers()
    sys.modules.pop("api.handler", None)
    yield importlib.import_module("api.streaming").load()
    del sys.modules["api.handler"]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(LOGGER.registered_handler, "stream", text)
    return text


def a_new_task(time: Time) -> str:
    """The id of a task that works."""
    now, task_id = time.now, new_task_id("c1")
    task = a_task(task_id=task_id, principal=ANYONE, created_at=now, last_updated_at=now)
    TaskTable(real("dynamodb"), ENVIRONMENT["TASKS_TABLE"]).create(task)
    return task_id


def test_the_function_holds_a_listen_as_long_as_it_may_run(
    function: Callable[..., None], time: Time
) -> None:
    task_id, began, taken = a_new_task(time), time.now, Taken()
    event = request(wire.LISTEN, {"notifications": {"taskIds": [task_id]}})
    function(event, Invocation(remaining_ms=40_000), taken)
    assert time.now - began == 40_000 - STREAM_END_MS
    wire.check_listen(1, messages(taken), [task_id])


def test_the_function_answers_what_is_no_stream(function: Callable[..., None]) -> None:
    taken = Taken()
    function(request("tools/call", {"name": "echo", "arguments": {"text": "hi"}}), Context(), taken)
    assert (taken.status, taken.headers) == (200, JSON_HEADERS)
    assert json.loads(taken.text)["result"]["content"] == [{"type": "text", "text": "hi"}]


def test_a_line_of_the_functions_log_is_of_its_own_invocation(
    function: Callable[..., None], time: Time, log: io.StringIO
) -> None:
    """Powertools, "Clearing all state": an instance that streams answers many, as any other."""
    task_id = a_new_task(time)
    call = request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    function(call, Invocation(aws_request_id="first"), Taken())
    listen = request(wire.LISTEN, {"notifications": {"taskIds": [task_id]}})
    function(listen, Invocation(aws_request_id="second", remaining_ms=0), Taken())
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    answered = [line for line in lines if line["message"] == "request answered"]
    assert [line["function_request_id"] for line in answered] == ["first", "second"]
    assert [line.get("tool") for line in answered] == ["echo", None]
    (listened,) = [line for line in lines if line["message"] == "subscription ended"]
    assert (listened["function_request_id"], listened["tasks"]) == ("second", 1)
