"""A server of this machine that answers as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answers = dict[str, tuple[int, dict[str, str], Any]]
"""Status, headers and body, by "METHOD /path", by "METHOD", or by the JSON-RPC method. A text
`{url}` stands for the server's own URL."""


class Answering(BaseHTTPRequestHandler):
    """Answers from `answers`."""

    answers: Answers
    url: str

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.take(json.loads(self.rfile.read(length)))

    def take(self, message: dict[str, Any]) -> None:
        """Answer a JSON-RPC message."""
        self.answer(str(message["method"]))

    def do_GET(self) -> None:
        self._answer_method()

    do_DELETE = do_PUT = do_PATCH = do_OPTIONS = do_GET

    def _answer_method(self) -> None:
        name = f"{self.command} {self.path}"
        self.answer(name if name in self.answers else self.command)

    def answer(self, name: str) -> None:
        """Send an answer of the table."""
        status, headers, body = self.answers[name]
        data = json.dumps(body).replace("{url}", self.url).encode()
        self.send_response(status)
        for key, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(key, value.replace("{url}", self.url))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(answers: Answers, handler: type[Answering] = Answering) -> Iterator[str]:
    """Serve. Yields the endpoint's URL."""
    answering = type("Serving", (handler,), {"answers": answers})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answering)
    url = answering.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"{url}/v1/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
