"""An endpoint and an issuer on this machine, which answer as a set-up has them answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Mapping[str, str], Any]
"""Status, headers, and a document or text. The text `hang up` breaks the connection off."""


class Site:
    """A server whose paths answer what they were given, and 404 in JSON otherwise."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.asked: list[str] = []
        """The paths that were asked for, in order; a POST begins with its method."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        thread.start()

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def origin(self) -> str:
        """The URL without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def serve(self, path: str, document: Any, status: int = 200, **headers: str) -> None:
        """Let a path answer. An underscore in a header's name stands for a hyphen."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies[path] = (status, named, document)


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.append(self.path)
            self._answer(site.replies.get(self.path, (404, {}, {"message": "Not found"})))

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            site.asked.append(f"{message['method']} {self.path}")
            self._answer(site.replies.get(f"POST {self.path}", (404, {}, {"message": "Not found"})))

        def _answer(self, reply: Reply) -> None:
            status, headers, document = reply
            if document == "hang up":
                self.close_connection = True
                return
            text = isinstance(document, str)
            body = document.encode() if text else json.dumps(document).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Type" not in headers:
                self.send_header("Content-Type", "text/html" if text else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    return Handler
