"""The event stream of a request: progress and log messages, then the response."""

from __future__ import annotations

import pytest

from tests.integration.support.client import Client

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
CALL = {"name": "narrate", "arguments": {"steps": 3}}


@pytest.mark.parametrize("token", ["t-1", 7, ""])
def test_progress_has_the_clients_token(plain_client: Client, token: str | int) -> None:
    answer = plain_client.request("tools/call", CALL, meta={"progressToken": token})
    assert answer.headers.get_content_type() == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    params = [n["params"] for n in answer.notifications]
    assert [p["progressToken"] for p in params] == [token] * 3
    assert [(p["progress"], p["total"]) for p in params] == [(0, 100), (33.33, 100), (66.67, 100)]
    assert answer.result["content"][0]["text"] == "3 steps"


@pytest.mark.parametrize(("level", "messages"), [("debug", 4), ("info", 3), ("warning", 0)])
def test_log_messages_of_the_requested_level_and_above_are_sent(
    plain_client: Client, level: str, messages: int
) -> None:
    answer = plain_client.request("tools/call", CALL, meta={LOG_LEVEL: level})
    methods = [n["method"] for n in answer.notifications]
    assert methods == ["notifications/message"] * messages


def test_a_response_without_notifications_is_plain_json(plain_client: Client) -> None:
    """The tool reports and logs; this request asks for neither."""
    answer = plain_client.request("tools/call", CALL)
    assert answer.headers.get_content_type() == "application/json"


def test_a_client_that_accepts_no_event_stream_gets_only_the_result(plain_client: Client) -> None:
    answer = plain_client.request(
        "tools/call", CALL, {"Accept": "application/json"}, {"progressToken": 1}
    )
    assert answer.headers.get_content_type() == "application/json"
    assert answer.result["content"][0]["text"] == "3 steps"


def test_an_unknown_level_is_refused(plain_client: Client) -> None:
    assert (
        plain_client.request("tools/call", CALL, meta={LOG_LEVEL: "loud"}).error["code"] == -32602
    )
