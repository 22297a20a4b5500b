"""HTTP as API Gateway brings it and takes it: requests in, answers out, whole or as they happen.

Source: API Gateway developer guide, "Input format of a Lambda function for proxy integration", and
"Response streaming".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ...protocol.errors import ProtocolError
from ...protocol.headers import Headers
from ..caller import Auth, Caller, caller_of
from ..response_channel import ResponseChannel, carried_size

if TYPE_CHECKING:
    from ...aws.streaming_runtime import Response

JSON: Final = {"Content-Type": "application/json"}

# "Servers SHOULD include the X-Accel-Buffering: no header" (Receiving Messages).
EVENT_STREAM: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}

STREAMED_CHARACTERS: Final = 100_000_000
"""After which a streamed listen ends: Lambda streams up to 200 MB."""

LAST_MS: Final = 10_000
"""Of a streaming function's time, what a listen leaves for its end."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A POST, apart from the gateway that brought it."""

    headers: Headers
    body: bytes
    caller: Caller | None
    """Who is let in; None when that is not known, and nobody is."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response: a JSON-RPC message as text, or a list of them in the one revision that has
    batches. A notification's answer has none.

    With `notifications`, which come before the message, the response is an event stream.
    """

    status: int
    message: str | None = None
    notifications: list[dict[str, Any]] = field(default_factory=list)
    error: ProtocolError | None = None

    @property
    def size(self) -> int:
        """Bytes of the message as Lambda carries it: JSON, as a string within JSON."""
        return carried_size(self.message or "")

    @property
    def headers(self) -> dict[str, str]:
        """The headers, apart from those of an event stream."""
        own = dict(self.error.headers) if self.error else {}
        return own if self.message is None else {**JSON, **own}


def from_api_gateway(event: Mapping[str, Any], auth: Auth) -> HttpRequest:
    """Read a REST API's proxy event (API Gateway developer guide, "Input format", payload 1.0)."""
    multi = event.get("multiValueHeaders") or {
        name: [value] for name, value in (event.get("headers") or {}).items()
    }
    body = event.get("body") or ""
    return HttpRequest(
        headers=Headers(multi),
        body=_decoded(body) if event.get("isBase64Encoded") else body.encode("utf-8", "replace"),
        caller=caller_of(event.get("requestContext") or {}, auth),
    )


def to_api_gateway(answer: HttpAnswer) -> dict[str, Any]:
    """Write a REST API's proxy response."""
    response: dict[str, Any] = {"statusCode": int(answer.status), "body": ""}
    if answer.message is None:
        return response
    if not answer.notifications:
        response["headers"] = answer.headers
        response["body"] = answer.message
        return response
    response["headers"] = EVENT_STREAM
    messages = (*map(json.dumps, answer.notifications), answer.message)
    response["body"] = "".join(map(event, messages))
    return response


def streamed(response: Response, until: int) -> ResponseChannel:
    """A carrier that writes each notification at once, into an event stream that begins with it."""

    def send(notification: dict[str, Any]) -> None:
        if not response.started:
            response.start(200, EVENT_STREAM)
        response.write(event(json.dumps(notification)).encode())

    return ResponseChannel(
        send,
        until - LAST_MS,
        live=True,
        keep_alive=lambda: response.write(b": keep-alive\n\n"),
        room=STREAMED_CHARACTERS,
    )


def end_stream(answer: HttpAnswer, response: Response) -> None:
    """Write the answer: the last event of a stream that has begun, or else all there is."""
    if response.started:
        if answer.message is not None:
            response.write(event(answer.message).encode())
        return
    response.start(int(answer.status), answer.headers)
    if answer.message is not None:
        response.write(answer.message.encode())


def event(message: str) -> str:
    """One JSON-RPC message, which has no line breaks, as a server-sent event."""
    return f"event: message\ndata: {message}\n\n"


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except ValueError:
        return body.encode("utf-8", "replace")  # not Base64 after all: the JSON parser will say so
