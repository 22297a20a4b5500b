"""The response channel: how one request's messages reach its client.

A buffered channel collects events, and the function returns them with the response
(`api/handler.py`). A streamed channel writes each event at once (`api/streaming.py`). The MCP
methods are the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_RESPONSE_BYTES: Final = 6_000_000
"""What a Lambda function may return in one piece (Lambda developer guide, "Quotas"): 6 MB."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event of a response's event stream."""

    message: Mapping[str, Any] | None = None
    """A JSON-RPC message; None for an event without data, which tells the client its id."""
    id: str | None = None
    """Where the stream goes on after this event: the client's `Last-Event-ID`."""
    retry_ms: int | None = None
    """How long the client waits before it reconnects."""


def _nothing() -> None:
    """A buffered response has no connection to keep alive."""


@dataclass(frozen=True, slots=True)
class ResponseChannel:
    """How one request's events are sent."""

    write: Callable[[StreamEvent], None]
    deadline_ms: int | None = None
    """When Lambda stops the function that streams, in milliseconds since the epoch; None for a
    buffered channel."""
    takes_notifications: bool = True
    """Whether the client accepts an event stream, by its `Accept` header."""
    keep_alive: Callable[[], None] = _nothing
    """Writes a comment into the event stream, so that no proxy closes an idle connection."""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a notification, as an event that the client cannot resume after."""
        self.write(StreamEvent(message))

    @property
    def streams(self) -> bool:
        """Whether the client receives each message when it is sent."""
        return self.deadline_ms is not None


def response_size(text: str) -> int:
    """Bytes that an ASCII text takes up in a function's return value: a string within JSON."""
    return len(text) + text.count('"') + text.count("\\")
