"""Comments in a stream that is quiet, so that API Gateway does not end it.

API Gateway ends a streamed response that is idle: after 5 minutes at a regional endpoint, and after
30 seconds at an edge-optimized one (developer guide, "Stream the integration response for your
proxy integrations in API Gateway"). What follows tasks and mailboxes writes a comment itself, every
15 seconds, and so notices a client that has gone. This is for everything else that takes its time:
above all a tool that runs within the request and reports nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Final

from ..response_channel import ResponseChannel, StreamEvent

QUIET_SECONDS: Final = 20.0
"""The longest time without a byte."""


@contextmanager
def kept_alive(
    channel: ResponseChannel, quiet_seconds: float = QUIET_SECONDS
) -> Iterator[ResponseChannel]:
    """A channel that writes a comment whenever nothing was written for `quiet_seconds`.

    Only for a client that accepts event streams: the first comment begins one. No comment is
    written after the context has ended, so what follows may still be JSON.
    """
    watched, ended = _WatchedChannel(channel), threading.Event()
    thread = threading.Thread(
        target=watched.write_comments, args=(quiet_seconds, ended), name="keep-alive", daemon=True
    )
    thread.start()
    try:
        yield replace(channel, write=watched.write, keep_alive=watched.keep_alive)
    finally:
        ended.set()
        thread.join()


class _WatchedChannel:
    """Lets two threads write, one after the other: one event must not begin within another."""

    def __init__(self, channel: ResponseChannel) -> None:
        self._channel = channel
        self._writing = threading.Lock()
        self._written_at = monotonic()

    def write(self, sent: StreamEvent) -> None:
        with self._writing:
            self._channel.write(sent)
            self._written_at = monotonic()

    def keep_alive(self) -> None:
        with self._writing:
            self._channel.keep_alive()
            self._written_at = monotonic()

    def write_comments(self, quiet_seconds: float, ended: threading.Event) -> None:
        """Write comments until `ended` is set, or until the client has gone, which the other
        thread's next write will tell."""
        due_in = quiet_seconds
        while not ended.wait(due_in):
            due_in = self._written_at + quiet_seconds - monotonic()
            if due_in > 0:
                continue
            try:
                self.keep_alive()
            except OSError:
                return
            due_in = quiet_seconds
