"""Server-sent events: the JSON-RPC messages of a response as an event stream.

Sources: basic/transports/streamable-http.mdx, "Receiving Messages"; 2025-11-25
basic/transports.mdx, "Sending Messages to the Server"; WHATWG HTML, section 9.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Protocol

from ..response_channel import ResponseChannel, StreamEvent
from .messages import HttpResponse

# "Servers SHOULD include the X-Accel-Buffering: no header" (Receiving Messages).
EVENT_STREAM_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


NO_HEADERS: Final[Mapping[str, str]] = {}

COMMENT: Final = b": keep-alive\n\n"
"""Clients ignore it (WHATWG HTML, section 9.2.6)."""

NO_MESSAGE: Final = b"\n"
"""The body of a streamed response without a message. A response that ends right after its headers
is reported never to reach its end (aws/aws-lambda-nodejs-runtime-interface-client#95,
aws/aws-lambda-web-adapter#499; opennextjs/opennextjs-aws#486: "Empty string didn't work"), and a
client would wait for it until the function's time is up. Any byte ends it. Clients do not read the
body of a 202."""


class Stream(Protocol):
    """A response that is sent while it is written: `aws.streaming_runtime.Response`, for one."""

    @property
    def started(self) -> bool:
        """Whether the status has been sent."""

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status and the headers: once, and before the first chunk."""

    def write(self, data: bytes) -> None:
        """Send one chunk at once."""


def event(message: str) -> str:
    """One JSON-RPC message, which has no line breaks, as a server-sent event."""
    return f"event: message\ndata: {message}\n\n"


def written(sent: StreamEvent) -> str:
    """An event with its id and its `retry`. One without a message has empty data."""
    fields = "" if sent.id is None else f"id: {sent.id}\n"
    if sent.retry_ms is not None:
        fields += f"retry: {sent.retry_ms}\n"
    return fields + ("data: \n\n" if sent.message is None else event(json.dumps(sent.message)))


def streamed_channel(
    stream: Stream, deadline_ms: int, cors_headers: Mapping[str, str] = NO_HEADERS
) -> ResponseChannel:
    """A response channel that writes each event at once.

    The first event, or comment, begins the event stream. `deadline_ms` is when Lambda stops the
    function, in milliseconds since the epoch. `cors_headers` are added to the stream's own.
    """

    def write_piece(piece: bytes) -> None:
        if not stream.started:
            stream.start(HTTPStatus.OK, {**EVENT_STREAM_HEADERS, **cors_headers})
        stream.write(piece)

    return ResponseChannel(
        lambda sent: write_piece(written(sent).encode()),
        deadline_ms,
        keep_alive=lambda: write_piece(COMMENT),
    )


def end_stream(
    response: HttpResponse, stream: Stream, cors_headers: Mapping[str, str] = NO_HEADERS
) -> None:
    """Write the last event of a stream that has begun; otherwise the whole response.

    A 204 becomes a 200, because it has to have a body here (`NO_MESSAGE`), and a 204 must not.
    """
    if stream.started:
        if response.message is not None:
            stream.write(event(response.message).encode())
        return
    status = HTTPStatus(response.status)
    headers = {**response.headers, **cors_headers}
    stream.start(HTTPStatus.OK if status is HTTPStatus.NO_CONTENT else status, headers)
    stream.write(NO_MESSAGE if response.message is None else response.message.encode())
