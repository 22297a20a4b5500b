"""Look after all tasks that are due: what the clients' own polls do not get to.

A run takes the tasks that have been due for longest, and those that have become so last, until
there are none, or it has had its share; the next run goes on from there, because every look puts
its task off. Two runs at once do no harm.
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
from .reconcile import Found, Reconciler

LOOKS: Final = 60
"""At tasks of one shard, in one run. Of all shards, those of a minute are 8 DescribeExecution a
second; Step Functions gives an account 10 to 15 of them in a region (developer guide, "Quotas").
Half are for what has become due last: where there are more tasks than looks, one that was never
started must not wait for all that do nothing but wait."""

logger = Logger()


@dataclass(slots=True)
class Swept:
    """What a run, or a part of it, came to."""

    found: Counter[str] = field(default_factory=Counter)
    """How many of what; `passed` had been heard of meanwhile, `error` are due again later."""
    late_ms: int = 0
    """How long the first of all had been due."""

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.found + other.found, max(self.late_ms, other.late_ms))


def sweep(
    task_table: TaskTable, reconciler: Reconciler, clock: Callable[[], int], seconds: float
) -> Swept:
    """Look after what is due, for so many seconds.

    Raises what the queries raise, after the other shards were swept.
    """
    until = time.monotonic() + seconds
    reconciler = replace(
        reconciler, reading=Lock()
    )  # as many as there are shards would fill the memory
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
        now, half = self.clock(), LOOKS // 2
        for latest in (False, True):
            found = self.task_table.reconcile_index.tasks_to_reconcile(
                self.name, now, half, latest_first=latest
            )
            due = list(islice(found, half))
            if due and not latest:
                self.swept.late_ms = now - due[0].reconcile_at
            for entry in due:
                if time.monotonic() >= self.until:
                    self.swept.found["left"] += 1
                    return self.swept
                if not self._look(entry):
                    return self.swept
            if len(due) < half:
                break
        return self.swept

    def _look(self, entry: ScheduledTask) -> bool:
        """Look after a task; False when there is no room for more at the moment."""
        counts = self.swept.found
        try:
            task = self.task_table.find(entry.task_id)
            found = self.reconciler.reconcile(task, self.clock()) if task else None
        except Exception as error:
            logger.error("A task was not looked at", task_id=entry.task_id, error=error_code(error))
            counts["error"] += 1
            if isinstance(error, UnreadableRow):
                self.task_table.reconcile_index.postpone(entry, self.clock())
            return error_code(error) not in THROTTLING_CODES
        counts[found.value if found else "passed"] += 1
        return found is not Found.NOT_STARTED
