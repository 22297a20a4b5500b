"""An HTTP request and its response, independent of the gateway that carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...protocol.errors import ProtocolError
from ...protocol.headers import Headers
from ..caller import Caller
from ..response_channel import StreamEvent, response_size

JSON_HEADERS: Final = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request."""

    headers: Headers
    body: bytes
    caller: Caller | None
    """None when the gateway did not identify the caller; then the request is refused."""
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response to a request: a JSON-RPC message, or events that end with it."""

    status: int
    message: str | None = None
    """A JSON-RPC response as text; an array of them for a batch. None for a notification, which
    gets no response, and for an event stream that the client has to resume."""
    events: list[StreamEvent] = field(default_factory=list)
    """What is sent before the message. With any, the response is an event stream."""
    error: ProtocolError | None = None
    """The error that the message reports."""
    own_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers besides those of the content and of the error."""

    @property
    def size(self) -> int:
        """Bytes of the message in the function's return value."""
        return response_size(self.message or "")

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a response that is not an event stream."""
        own = {**self.own_headers, **(self.error.headers if self.error else {})}
        return own if self.message is None else {**JSON_HEADERS, **own}
