"""When somebody has to look at a task again, in case that something was lost. Pure.

Nobody has to as long as all goes well: an execution's end is an event. But an event may be lost,
and a function may die between two calls. So every task whose execution may run has a time at which
it is *due*: then the sweeper, or a client's poll, asks Step Functions how it is
(`workflows/reconcile.py`). The rows that are due are found by a sparse index of the table.

All times are milliseconds. They are compared by clocks that need not agree: what depends on them is
how soon something is repaired, not what becomes of it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

INDEX: Final = "reconcile"
"""The index's name: partition key `reconcileShard`, sort key `reconcileAt`. A row without them is
not in it."""

SHARDS: Final = 8
"""So many partitions: DynamoDB takes 1,000 writes a second into each."""

FIRST_MS: Final = 20_000
"""After a task was created or answered. What is under way for longer may be done twice."""

LEAST_MS: Final = 60_000
MOST_MS: Final = 3_600_000
"""Between two looks at one task: an eighth of its age, within these."""

LAST_MS: Final = 720_000
"""Before its time to live is over, a task is looked at once more: an end that nobody has heard of
can still be told."""

EXPIRED_MS: Final = 120_000
"""How long after its time to live a task is ended: longer than two clocks differ."""

STOP_AGAIN_MS: Final = 300_000
"""After a task was ended for its execution. A start that was under way at that moment has taken
effect by then, or been given up: its attempts take half a minute."""

GRACE_MS: Final = 10_000
"""How much longer than a step may take its task may be silent."""

UNKNOWN_SILENCE_MS: Final = 60_000
"""How long a task may be silent whose tool does not say how long its steps take."""


@dataclass(frozen=True, slots=True)
class DueTask:
    """An entry of the index: a task, and since when it is due."""

    task_id: str
    since: int


def shard_of(task_id: str) -> str:
    """The partition of a task in the index."""
    return str(zlib.crc32(task_id.encode()) % SHARDS)


def next_look(created_at: int, expires_at: int, now: int) -> int:
    """When to look at a task again that was looked at now."""
    pause = max(LEAST_MS, min((now - created_at) // 8, MOST_MS))
    last = expires_at - LAST_MS
    latest = last if now < last else expires_at + EXPIRED_MS
    return max(now + LEAST_MS, min(now + pause, latest))
