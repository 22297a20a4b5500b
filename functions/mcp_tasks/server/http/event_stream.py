"""Server-sent events: the JSON-RPC messages of a response as an event stream.

Sources: basic/transports/streamable-http.mdx, "Receiving Messages"; 2025-11-25
basic/transports.mdx, "Sending Messages to the Server"; WHATWG HTML, section 9.2.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ..response_channel import ResponseChannel, StreamEvent
from .messages import HttpResponse

if TYPE_CHECKING:
    from ...aws.streaming_runtime import Response

# "Servers SHOULD include the X-Accel-Buffering: no header" (Receiving Messages).
EVENT_STREAM_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


def event(message: str) -> str:
    """One JSON-RPC message, which has no line breaks, as a server-sent event."""
    return f"event: message\ndata: {message}\n\n"


def written(sent: StreamEvent) -> str:
    """An event with its id and its `retry`. One without a message has empty data."""
    fields = "" if sent.id is None else f"id: {sent.id}\n"
    if sent.retry_ms is not None:
        fields += f"retry: {sent.retry_ms}\n"
    return fields + ("data: \n\n" if sent.message is None else event(json.dumps(sent.message)))


def streamed_channel(stream: Response, deadline_ms: int) -> ResponseChannel:
    """A response channel that writes each event at once.

    The first one begins the event stream. `deadline_ms` is when Lambda stops the function, in
    milliseconds since the epoch.
    """

    def write(sent: StreamEvent) -> None:
        if not stream.started:
            stream.start(200, EVENT_STREAM_HEADERS)
        stream.write(written(sent).encode())

    return ResponseChannel(write, deadline_ms, keep_alive=lambda: stream.write(b": keep-alive\n\n"))


def end_stream(response: HttpResponse, stream: Response) -> None:
    """Write the last event of a stream that has begun; otherwise the whole response."""
    if stream.started:
        if response.message is not None:
            stream.write(event(response.message).encode())
        return
    stream.start(int(response.status), response.headers)
    if response.message is not None:
        stream.write(response.message.encode())
