"""Puts the changes of tasks in order, each once: the event bus may repeat and reorder them.

The revisions of a task have no gaps. So a missing revision is known to be on its way, and later
ones wait for it. After a timeout it is skipped, and a client never sees a task go backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .changes import Change

GAP_TIMEOUT_MS: Final = 90_000
"""How long a change in a mailbox waits for a missing earlier one. `deliver` may fail twice for the
missing one in that time."""

ROW_GAP_TIMEOUT_MS: Final = 600_000
"""How long a state that was found in a task's row, and in no mailbox, waits for the changes before
it. The event bus or its queue may be disturbed for so long."""


class ReorderBuffer:
    """The changes that were received and not delivered yet.

    `delivered` has the last revision of each task that was delivered.
    """

    def __init__(self, delivered: Mapping[str, int]) -> None:
        self.delivered = dict(delivered)
        self._waiting: dict[str, dict[int, tuple[Change, int]]] = {}

    def add(self, change: Change, wait_until: int) -> bool:
        """Add a change, which waits for earlier ones until then, in milliseconds since the epoch.

        Returns False when it, or a later one, was delivered.
        """
        if change.revision <= self.delivered.get(change.task_id, 0):
            return False
        waiting = self._waiting.setdefault(change.task_id, {})
        known = waiting.get(change.revision)
        until = wait_until if known is None else min(wait_until, known[1])
        waiting[change.revision] = (change, until)
        return True

    def put_back(self, change: Change, wait_until: int) -> None:
        """Take back a change that `next` returned and that could not be delivered."""
        self.delivered[change.task_id] = change.revision - 1
        self.add(change, wait_until)

    def next(self, now: int) -> Change | None:
        """A change that waits for no other, which counts as delivered from now on."""
        for task_id, waiting in self._waiting.items():
            first = min(waiting)
            change, until = waiting[first]
            delivered = self.delivered.get(task_id)
            if delivered is None or first == delivered + 1 or now >= until:
                self.delivered[task_id] = first
                del waiting[first]
                if not waiting:
                    del self._waiting[task_id]
                return change
        return None

    def skip_to(self, task_id: str, revision: int) -> None:
        """Count a revision, and all before it, as delivered."""
        self.delivered[task_id] = max(revision, self.delivered.get(task_id, 0))
        waiting = self._waiting.get(task_id, {})
        left = {r: entry for r, entry in waiting.items() if r > self.delivered[task_id]}
        if left:
            self._waiting[task_id] = left
        else:
            self._waiting.pop(task_id, None)
