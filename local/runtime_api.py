"""Lambda's Runtime API, for one instance of a function whose answers are streams.

It takes and refuses what Lambda does (Lambda developer guide, "Using the Lambda runtime API" and
"Building a custom runtime", "Enabling response streaming"), and passes each chunk of an answer on
as it arrives. Standard library only.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from queue import Empty, SimpleQueue
from typing import Any, Final

from .http_server import Body, Server

API: Final = "/2018-06-01/runtime"
STREAM_TYPE: Final = "application/vnd.awslambda.http-integration-response"
SEPARATOR: Final = bytes(8)
ERROR_TYPE: Final = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY: Final = "Lambda-Runtime-Function-Error-Body"
PART_SECONDS: Final = 10
"""How long `Invocation.prelude` and `chunks` wait for a part."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """An answer's status and headers."""

    status: int
    headers: Mapping[str, str]


class FunctionError(Exception):
    """The function failed: before its answer, or in the middle of it."""

    def __init__(self, error_type: str, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(error_type)
        self.error_type = error_type
        self.body = dict(body or {})
        """What the runtime said: `errorType` and `errorMessage`."""


Part = Prelude | bytes | FunctionError | None
"""Of an answer: its prelude, its chunks, and how it ended; None is a good end."""


@dataclass(slots=True)
class Invocation:
    """One event, and the parts of its answer as they arrive."""

    event: Mapping[str, Any]
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    deadline_ms: int = 0
    """When its time is up, in milliseconds since the epoch."""
    parts: SimpleQueue[Part] = field(default_factory=SimpleQueue)

    def prelude(self) -> Prelude:
        """Wait for the status and the headers. Raises FunctionError, and Empty after a while."""
        part = self.parts.get(timeout=PART_SECONDS)
        if isinstance(part, FunctionError):
            raise part
        if not isinstance(part, Prelude):
            raise FunctionError("Runtime.InvalidResponse")
        return part

    def chunks(self) -> Iterator[bytes]:
        """The body, chunk by chunk, with or without the prelude before it. Raises as `prelude`."""
        while (part := self.parts.get(timeout=PART_SECONDS)) is not None:
            if isinstance(part, FunctionError):
                raise part
            if isinstance(part, bytes):
                yield part


class RefusedError(Exception):
    """A request that Lambda refuses."""

    def __init__(self, status: HTTPStatus, error_type: str) -> None:
        super().__init__(error_type)
        self.status = status
        self.error_type = error_type


class RuntimeApi:
    """A server on a port of its own. `invoke` is its other side.

    `on_next` is called when the instance asks for an event, and has thereby ended the one before.
    """

    def __init__(
        self,
        on_next: Callable[[], None] = lambda: None,
        function_arn: str = "arn:aws:lambda:us-east-1:000000000000:function:local",
    ) -> None:
        self.init_error: FunctionError | None = None
        self.function_arn = function_arn
        self._on_next = on_next
        self._lock = threading.Lock()
        self._events: SimpleQueue[Invocation | None] = SimpleQueue()
        self._initialized = False
        self._current: Invocation | None = None
        self._answering = False
        """Whether the current event has an answer: it gets no other."""
        self._closed = False
        self.server = _Server(self)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> RuntimeApi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The value of AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self.server.server_port}"

    def invoke(self, invocation: Invocation) -> Invocation:
        """Give the instance an event, as soon as it asks for one."""
        with self._lock:
            if self._closed:
                invocation.parts.put(FunctionError("Runtime.ExitError"))
            else:
                self._events.put(invocation)
        return invocation

    def drain(self, seconds: float) -> None:
        """The instance has ended; let what it has sent arrive."""
        self._events.put(None)
        self.server.wait_for_connections(seconds)

    def close(self, reason: str = "Runtime.ExitError") -> None:
        """Leave the instance without an API; the answer that it is at ends with `reason`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            outcome_unknown = [self._current] if self._current else []
        with contextlib.suppress(Empty):
            while event := self._events.get_nowait():
                outcome_unknown.append(event)
        for invocation in outcome_unknown:
            invocation.parts.put(FunctionError(reason))
        self._events.put(None)
        # `accept` has no portable way to be woken but by somebody who connects.
        with socket.create_connection(("127.0.0.1", self.server.server_port)):
            self._thread.join()
        self.server.close()

    def _serve(self) -> None:
        while not self._closed:
            self.server.handle_request()

    # What the handler of a request calls.

    def next(self) -> Invocation | None:
        """Wait for an event; None when there will be none."""
        with self._lock:
            if self._current is not None:
                # It has not answered the one before, or is in the middle of its answer.
                raise RefusedError(HTTPStatus.FORBIDDEN, "InvalidStateTransition")
            self._initialized = True
        self._on_next()
        invocation = self._events.get()
        with self._lock:
            if invocation is not None:
                self._current, self._answering = invocation, False
                if self._closed:
                    invocation.parts.put(FunctionError("Runtime.ExitError"))
        return invocation

    def answering(self, request_id: str) -> Invocation:
        """The event that the instance begins to answer."""
        with self._lock:
            if self._current is None or self._current.request_id != request_id:
                raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidRequestID")
            if self._answering:
                raise RefusedError(HTTPStatus.FORBIDDEN, "InvalidStateTransition")
            self._answering = True
            return self._current

    def answered(self, invocation: Invocation, end: FunctionError | None) -> None:
        """The answer has ended."""
        with self._lock:
            self._current = None
        invocation.parts.put(end)

    def failed_to_start(self, error: FunctionError) -> None:
        """The function's code could not be loaded."""
        with self._lock:
            if self._initialized:
                raise RefusedError(HTTPStatus.FORBIDDEN, "InvalidStateTransition")
            self.init_error = error


