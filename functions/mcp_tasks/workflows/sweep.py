"""Reconcile all tasks whose time has come, also those that no client polls.

A run takes, in each shard of the index, the tasks with the earliest time, and then those with the
latest, up to a limit. The next run goes on from there, because each task that is reconciled gets a
later time. Two runs at once do no harm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock
from typing import Final

from aws_lambda_powertools import Logger

from ..aws.errors import THROTTLING_CODES, error_code
from ..tasks.reconcile_index import ScheduledTask
from ..tasks.reconcile_schedule import SHARDS
from ..tasks.task_item import UnreadableRow
from ..tasks.task_table import TaskTable
from .reconcile import Reconciled, Reconciler

MAX_TASKS_PER_SHARD: Final = 60
"""Tasks of one shard that a run reconciles. In all shards and a run a minute, that is 8
DescribeExecution a second; Step Functions gives an account 10 to 15 in a region (developer guide,
"Quotas"). Half of them are those with the latest time: where there are more tasks than that, one
that was never started must not wait for all those that merely run."""

logger = Logger()


@dataclass(slots=True)
class Swept:
    """What a run, or a shard's part of it, came to."""

    counts: Counter[str] = field(default_factory=Counter)
    """Tasks by what came of them: a value of Reconciled; `skipped`, when another function was
    faster or the row was written a moment ago; `error`, to be tried again later; `out of time`."""
    late_ms: int = 0
    """How long ago the earliest task was to be reconciled."""

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.counts + other.counts, max(self.late_ms, other.late_ms))


def sweep(
    task_table: TaskTable, reconciler: Reconciler, clock: Callable[[], int], seconds: float
) -> Swept:
    """Reconcile tasks for at most so many seconds.

    Raises what the queries raise, after the other shards were swept.
    """
    until = time.monotonic() + seconds
    # One large result at a time: one per shard would fill the function's memory.
    reconciler = replace(reconciler, end_lock=Lock())
    with ThreadPoolExecutor(SHARDS) as pool:
        shards = [_Shard(str(n), task_table, reconciler, clock, until) for n in range(SHARDS)]
        runs = [pool.submit(shard.sweep) for shard in shards]
    return sum((run.result() for run in runs), Swept())


@dataclass(frozen=True, slots=True)
class _Shard:
    """One partition of the index."""

    name: str
    task_table: TaskTable
    reconciler: Reconciler
    clock: Callable[[], int]
    until: float
    swept: Swept = field(default_factory=Swept)

    def sweep(self) -> Swept:
        now, half = self.clock(), MAX_TASKS_PER_SHARD // 2
        index = self.task_table.reconcile_index
        for latest_first in (False, True):
            found = index.tasks_to_reconcile(self.name, now, half, latest_first=latest_first)
            entries = list(islice(found, half))
            if entries and not latest_first:
                self.swept.late_ms = now - entries[0].reconcile_at
            for entry in entries:
                if time.monotonic() >= self.until:
                    self.swept.counts["out of time"] += 1
                    return self.swept
                if not self._reconcile(entry):
                    return self.swept
            if len(entries) < half:
                break
        return self.swept

    def _reconcile(self, entry: ScheduledTask) -> bool:
        """Reconcile a task; False when AWS is throttling, so that the shard's run ends."""
        counts = self.swept.counts
        try:
            task = self.task_table.find(entry.task_id)
            done = self.reconciler.reconcile(task, self.clock()) if task else None
        except Exception as error:
            code = error_code(error)
            logger.error("A task was not reconciled", task_id=entry.task_id, error=code)
            counts["error"] += 1
            if isinstance(error, UnreadableRow):
                self.task_table.reconcile_index.postpone(entry, self.clock())
            return code not in THROTTLING_CODES
        counts[done.value if done else "skipped"] += 1
        return done is not Reconciled.NOT_STARTED
