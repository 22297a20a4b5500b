"""The reader of streams that other tests use stops: no test waits for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from tests.integration.support.subscriptions import Stream


class _Endless(BaseHTTPRequestHandler):
    """Sends a message, and then comments without end; at `/silent`, only the message."""

    ended: Event

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b'data: {"method": "first"}\n')
        try:
            while not self.ended.wait(0.01):
                if self.path != "/silent":
                    self.wfile.write(b": still here\n")
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        """Write no access log."""


@pytest.fixture
def url() -> Iterator[str]:
    """A server whose streams never end."""
    ended = Event()
    handler = type("Endless", (_Endless,), {"ended": ended})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        ended.set()
        server.shutdown()
        thread.join()


def test_a_stream_that_does_not_end_fails(url: str) -> None:
    with pytest.raises(AssertionError, match="has not ended after"):
        list(Stream(url, b"{}", {}, seconds=0.1))


def test_another_thread_can_end_a_stream(url: str) -> None:
    """Even a silent stream."""
    stream = Stream(f"{url}/silent", b"{}", {})
    received: list[str] = []
    begun = Event()

    def listen() -> None:
        for message in stream:
            received.append(message.message["method"])
            begun.set()

    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(listen)
        assert begun.wait(10)
        start = time.monotonic()
        stream.disconnect()
        assert listening.exception(10) is None or isinstance(listening.exception(), HTTPException)
    assert time.monotonic() - start < 5
    assert received == ["first"]
