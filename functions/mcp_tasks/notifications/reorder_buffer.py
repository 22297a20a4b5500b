"""Changes in order, and each once: the bus may repeat them, and bring a later one first.

Revisions of a task have no gaps, so one that is missing is known to be on its way. What comes after
it waits for it; then it is passed over, and a client never sees a task go backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .changes import Change

PATIENCE_MS: Final = 90_000
"""How long a change that was delivered waits for one that is missing before it: `deliver` may fail
on that twice."""

OUTAGE_MS: Final = 600_000
"""How long a state that was only found in a task's row waits for its way to work again."""


class ReorderBuffer:
    """The changes that a listen has heard of and not told yet."""

    def __init__(self, told: Mapping[str, int]) -> None:
        self.told = dict(told)
        self._waiting: dict[str, dict[int, tuple[Change, int]]] = {}

    def add(self, change: Change, until: int) -> bool:
        """Take a change, to wait until then at most; False when it, or a later one, was told."""
        if change.revision <= self.told.get(change.task_id, 0):
            return False
        waiting = self._waiting.setdefault(change.task_id, {})
        known = waiting.get(change.revision)
        waiting[change.revision] = (change, until if known is None else min(until, known[1]))
        return True

    def put_back(self, change: Change, until: int) -> None:
        """Take back what `next` gave out, and could not be told."""
        self.told[change.task_id] = change.revision - 1
        self.add(change, until)

    def next(self, now: int) -> Change | None:
        """A change whose turn has come, which counts as told from now on."""
        for task_id, waiting in self._waiting.items():
            first = min(waiting)
            change, until = waiting[first]
            told = self.told.get(task_id)
            if told is None or first == told + 1 or now >= until:
                self.told[task_id] = first
                del waiting[first]
                if not waiting:
                    del self._waiting[task_id]
                return change
        return None

    def pass_over(self, task_id: str, revision: int) -> None:
        """Count a revision as told, and all before it."""
        self.told[task_id] = max(revision, self.told.get(task_id, 0))
        waiting = self._waiting.get(task_id, {})
        left = {r: entry for r, entry in waiting.items() if r > self.told[task_id]}
        if left:
            self._waiting[task_id] = left
        else:
            self._waiting.pop(task_id, None)
