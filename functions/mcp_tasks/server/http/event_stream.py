"""Server-sent events: the JSON-RPC messages of a response as an event stream.

Sources: basic/transports/streamable-http.mdx, "Receiving Messages"; WHATWG HTML, section 9.2.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ..response_channel import ResponseChannel
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


def streamed_channel(stream: Response, deadline_ms: int) -> ResponseChannel:
    """A response channel that writes each notification at once.

    The first notification begins the event stream. `deadline_ms` is when Lambda stops the function,
    in milliseconds since the epoch.
    """

    def send(notification: dict[str, Any]) -> None:
        if not stream.started:
            stream.start(200, EVENT_STREAM_HEADERS)
        stream.write(event(json.dumps(notification)).encode())

    return ResponseChannel(send, deadline_ms, keep_alive=lambda: stream.write(b": keep-alive\n\n"))


def end_stream(response: HttpResponse, stream: Response) -> None:
    """Write the last event of a stream that has begun; otherwise the whole response."""
    if stream.started:
        if response.message is not None:
            stream.write(event(response.message).encode())
        return
    stream.start(int(response.status), response.headers)
    if response.message is not None:
        stream.write(response.message.encode())
