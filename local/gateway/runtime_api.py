"""Lambda's Runtime API for one instance of a function that streams its responses.

`runtime_api_handler.py` has the HTTP side, which the instance's runtime talks to.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from queue import Empty, SimpleQueue

from .invocation import FunctionError, Invocation
from .runtime_api_handler import RefusedError, RuntimeApiServer


class RuntimeApi:
    """A server on a port of its own, and the state of the instance's current invocation.

    `on_next` is called each time the instance asks for an event: it is idle then.
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
        self._queue: SimpleQueue[Invocation | None] = SimpleQueue()
        self._initialized = False
        self._current: Invocation | None = None
        self._response_begun = False
        """Whether the current invocation's response has begun: Lambda refuses a second one."""
        self._closed = False
        self.server = RuntimeApiServer(self)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> RuntimeApi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The value of the environment variable AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self.server.server_port}"

    def invoke(self, invocation: Invocation) -> Invocation:
        """Give the instance an event as soon as it asks for one."""
        with self._lock:
            if self._closed:
                invocation.parts.put(FunctionError("Runtime.ExitError"))
            else:
                self._queue.put(invocation)
        return invocation

    def drain(self, seconds: float) -> None:
        """Wait until all that the instance has sent before its end is read."""
        self._queue.put(None)
        self.server.wait_for_connections(seconds)

    def close(self, reason: str = "Runtime.ExitError") -> None:
        """Stop serving. Invocations that have not ended get a FunctionError with `reason`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            unfinished = [self._current] if self._current else []
        with contextlib.suppress(Empty):
            while invocation := self._queue.get_nowait():
                unfinished.append(invocation)
        for invocation in unfinished:
            invocation.parts.put(FunctionError(reason))
        self._queue.put(None)
        # No portable call wakes a thread in `accept`, but a connection does.
        with socket.create_connection(("127.0.0.1", self.server.server_port)):
            self._thread.join()
        self.server.close()

    def _serve(self) -> None:
        while not self._closed:
            self.server.handle_request()

    # The methods below are called by the handler of the instance's requests.

    def next_invocation(self) -> Invocation | None:
        """Wait for an event; None when there will be none. Raises RefusedError."""
        with self._lock:
            if self._current is not None:
                # The response to the last event is missing, or has not ended.
                raise RefusedError(HTTPStatus.FORBIDDEN, "InvalidStateTransition")
            self._initialized = True
        self._on_next()
        invocation = self._queue.get()
        with self._lock:
            if invocation is not None:
                self._current, self._response_begun = invocation, False
                if self._closed:
                    invocation.parts.put(FunctionError("Runtime.ExitError"))
        return invocation

    def begin_response(self, request_id: str) -> Invocation:
        """Return the current invocation, whose response begins. Raises RefusedError."""
        with self._lock:
            if self._current is None or self._current.request_id != request_id:
                raise RefusedError(HTTPStatus.BAD_REQUEST, "InvalidRequestID")
            if self._response_begun:
                raise RefusedError(HTTPStatus.FORBIDDEN, "InvalidStateTransition")
            self._response_begun = True
            return self._current

    def end_response(self, invocation: Invocation, error: FunctionError | None) -> None:
        """End the current invocation, with an error unless it is None."""
        with self._lock:
            self._current = None
        invocation.parts.put(error)

    def report_init_error(self, error: FunctionError) -> None:
        """Keep why the function's code could not be loaded. Raises RefusedError."""
        with self._lock:
            if self._initialized:
                raise RefusedError(HTTPStatus.FORBIDDEN, "InvalidStateTransition")
            self.init_error = error
