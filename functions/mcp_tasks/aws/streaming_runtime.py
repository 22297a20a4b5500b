"""Lambda's runtime loop for a function that streams its responses.

Lambda's managed Python runtime sends a response when it is complete. This loop replaces it (see the
start script api/exec_wrapper): it asks the Runtime API for the next event, and writes the response
in chunks (Lambda developer guide, "Building a custom runtime", "Enabling response streaming"). It
imports nothing but the standard library, so that a cold start loads little.

Errors are reported and logged by the name of their class: an exception's message may hold arguments
and answers (see `redaction`).
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPMessage
from typing import Any, Final, NoReturn

API: Final = "/2018-06-01/runtime"
SEPARATOR: Final = bytes(8)
"""Between the prelude, which is JSON, and the body."""
ERROR_TYPE: Final = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY: Final = "Lambda-Runtime-Function-Error-Body"
STREAMING: Final = {
    "Lambda-Runtime-Function-Response-Mode": "streaming",
    "Transfer-Encoding": "chunked",
    "Content-Type": "application/vnd.awslambda.http-integration-response",
    "Trailer": f"{ERROR_TYPE}, {ERROR_BODY}",
}


class NoAnswerError(Exception):
    """The handler returned without starting a response."""


class Response:
    """One HTTP response that is streamed. Writing raises OSError when the client has gone."""

    def __init__(self, connection: HTTPConnection, request_id: str) -> None:
        self._connection = connection
        self._path = f"{API}/invocation/{request_id}"
        self._started = False

    @property
    def started(self) -> bool:
        """Whether the status has been sent."""
        return self._started

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status and the headers: once, and before the first chunk."""
        if self._started:
            raise RuntimeError("The response has started")
        prelude = json.dumps({"statusCode": int(status), "headers": dict(headers)}).encode()
        self._started = True
        self._connection.putrequest("POST", f"{self._path}/response", skip_accept_encoding=True)
        for name, value in STREAMING.items():
            self._connection.putheader(name, value)
        self._connection.endheaders(_chunk(prelude + SEPARATOR))

    def write(self, data: bytes) -> None:
        """Send one chunk at once."""
        if not self._started:
            raise RuntimeError("The response has not started")
        if data:  # an empty chunk would end the response
            self._connection.send(_chunk(data))

    def end(self, failure: Exception | None) -> None:
        """End the response; `failure` is reported by the name of its class, without its message."""
        if failure is not None and not self._started:
            _post_error(self._connection, f"{self._path}/error", failure)
            return
        trailers = {}
        if failure is not None:
            body = base64.b64encode(_described(failure)).decode()
            trailers = {ERROR_TYPE: type(failure).__name__, ERROR_BODY: body}
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers.items())
        self._connection.send(f"0\r\n{lines}\r\n".encode())
        _finish(self._connection)


@dataclass(frozen=True, slots=True)
class Context:
    """The invocation's context, with the names of Lambda's managed Python runtime."""

    aws_request_id: str
    invoked_function_arn: str
    deadline_ms: int
    """When Lambda ends the invocation, in milliseconds since the epoch."""
    function_name: str = field(default_factory=lambda: _variable("FUNCTION_NAME"))
    function_version: str = field(default_factory=lambda: _variable("FUNCTION_VERSION"))
    memory_limit_in_mb: str = field(default_factory=lambda: _variable("FUNCTION_MEMORY_SIZE"))
    log_group_name: str = field(default_factory=lambda: _variable("LOG_GROUP_NAME"))
    log_stream_name: str = field(default_factory=lambda: _variable("LOG_STREAM_NAME"))

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the deadline."""
        return max(0, self.deadline_ms - time.time_ns() // 1_000_000)


StreamingHandler = Callable[[dict[str, Any], Context, Response], None]


def serve(load: Callable[[], StreamingHandler]) -> NoReturn:
    """Handle events, one after the other, until the Runtime API cannot be reached.

    `load` imports the function's code. When it fails, the error is reported to Lambda, and the
    process ends.
    """
    # No read timeout: the next event may be hours away, and Lambda freezes the process meanwhile.
    with closing(HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"], timeout=None)) as connection:
        try:
            handler = load()
        except Exception as failure:
            _log("The function could not be loaded", failure)
            with suppress(OSError, HTTPException):
                _post_error(connection, f"{API}/init/error", failure)
            sys.exit(1)
        while True:
            try:
                connection.request("GET", f"{API}/invocation/next")
                headers, event = _finish(connection)
            except (OSError, HTTPException) as gone:
                sys.exit(f"The Runtime API cannot be reached: {type(gone).__name__}")
            _answer(connection, handler, headers, json.loads(event))


def _answer(
    connection: HTTPConnection, handler: StreamingHandler, headers: HTTPMessage, event: Any
) -> None:
    """Handle one event."""
    os.environ["_X_AMZN_TRACE_ID"] = headers.get("Lambda-Runtime-Trace-Id") or ""
    context = Context(
        aws_request_id=headers["Lambda-Runtime-Aws-Request-Id"],
        invoked_function_arn=headers.get("Lambda-Runtime-Invoked-Function-Arn") or "",
        deadline_ms=int(headers["Lambda-Runtime-Deadline-Ms"]),
    )
    response = Response(connection, context.aws_request_id)
    failure = None
    try:
        handler(event, context, response)
        if not response.started:
            raise NoAnswerError
    except Exception as raised:
        failure = raised
        _log("The handler failed", failure)
    try:
        response.end(failure)
    except (OSError, HTTPException) as gone:
        _log("The client has gone", gone)
        connection.close()  # the next request opens another


def _post_error(connection: HTTPConnection, path: str, failure: Exception) -> None:
    connection.request("POST", path, _described(failure), {ERROR_TYPE: type(failure).__name__})
    _finish(connection)


def _finish(connection: HTTPConnection) -> tuple[HTTPMessage, bytes]:
    """Read the Runtime API's response to its end, so that the connection can be used again."""
    response = connection.getresponse()
    body = response.read()
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise HTTPException(f"The Runtime API answered {response.status}")
    return response.headers, body


def _described(failure: Exception) -> bytes:
    """The error as Lambda's API takes it, with the name of the class as its message."""
    name = type(failure).__name__
    return json.dumps({"errorType": name, "errorMessage": name}).encode()


def _log(what: str, failure: Exception) -> None:
    """Log the name of the class and every line that led to it, the innermost first; never the
    message. The lines of Python's own import system, which stand between an `import` and the module
    that it runs, are left out."""
    frames = reversed(traceback.extract_tb(failure.__traceback__))
    places = [f"{f.filename}:{f.lineno}" for f in frames if not f.filename.startswith("<frozen ")]
    print(f"{what}: {type(failure).__name__} in {', '.join(places)}", file=sys.stderr, flush=True)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _variable(name: str) -> str:
    return os.environ.get(f"AWS_LAMBDA_{name}", "")
