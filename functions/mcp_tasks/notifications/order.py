"""Changes in order, and each once: the bus may repeat them, and bring a later one first.

Revisions of a task have no gaps, so one that is missing is known to be on its way. What comes after
it waits for it, as long as a failing function may take to be called again; then it is passed over,
and a client never sees a task go backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .changes import Change

PATIENCE_MS: Final = 90_000
"""How long a change waits for one that is missing before it: while `deliver` fails twice on it."""


class Order:
    """The changes that a listen has heard of and not told yet."""

    def __init__(self, told: Mapping[str, int]) -> None:
        self.told = dict(told)
        self._waiting: dict[str, dict[int, tuple[Change, int]]] = {}

    def add(self, change: Change, heard_at: int) -> bool:
        """Take a change; False when it, or a later one, was told already."""
        if change.revision <= self.told.get(change.task_id, 0):
            return False
        self._waiting.setdefault(change.task_id, {}).setdefault(change.revision, (change, heard_at))
        return True

    def next(self, now: int) -> Change | None:
        """A change whose turn has come, which counts as told from now on."""
        for task_id, waiting in self._waiting.items():
            first = min(waiting)
            change, heard_at = waiting[first]
            told = self.told.get(task_id)
            if told is None or first == told + 1 or now - heard_at >= PATIENCE_MS:
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
