"""How a request's messages reach its client, before its answer does.

There are three: a buffered answer collects them, a streamed one writes each at once, and so does
the local gateway's, which runs the streamed one. The methods are the same for all; what differs is
how long an answer may take and whether anything is seen before its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

BUFFERED_MS: Final = 25_000
"""How long a listen is held whose answer comes as a whole: API Gateway waits 29 seconds."""

BUFFERED_CHARACTERS: Final = 2_000_000
"""After which a listen ends whose answer comes as a whole: Lambda carries 6 MB."""

MOST_CARRIED: Final = 6_000_000
"""Bytes of the answer to one body, as Lambda carries it: 6 MB, with all else of the response."""

Send = Callable[[dict[str, Any]], None]
"""Takes a notification."""


def _nothing() -> None:
    """There is nothing to keep alive in an answer that comes as a whole."""


@dataclass(frozen=True, slots=True)
class ResponseChannel:
    """The way of one request's notifications."""

    send: Send
    until: int
    """When the answer has to be complete, in milliseconds since the epoch."""
    live: bool = False
    """Whether the client sees each message when it is sent."""
    hears: bool = True
    """Whether the client takes notifications at all."""
    keep_alive: Callable[[], None] = _nothing
    """Writes something that says nothing."""
    room: int = BUFFERED_CHARACTERS
    """How much a listen may send before it ends, in characters as Lambda carries them."""


def carried_size(text: str) -> int:
    """Characters of JSON as Lambda carries it: as a string within JSON."""
    return len(text) + text.count('"') + text.count("\\")
