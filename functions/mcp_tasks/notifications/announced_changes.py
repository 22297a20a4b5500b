"""The changes of resources and lists in a mailbox: each is sent once. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .server_changes import ServerChange


class AnnouncedChanges:
    """What a subscription has found in its mailbox, besides changes of tasks.

    A read of the mailbox is eventually consistent, and may return an entry again that was removed.
    """

    def __init__(self) -> None:
        self._waiting: deque[ServerChange] = deque()
        self._seen: set[str] = set()
        self._removed: set[str] = set()

    def add(self, key: str, change: ServerChange) -> None:
        """Add an entry of the mailbox, under its sort key, unless it was added before."""
        if key not in self._seen:
            self._seen.add(key)
            self._waiting.append(change)

    def take(self) -> Iterator[ServerChange]:
        """The changes that are still to be sent."""
        while self._waiting:
            yield self._waiting.popleft()

    @property
    def to_remove(self) -> set[str]:
        """The keys of the entries that are of no use any more."""
        return self._seen - self._removed

    def removed(self) -> None:
        """The entries `to_remove` were removed."""
        self._removed |= self._seen
