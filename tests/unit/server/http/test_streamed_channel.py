"""Streamed responses: each notification is an event at once (streamable-http.mdx)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_tasks import crash_report
from mcp_tasks.protocol.errors import invalid_params
from mcp_tasks.protocol.headers import Headers
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.call import Call, Complete, Method
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.event_stream import EVENT_STREAM_HEADERS, end_stream, streamed_channel
from mcp_tasks.server.http.messages import JSON_HEADERS, HttpRequest, HttpResponse
from mcp_tasks.server.methods.subscriptions import STREAM_END_MS, STREAMED_MAX_BYTES
from mcp_tasks.server.server_methods import ServerMethods
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.task import ANYONE
from tests import wire
from tests.unit.support.aws import Calls
from tests.unit.support.listening import Streamed, Taken, Time, events
from tests.unit.support.stack import Answer, buffered, meta, mirrored
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
    """The messages that a client reads."""
    return [json.loads(data) for data in events(taken.text)]


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


@pytest.mark.parametrize(("status", "sent"), [(202, 202), (204, 200)])
def test_an_answer_without_a_message_ends_with_a_byte(status: int, sent: int) -> None:
    """Streams of no bytes are reported never to end; a 204 has no body (RFC 9110, 15.3.5)."""
    taken = Taken()
    end_stream(HttpResponse(status), taken)
    assert (taken.status, taken.headers, taken.pieces) == (sent, {}, [b"\n"])


def test_a_stream_of_no_events_ends_without_more() -> None:
    """One that its client has to resume."""
    taken = Taken()
    streamed_channel(taken, 0).send(NOTE)
    end_stream(HttpResponse(200), taken)
    assert messages(taken) == [NOTE]


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


def test_what_keeps_a_stream_alive_may_begin_it() -> None:
    """A call has nothing to tell for a while, and its client asked for no progress."""
    taken = Taken()
    channel = streamed_channel(taken, 0)
    channel.keep_alive()
    assert (taken.status, taken.headers) == (200, EVENT_STREAM_HEADERS)
    end_stream(HttpResponse(200, RESULT), taken)
    assert messages(taken) == [json.loads(RESULT)]


def test_a_client_of_json_alone_gets_no_comment() -> None:
    def method(call: Call) -> Complete:
        call.channel.keep_alive()
        return Complete({"content": []})

    asked, taken = http("tools/call", {"name": "x"}), Taken()
    headers = {**request("tools/call", {"name": "x"})["headers"], "Accept": "application/json"}
    asked = HttpRequest(Headers({n: [v] for n, v in headers.items()}), asked.body, asked.caller)
    end_stream(offering(method).answer(asked, streamed_channel(taken, 0)), taken)
    assert taken.headers == JSON_HEADERS


def test_a_subscription_ends_before_its_function_does() -> None:
    """Lambda ends a stream at the deadline without an event; it streams 200 MB at most."""
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


def test_a_closed_connection_is_an_error_for_the_runtime() -> None:
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
    aws: Calls,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    params: dict[str, Any],
    options: dict[str, Any],
) -> None:
    monkeypatch.setattr(crash_report, "reference_of", lambda error: "0123456789ab")
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