class _Server(Server):
    def __init__(self, api: RuntimeApi) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        api = self.server.api
        if self.path != f"{API}/invocation/next":
            self._answer(HTTPStatus.NOT_FOUND, {"errorType": "NotFound"})
            return
        try:
            invocation = api.next()
        except RefusedError as error:
            self._answer(error.status, {"errorType": error.error_type})
            return
        if invocation is None:
            self.close_connection = True
            return
        self._answer(
            HTTPStatus.OK,
            invocation.event,
            {
                "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
                "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
                "Lambda-Runtime-Invoked-Function-Arn": api.function_arn,
                "Lambda-Runtime-Trace-Id": _trace_id(),
            },
        )

    def do_POST(self) -> None:
        body = Body(self.headers, self.rfile)
        try:
            match self.path.removeprefix(API).split("/")[1:]:
                case ["init", "error"]:
                    self.server.api.failed_to_start(self._error(body))
                case ["invocation", request_id, "error"]:
                    invocation = self.server.api.answering(request_id)
                    self.server.api.answered(invocation, self._error(body))
                case ["invocation", request_id, "response"]:
                    self._stream(request_id, body)
                case _:
                    raise RefusedError(HTTPStatus.NOT_FOUND, "NotFound")
        except RefusedError as error:
            body.skip()
            refused = {"errorType": error.error_type}
            self._answer(error.status, refused, {"Connection": "close"})
        else:
            self._answer(HTTPStatus.ACCEPTED, {"status": "OK"})

    def _stream(self, request_id: str, body: Body) -> None:
        """Pass an answer on. Whatever is wrong with it ends the invocation, too."""
        api = self.server.api
        invocation = api.answering(request_id)
        end: FunctionError | None = FunctionError("Runtime.TruncatedResponse")
        try:
            self._check_stream(body)
            for part in _parts(body):
                invocation.parts.put(part)
            end = self._trailing_error(body)
        except RefusedError as error:
            end = FunctionError(error.error_type)
            raise
        except ValueError:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidChunk") from None
        finally:
            api.answered(invocation, end)

    def _check_stream(self, body: Body) -> None:
        """Lambda takes buffered answers, too; but none of them would be a stream."""
        mode = self.headers.get("Lambda-Runtime-Function-Response-Mode")
        if mode != "streaming":
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidFunctionResponseMode")
        if not body.chunked:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidTransferEncoding")
        if self.headers.get_content_type() != STREAM_TYPE:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidContentType")

    def _trailing_error(self, body: Body) -> FunctionError | None:
        """An error in the middle of the stream. Trailers count when `Trailer` has named them."""
        named = {name.strip().lower() for name in self.headers.get("Trailer", "").split(",")}
        trailers = {name: text for name, text in body.trailers.items() if name in named}
        error_type = trailers.get(ERROR_TYPE.lower())
        if error_type is None:
            return None
        try:
            text = base64.b64decode(trailers.get(ERROR_BODY.lower(), ""), validate=True)
            return FunctionError(error_type, json.loads(text or b"{}"))
        except (binascii.Error, ValueError):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidErrorBody") from None

    def _error(self, body: Body) -> FunctionError:
        described = json.loads(b"".join(body) or b"{}")
        return FunctionError(self.headers.get(ERROR_TYPE, "Unhandled"), described)

    def _answer(
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

    def log_message(self, format: str, *args: Any) -> None:
        """One line per request would say nothing that the caller does not see."""


def _parts(body: Body) -> Iterator[Prelude | bytes]:
    """The prelude, and then the chunks."""
    seen = b""
    for piece in body:
        seen += piece
        head, separator, rest = seen.partition(SEPARATOR)
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
    """An X-Ray trace that is not sampled."""
    trace = uuid.uuid4().hex
    return f"Root=1-{int(time.time()):08x}-{trace[:24]};Parent={trace[16:]};Sampled=0"
