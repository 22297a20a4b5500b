"""The response channel: how one request's messages reach its client.

A buffered channel collects notifications, and the function returns them with the response
(`api/handler.py`). A streamed channel writes each notification at once (`api/streaming.py`). The
MCP methods are the same for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

MAX_RESPONSE_BYTES: Final = 6_000_000
"""What a Lambda function may return in one piece (Lambda developer guide, "Quotas"): 6 MB."""

Send = Callable[[dict[str, Any]], None]
"""Takes a notification."""


def _nothing() -> None:
    """A buffered response has no connection to keep alive."""


@dataclass(frozen=True, slots=True)
class ResponseChannel:
    """How one request's notifications are sent."""

    send: Send
    deadline_ms: int | None = None
    """When Lambda stops the function that streams, in milliseconds since the epoch; None for a
    buffered channel."""
    takes_notifications: bool = True
    """Whether the client accepts an event stream, by its `Accept` header."""
    keep_alive: Callable[[], None] = _nothing
    """Writes a comment into the event stream, so that no proxy closes an idle connection."""

    @property
    def streams(self) -> bool:
        """Whether the client receives each message when it is sent."""
        return self.deadline_ms is not None


def response_size(text: str) -> int:
    """Bytes that an ASCII text takes up in a function's return value: a string within JSON."""
    return len(text) + text.count('"') + text.count("\\")
