"""One connection of an event stream that can be resumed (2025-11-25 basic/transports.mdx,
"Resumability and Redelivery").

A stream ends before its function does. Its client then resumes it after the last event (SEP-1699),
on any instance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, TypeVar

from aws_lambda_powertools import Logger

from ...aws.errors import error_code, is_transient
from ...notifications.clock import Clock
from ...protocol import notifications
from ...protocol.errors import ErrorCode, ProtocolError
from ...protocol.meta import META_MEMBER
from ...tasks.questions import Question
from ..call import Call
from ..response_channel import StreamEvent
from ..stream_position import EventIds, StreamPosition

READ_INTERVAL_SECONDS: Final = 0.5
"""Between two reads of what a stream waits for."""

BUFFERED_MS: Final = 24_000
"""How long a buffered connection lasts: API Gateway waits 29 seconds for the whole response."""

STREAM_END_MS: Final = 10_000
"""How long before its function's deadline a streamed one ends."""

RETRY_MS: Final = 1_000
"""How long a client waits before it resumes a stream."""

QUIET_MS: Final = 15_000
"""The longest time without a sign of life."""

MAX_ERROR_RESPONSES: Final = 2
"""How often an error is sent as a response. One client resumes a stream that has ended so."""

Value = TypeVar("Value")

logger = Logger()

WriteRequest = Callable[[Question, str], Mapping[str, Any]]
"""From a question and the id of its request to the request's method and params."""


@dataclass(slots=True)
class StreamConnection:
    """Sends what comes after a position, and moves the position on."""

    call: Call
    position: StreamPosition
    event_ids: EventIds
    write_request: WriteRequest
    clock: Clock
    about: Mapping[str, Any] = field(default_factory=dict)
    """The members of `_meta` of every message."""
    began_at: int = field(init=False)
    quiet_since: int = field(init=False)
    sent: int = 0
    """How many messages this connection has brought."""

    def __post_init__(self) -> None:
        self.began_at = self.quiet_since = self.clock.now_ms()

    def begin(self, retry_ms: int = RETRY_MS) -> None:
        """Give a client that resumes the id of an event, before there is anything to tell.

        Raises ProtocolError (HTTP 405) for a stream that has ended with its response.
        """
        if self.position.ended >= MAX_ERROR_RESPONSES:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                "The event stream has ended with its response",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
            )
        if self.call.resumes:
            self.write(None, retry_ms=retry_ms)

    def is_over(self, buffered_ms: int = BUFFERED_MS) -> bool:
        """Whether it is time to end this connection; `buffered_ms` is how long a buffered one
        lasts."""
        return self.clock.now_ms() >= self.ends_at(buffered_ms)

    def ends_at(self, buffered_ms: int = BUFFERED_MS) -> int:
        """When this connection ends, in milliseconds since the epoch."""
        deadline_ms = self.call.channel.deadline_ms
        return self.began_at + buffered_ms if deadline_ms is None else deadline_ms - STREAM_END_MS

    def wait(self, message: str | None = None) -> None:
        """Let the time to the next read pass. Before, show from time to time that the call goes on:
        proxies close an idle stream. `message` is for a progress notification."""
        if self.call.channel.streams and self.clock.now_ms() >= self.quiet_since + QUIET_MS:
            self.quiet_since = self.clock.now_ms()
            if self.position.progress_token is None:
                self.call.channel.keep_alive()
            self.progress(message)
        self.clock.sleep(READ_INTERVAL_SECONDS)

    def read(self, read: Callable[[], Value]) -> Value | None:
        """Read what the stream waits for; None when AWS fails for the moment, and there is time to
        try again. An error would be the response, and end the call."""
        try:
            return read()
        except Exception as error:
            if not is_transient(error) or (self.is_over() and not self.call.resumes):
                raise
            logger.warning("An event stream could not read", error=error_code(error))
            return None

    def progress(self, message: str | None) -> None:
        """A progress notification, if the client asked for them (progress.mdx)."""
        token = self.position.progress_token
        if token is None:
            return
        self.position = replace(self.position, progress=self.position.progress + 1)
        self.write(notifications.progress(token, self.position.progress, None, message))

    def ask(self, questions: Mapping[str, Question], after: StreamPosition) -> None:
        """Send questions as requests, by the ids of these. The last one's event leads to the
        position `after`: a client that has lost one of them is sent all again."""
        for n, (request_id, question) in enumerate(questions.items(), 1):
            if n == len(questions):
                self.position = after
            request = self.write_request(question, request_id)
            self.write({"jsonrpc": "2.0", "id": request_id, **request})

    def before_error(self) -> None:
        """Count an error that is about to be sent as the response."""
        self.position = replace(self.position, ended=self.position.ended + 1)
        if self.call.resumes:
            self.write(None)

    def write(self, message: Mapping[str, Any] | None, retry_ms: int | None = None) -> None:
        """Send an event with the id of the position."""
        now = self.clock.now_ms()
        if message is not None:
            message = self._with_meta(message)
        event_id = self.event_ids.of(self.position, self.call, now)
        self.call.channel.write(StreamEvent(message, event_id, retry_ms))
        if message is not None:
            self.sent += 1
            self.quiet_since = now

    def _with_meta(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        params = message.get("params", {})
        about = {**params.get(META_MEMBER, {}), **self.about}
        return {**message, "params": {**params, META_MEMBER: about}} if about else message
