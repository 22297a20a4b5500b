"""When a task is reconciled: compared with its execution, in case that something was lost. Pure.

As long as all goes well, no task has to be: Step Functions sends an event when an execution ends.
But an event may be lost, and a function may die between two calls. So every task whose execution
may run has a time, `reconcileAt`, at which the sweeper or a client's poll asks Step Functions for
its execution (`workflows/reconcile.py`).

All times are milliseconds. The clocks that compare them may differ: that changes how soon something
is repaired, and not what becomes of the task.
"""

from __future__ import annotations

import zlib
from typing import Final

INDEX: Final = "reconcile"
"""The index's name: partition key `reconcileShard`, sort key `reconcileAt`."""

SHARDS: Final = 8
"""Partitions of the index: DynamoDB takes 1,000 writes a second into each."""

FIRST_RECONCILE_MS: Final = 20_000
"""After a task was created or answered. A call that is under way for longer may be repeated."""

MIN_RECONCILE_INTERVAL_MS: Final = 60_000
MAX_RECONCILE_INTERVAL_MS: Final = 3_600_000
"""A task is reconciled after every eighth of its age, within these bounds."""

RECONCILE_BEFORE_EXPIRY_MS: Final = 720_000
"""A task is reconciled once more so long before it expires: an end whose event was lost can still
reach its client."""

EXPIRED_MS: Final = 120_000
"""How long after its time to live a task is ended: longer than two clocks differ."""

STOP_AGAIN_MS: Final = 300_000
"""When a task is reconciled that ended while its execution may run. A start that was under way at
that moment has taken effect by then, or was given up: its attempts take half a minute."""

SILENCE_MARGIN_MS: Final = 10_000
"""How much longer than its step may take a task may go without a write."""

UNKNOWN_SILENCE_MS: Final = 60_000
"""How long a task may go without a write whose tool does not say how long its steps take."""


def shard_of(task_id: str) -> str:
    """The partition of the index that a task is in."""
    return str(zlib.crc32(task_id.encode()) % SHARDS)


def next_reconcile_at(created_at: int, expires_at: int, now: int) -> int:
    """When to reconcile a task again that is reconciled now."""
    eighth = (now - created_at) // 8
    interval = max(MIN_RECONCILE_INTERVAL_MS, min(eighth, MAX_RECONCILE_INTERVAL_MS))
    before_expiry = expires_at - RECONCILE_BEFORE_EXPIRY_MS
    latest = before_expiry if now < before_expiry else expires_at + EXPIRED_MS
    return max(now + MIN_RECONCILE_INTERVAL_MS, min(now + interval, latest))
