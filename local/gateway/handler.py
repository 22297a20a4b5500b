"""One HTTP request: API Gateway's part of it, and the function's streamed response."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from queue import Empty
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from local.deployment import STAGE
from local.http_server import Body, Server, shut_down

from .authorizer import DeniedError
from .invocation import Invocation, Part, Prelude
from .lambda_instances import InstancePool, TooManyInstancesError
from .proxy_event import Request
from .rest_api import Response, RestApi

MAX_BODY_BYTES: Final = 10 * 1024 * 1024
"""API Gateway's quota for a request's payload."""

CLIENT_CHECK_SECONDS: Final = 0.5
"""How often the gateway checks whether the client of a silent stream is still connected."""

HOP_BY_HOP_HEADERS: Final = ("connection", "content-length", "keep-alive", "transfer-encoding")
"""Headers that a function cannot set: they belong to the connection."""


class GatewayServer(Server):
    """An HTTP server that its handlers find the API and the function's instances on."""

    api: RestApi
    instances: InstancePool


class RequestHandler(BaseHTTPRequestHandler):
    """Handles one connection's requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: GatewayServer

    def __getattr__(self, name: str) -> Any:
        """http.server calls `do_<method>`. The API, not this class, decides on methods."""
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that http.server refuses with a gateway response instead of HTML."""
        self.close_connection = True
        # After a malformed request line http.server has set none.
        self.request_version = self.protocol_version
        self._refuse("DEFAULT_4XX", message or "Bad Request", status=code if code < 500 else 400)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log: the function logs a line for each request."""

    def _handle(self) -> None:
        try:
            body = self._read_body()
        except ValueError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))
            return
        request = self._request()
        method = self.server.api.method(request.resource, request.http_method)
        if method is None:
            self._refuse("MISSING_AUTHENTICATION_TOKEN", "Missing Authentication Token")
        elif body is None:
            self._refuse("REQUEST_TOO_LARGE")
        elif method.mock_response is not None:
            self._send(method.mock_response)
        else:
            try:
                context = method.authorizer.authorize(request) if method.authorizer else None
            except DeniedError as denied:
                self._refuse(denied.response_type, denied.message, denied.context)
            else:
                self._invoke(request.proxy_event(body, context), request.request_id)

    def _request(self) -> Request:
        stage, url = f"/{STAGE}", urlsplit(self.path)
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        return Request(
            api_id=self.server.api.api_id,
            http_method=self.command,
            resource=url.path.removeprefix(stage) if url.path.startswith(stage) else "",
            headers=headers,
            query=parse_qs(url.query, keep_blank_values=True),
            source_ip=self.client_address[0],
        )

    def _read_body(self) -> bytes | None:
        """Read the request's body to its end. Returns None when it is too large."""
        pieces, size = [], 0
        for piece in Body(self.headers, self.rfile):
            size += len(piece)
            if size <= MAX_BODY_BYTES:
                pieces.append(piece)
        return b"".join(pieces) if size <= MAX_BODY_BYTES else None

    def _invoke(self, event: Mapping[str, Any], request_id: str) -> None:
        try:
            invocation = self.server.instances.invoke(event)
        except TooManyInstancesError:
            self._refuse("THROTTLED")
            return
        try:
            self._stream(invocation, request_id)
        except OSError:
            self.server.instances.abandon(invocation)
            self.close_connection = True

    def _stream(self, invocation: Invocation, request_id: str) -> None:
        """Pass the function's response on. Raises OSError when the client has disconnected."""
        prelude = self._next_part(invocation)
        if not isinstance(prelude, Prelude):
            self._refuse("DEFAULT_5XX", status=502)
            return
        self.send_response(prelude.status)
        for name, value in prelude.headers.items():
            if name.lower() not in HOP_BY_HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("x-amzn-RequestId", request_id)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while isinstance(part := self._next_part(invocation), bytes):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        if part is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            # The status is sent already. The missing last chunk shows the client that the function
            # failed.
            self.close_connection = True
            shut_down(self.connection)

    def _next_part(self, invocation: Invocation) -> Part:
        while True:
            try:
                return invocation.parts.get(timeout=CLIENT_CHECK_SECONDS)
            except Empty:
                self._check_client()

    def _check_client(self) -> None:
        """Raise OSError when the client has closed the connection."""
        with contextlib.suppress(BlockingIOError):  # the client is connected and sends nothing
            if not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise ConnectionAbortedError

    def _refuse(
        self,
        response_type: str,
        message: str | None = None,
        context: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        self._send(self.server.api.gateway_response(response_type, message, context, status))

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
