"""Look after all tasks that are due: what the clients' own polls do not get to.

A run takes the tasks that have been due for longest, until there are none, or its time is up; the
next run goes on from there, because every look puts its task off. Two runs at once do no harm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from aws_lambda_powertools import Logger

from ..faults import code_of
from ..tasks.due import SHARDS
from ..tasks.rows import TaskTable
from .repair import Repair

PAGE: Final = 50
"""Tasks that one query finds."""

MOST: Final = 500
"""Tasks of one shard that one run looks at."""

logger = Logger()


def sweep(
    rows: TaskTable, repair: Repair, clock: Callable[[], int], seconds: float
) -> Counter[str]:
    """Look after what is due, for so many seconds; returns how many of what were found.

    A task whose look fails is counted as `error`, and due again after a while.
    Raises what the queries raise, after the other shards were swept.
    """
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(SHARDS) as pool:
        runs = [
            pool.submit(_sweep_shard, str(shard), rows, repair, clock, until)
            for shard in range(SHARDS)
        ]
    return sum((run.result() for run in runs), Counter())


def _sweep_shard(
    shard: str, rows: TaskTable, repair: Repair, clock: Callable[[], int], until: float
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for task_id in islice(rows.due_in(shard, clock(), PAGE), MOST):
        if time.monotonic() >= until:
            counts["left"] += 1
            break
        try:
            task = rows.peek(task_id)
            found = repair.look_after(task, clock()) if task else None
        except Exception as error:
            logger.error("A task was not looked at", task_id=task_id, error=code_of(error))
            counts["error"] += 1
        else:
            counts[found.value if found else "passed"] += 1
    return counts
