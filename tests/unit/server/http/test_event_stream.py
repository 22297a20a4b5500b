"""A request's own event stream (basic/transports/streamable-http.mdx, "Receiving Messages")."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

import pytest

from mcp_tasks.protocol.headers import Headers
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http.api_gateway import to_api_gateway
from mcp_tasks.server.http.event_stream import event
from mcp_tasks.server.http.messages import HttpRequest, HttpResponse
from mcp_tasks.server.response_channel import ResponseChannel, StreamEvent
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.aws import Calls
from tests.unit.support.stack import Answer, Stack, meta, mirrored
from tests.unit.support.whole import ALL_KINDS, accept, whole_stack

LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
HEARD: Final = {"progressToken": "token", LOG_LEVEL: "debug"}
EVENTS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
JSON: Final = {"Content-Type": "application/json"}


@pytest.fixture
def server(aws: Calls) -> Stack:
    return whole_stack(aws)


def noisy(server: Stack, about: dict[str, Any], accept: Any = "", **arguments: Any) -> Answer:
    """Call a tool that reports twice and logs once, then answers."""
    params = {"name": "noisy", "arguments": arguments, "_meta": about}
    headers = {} if accept == "" else {"Accept": accept}
    return server.post("tools/call", params, headers=headers)


def methods(answer: Answer) -> list[str]:
    return [message["method"].removeprefix("notifications/") for message in answer.notifications]


# When there is one


@pytest.mark.parametrize(
    ("about", "sent"),
    [
        ({"progressToken": 7}, ["progress", "progress"]),
        ({LOG_LEVEL: "info"}, ["message"]),
        (HEARD, ["progress", "progress", "message"]),
    ],
)
def test_requested_notifications_come_before_the_result(
    server: Stack, about: dict[str, Any], sent: list[str]
) -> None:
    answer = noisy(server, about)
    assert (answer.status, answer.headers) == (200, EVENTS)
    assert methods(answer) == sent
    assert answer.result["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize("about", [{}, {LOG_LEVEL: "warning"}, {LOG_LEVEL: "emergency"}])
def test_without_notifications_the_response_is_json(server: Stack, about: dict[str, Any]) -> None:
    answer = noisy(server, about)
    assert (answer.status, answer.headers) == (200, JSON)
    assert answer.notifications == []


def test_a_request_for_notifications_is_no_reason_for_a_stream(server: Stack) -> None:
    params = {"name": "doubled", "arguments": {"numbers": [1]}, "_meta": HEARD}
    for method, each in (("tools/call", params), ("tools/list", {"_meta": HEARD})):
        assert server.post(method, each).headers == JSON


@pytest.mark.parametrize(
    ("accept", "events"),
    [
        ("application/json, text/event-stream", True),
        ("text/event-stream", True),
        ("text/event-stream;q=0.5, application/json", True),
        ("*/*", True),
        ("text/*", True),
        (None, True),
        ("application/json", False),
        ("application/*", False),
        ("text/html", False),
    ],
)
def test_a_client_that_does_not_take_events_gets_the_result_alone(
    server: Stack, accept: str | None, events: bool
) -> None:
    answer = noisy(server, HEARD, accept)
    assert answer.headers == (EVENTS if events else JSON)
    assert len(answer.notifications) == (3 if events else 0)
    assert answer.result["content"] == [{"type": "text", "text": "done"}]


# What it ends with


def test_an_error_after_notifications_keeps_the_status_that_was_sent(server: Stack) -> None:
    """By then, a streamed channel has sent it."""
    answer = noisy(server, HEARD, fail="hunter2")
    assert (answer.status, answer.code) == (200, -32603)
    assert answer.headers == EVENTS
    assert len(answer.notifications) == 3
    assert "hunter2" not in json.dumps(answer.message)


@pytest.mark.parametrize("about", [{}, HEARD])
def test_an_error_alone_has_a_status_of_its_own(server: Stack, about: dict[str, Any]) -> None:
    answer = noisy(server, about, "application/json", fail="hunter2")
    assert (answer.status, answer.code, answer.headers) == (500, -32603, JSON)


def test_an_error_before_anything_was_sent_is_json(server: Stack) -> None:
    params = {"name": "missing", "_meta": HEARD}
    answer = server.post("tools/call", params)
    assert (answer.status, answer.code, answer.headers) == (400, -32602, JSON)


def test_a_tools_own_error_is_a_result(server: Stack) -> None:
    answer = noisy(server, HEARD, fail="tool")
    assert len(answer.notifications) == 3
    assert answer.result["isError"] is True


@pytest.mark.parametrize("level", ["loud", ""])
def test_a_level_that_there_is_not_is_a_crash_of_the_tools(server: Stack, level: str) -> None:
    answer = noisy(server, {}, level=level)
    assert (answer.status, answer.code) == (500, -32603)


def test_a_stream_may_end_with_a_question(server: Stack) -> None:
    """The request that brings the answers has a stream of its own."""
    params = {"name": "wander", "arguments": {}, "_meta": HEARD}
    asked = server.post("tools/call", params, capabilities=ALL_KINDS)
    assert asked.headers == EVENTS
    assert methods(asked) == ["progress"]
    responses = {"answer": accept(place="Rome")}
    done = server.repeat("tools/call", params, asked, responses, capabilities=ALL_KINDS)
    assert [m["params"]["progress"] for m in done.notifications] == [10, 90]
    assert done.result["content"][0]["text"] == "Rome"


# What it looks like


def test_an_answer_without_a_message_has_no_body() -> None:
    assert to_api_gateway(HttpResponse(HTTPStatus.ACCEPTED)) == {"statusCode": 202, "body": ""}


def test_each_message_is_one_event_of_one_line(server: Stack) -> None:
    """WHATWG HTML, section 9.2; without ids, because no stream can be taken up again."""
    params = {"name": "noisy", "_meta": {**meta(), **HEARD}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {name: [value] for name, value in mirrored("tools/call", params).items()}
    http = HttpRequest(Headers(headers), json.dumps(request).encode(), Caller(ANYONE))
    events = to_api_gateway(server.server.answer(http))["body"].split("\n\n")
    assert events.pop() == ""
    messages = []
    for each in events:
        kind, data = each.split("\n")
        assert kind == "event: message"
        messages.append(json.loads(data.removeprefix("data: ")))
    assert [message.get("id") for message in messages] == [None, None, None, 1]


@pytest.mark.parametrize("text", ["two\nlines", "a\r\nb", "a\rb", "\u2028", "\n\ndata: {}", "ä€😀"])
def test_no_text_breaks_an_event(text: str) -> None:
    sent = event(json.dumps({"text": text}))
    assert len(sent.splitlines()) == 3
    assert sent.endswith("\n\n")
    assert json.loads(sent.splitlines()[1].removeprefix("data: ")) == {"text": text}


def test_a_batch_comes_after_the_notifications_of_all(server: Stack) -> None:
    """2025-03-26: one stream for all responses."""
    arguments = {"level": "debug"}
    calls = [
        {
            "jsonrpc": "2.0",
            "id": token,
            "method": "tools/call",
            "params": {"name": "noisy", "arguments": arguments, "_meta": {"progressToken": token}},
        }
        for token in ("one", "two")
    ]
    answer = server.send(json.dumps(calls), {}, revision="2025-03-26")
    assert answer.headers == EVENTS
    tokens = [message["params"]["progressToken"] for message in answer.notifications]
    assert tokens == ["one", "one", "two", "two"]
    assert [message["id"] for message in answer.batch or []] == ["one", "two"]


def test_a_streamed_channel_gets_each_notification_as_it_happens(server: Stack) -> None:
    params = {"name": "noisy", "_meta": {**meta(), **HEARD}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {name: [value] for name, value in mirrored("tools/call", params).items()}
    sent: list[StreamEvent] = []
    for taken, expected in (("text/event-stream", 3), ("application/json", 0)):
        sent.clear()
        http = HttpRequest(
            Headers({**headers, "Accept": [taken]}), json.dumps(request).encode(), Caller(ANYONE)
        )
        answer = server.server.answer(http, ResponseChannel(sent.append, deadline_ms=0))
        assert len(sent) == expected
        assert answer.events == []
        assert json.loads(answer.message or "")["id"] == 1
