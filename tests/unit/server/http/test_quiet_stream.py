"""A quiet stream is kept alive: API Gateway ends one that is idle (developer guide, "Stream the
integration response for your proxy integrations in API Gateway")."""

from __future__ import annotations

import threading

import pytest

from mcp_tasks.server.http.event_stream import COMMENT, end_stream, streamed_channel
from mcp_tasks.server.http.messages import JSON_HEADERS, HttpResponse
from mcp_tasks.server.http.quiet_stream import QUIET_SECONDS, kept_alive
from tests.unit.support.listening import Taken, events

NOTE = {"jsonrpc": "2.0", "method": "notifications/x"}
RESULT = '{"jsonrpc": "2.0", "id": 1, "result": {}}'
EDGE_IDLE_SECONDS = 30


class Watched(Taken):
    """Tells when so many pieces have arrived."""

    def __init__(self, pieces: int) -> None:
        super().__init__()
        self.wanted = pieces
        self.have_arrived = threading.Event()

    def write(self, data: bytes) -> None:
        super().write(data)
        if len(self.pieces) >= self.wanted:
            self.have_arrived.set()


def test_comments_come_before_any_endpoint_calls_a_stream_idle() -> None:
    assert QUIET_SECONDS < EDGE_IDLE_SECONDS


def test_a_tool_that_says_nothing_is_kept_alive() -> None:
    taken = Watched(3)
    with kept_alive(streamed_channel(taken, 0), 0.01):
        assert taken.have_arrived.wait(10)
    end_stream(HttpResponse(200, RESULT), taken)
    assert taken.headers["Content-Type"] == "text/event-stream"
    assert set(taken.pieces[:-1]) == {COMMENT}
    assert events(taken.text) == [RESULT]


def test_no_comment_comes_after_the_end() -> None:
    """The thread has ended by then: Lambda freezes the process, and the next response follows."""
    taken = Watched(1)
    with kept_alive(streamed_channel(taken, 0), 0.01):
        assert taken.have_arrived.wait(10)
    assert [t for t in threading.enumerate() if t.name == "keep-alive"] == []


def test_a_quick_answer_is_json() -> None:
    taken = Taken()
    with kept_alive(streamed_channel(taken, 0)):
        pass
    end_stream(HttpResponse(200, RESULT), taken)
    assert (taken.headers, taken.text) == (JSON_HEADERS, RESULT)


def test_a_comment_does_not_come_within_an_event() -> None:
    """A thousand events and as many comments as there is time for: each piece is whole."""
    taken = Watched(1)
    with kept_alive(streamed_channel(taken, 0), 0) as channel:
        assert taken.have_arrived.wait(10)
        for _ in range(1000):
            channel.send(NOTE)
    assert len(events(taken.text)) == 1000


def test_a_stream_that_was_just_written_to_is_not_quiet() -> None:
    taken = Taken()
    with kept_alive(streamed_channel(taken, 0), 60) as channel:
        channel.send(NOTE)
        channel.keep_alive()
    assert len(taken.pieces) == 2


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_a_client_that_has_gone_is_noticed_by_the_next_event(error: type[OSError]) -> None:
    tried = threading.Event()

    class Gone(Taken):
        def write(self, data: bytes) -> None:
            tried.set()
            raise error

    with kept_alive(streamed_channel(Gone(), 0), 0.01) as channel:
        assert tried.wait(10)
        with pytest.raises(error):
            channel.send(NOTE)
