"""The requests that a function's runtime sends to Lambda's Runtime API.

Accepts and refuses what Lambda does. Sources: Lambda developer guide, "Using the Lambda runtime
API"; "Building a custom runtime", "Enabling response streaming".
"""

from __future__ import annotations

import base64
import binascii
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final

from local.http_server import Body, Server
from local.web_pages import refusal

from .invocation import FunctionError, Prelude

if TYPE_CHECKING:
    from .runtime_api import RuntimeApi

API_PATH: Final = "/2018-06-01/runtime"
STREAM_CONTENT_TYPE: Final = "application/vnd.awslambda.http-integration-response"
PRELUDE_END: Final = bytes(8)
"""Eight zero bytes stand between a stream's prelude and its body."""
ERROR_TYPE_HEADER: Final = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY_HEADER: Final = "Lambda-Runtime-Function-Error-Body"


class RefusedError(Exception):
    """Lambda refuses the runtime's request."""

    def __init__(self, status: HTTPStatus, error_type: str) -> None:
        super().__init__(error_type)
        self.status = status
        self.error_type = error_type


class RuntimeApiServer(Server):
    """The HTTP server of one instance's Runtime API, on a free port of 127.0.0.1."""

    def __init__(self, api: RuntimeApi) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), RuntimeRequestHandler)


class RuntimeRequestHandler(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: RuntimeApiServer

    def parse_request(self) -> bool:
        """Read a request's head. A web page's request is refused: it may forge a response."""
        if not super().parse_request():
            return False
        reason = refusal(self.headers.items())
        if reason:
            self.send_error(HTTPStatus.FORBIDDEN, reason)
        return reason is None

    def do_GET(self) -> None:
        """Give the runtime its next event."""
        api = self.server.api
        if self.path != f"{API_PATH}/invocation/next":
            self._send(HTTPStatus.NOT_FOUND, {"errorType": "NotFound"})
            return
        try:
            invocation = api.next_invocation()
        except RefusedError as error:
            self._send(error.status, {"errorType": error.error_type})
            return
        if invocation is None:
            self.close_connection = True
            return
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": api.function_arn,
            "Lambda-Runtime-Trace-Id": _trace_id(),
        }
        self._send(HTTPStatus.OK, invocation.event, headers)

    def do_POST(self) -> None:
        """Take a response, or an error."""
        body, api = Body(self.headers, self.rfile), self.server.api
        try:
            match self.path.removeprefix(API_PATH).split("/")[1:]:
                case ["init", "error"]:
                    api.report_init_error(self._error(body))
                case ["invocation", request_id, "error"]:
                    invocation = api.begin_response(request_id)
                    api.end_response(invocation, self._error(body))
                case ["invocation", request_id, "response"]:
                    self._take_response(request_id, body)
                case _:
                    raise RefusedError(HTTPStatus.NOT_FOUND, "NotFound")
        except RefusedError as error:
            body.skip()
            refusal = {"errorType": error.error_type}
            self._send(error.status, refusal, {"Connection": "close"})
        else:
            self._send(HTTPStatus.ACCEPTED, {"status": "OK"})

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log: the gateway's client sees each request's outcome."""

    def _take_response(self, request_id: str, body: Body) -> None:
        """Pass a response on. A malformed response ends its invocation with an error, too."""
        api = self.server.api
        invocation = api.begin_response(request_id)
        # The outcome when the connection breaks.
        error: FunctionError | None = FunctionError("Runtime.TruncatedResponse")
        try:
            self._check_is_stream(body)
            for part in _parts(body):
                invocation.parts.put(part)
            error = self._trailing_error(body)
        except RefusedError as refused:
            error = FunctionError(refused.error_type)
            raise
        except ValueError:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidChunk") from None
        finally:
            api.end_response(invocation, error)

    def _check_is_stream(self, body: Body) -> None:
        """Refuse buffered responses. Lambda takes them, but this function has to stream."""
        mode = self.headers.get("Lambda-Runtime-Function-Response-Mode")
        if mode != "streaming":
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidFunctionResponseMode")
        if not body.chunked:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidTransferEncoding")
        if self.headers.get_content_type() != STREAM_CONTENT_TYPE:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidContentType")

    def _trailing_error(self, body: Body) -> FunctionError | None:
        """The error that ended the stream. Only trailers that `Trailer` has announced count."""
        announced = {name.strip().lower() for name in self.headers.get("Trailer", "").split(",")}
        trailers = {name: text for name, text in body.trailers.items() if name in announced}
        error_type = trailers.get(ERROR_TYPE_HEADER.lower())
        if error_type is None:
            return None
        try:
            text = base64.b64decode(trailers.get(ERROR_BODY_HEADER.lower(), ""), validate=True)
            return FunctionError(error_type, json.loads(text or b"{}"))
        except (binascii.Error, ValueError):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidErrorBody") from None

    def _error(self, body: Body) -> FunctionError:
        error = json.loads(b"".join(body) or b"{}")
        return FunctionError(self.headers.get(ERROR_TYPE_HEADER, "Unhandled"), error)

    def _send(
        self, status: HTTPStatus, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _parts(body: Body) -> Iterator[Prelude | bytes]:
    """Yield a stream's prelude, and then its chunks."""
    received = b""
    for piece in body:
        received += piece
        head, separator, rest = received.partition(PRELUDE_END)
        if separator:
            yield _prelude(head)
            if rest:
                yield rest
            break
    else:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidPrelude")
    yield from body


def _prelude(text: bytes) -> Prelude:
    try:
        prelude = json.loads(text)
        return Prelude(int(prelude["statusCode"]), dict(prelude.get("headers") or {}))
    except (KeyError, TypeError, ValueError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidPrelude") from None


def _trace_id() -> str:
    """An X-Ray trace header that is not sampled."""
    trace = uuid.uuid4().hex
    return f"Root=1-{int(time.time()):08x}-{trace[:24]};Parent={trace[16:]};Sampled=0"
