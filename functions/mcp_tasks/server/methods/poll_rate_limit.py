"""A limit on polls that are far more frequent than `pollIntervalMs` suggests.

Each instance of the function counts in its own memory, so a poll costs no write. A caller that
comes too often is answered by few instances, each of which sees most of its polls; one that spreads
them over many gets more, which the gateway's throttling bounds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...protocol.errors import TooManyRequests
from ...tasks.task import now_ms

BURST: Final = 30
"""How many seconds' worth of polls may come at once."""

REMEMBERED: Final = 10_000
"""Tasks that an instance counts the polls of; it forgets those that were not polled for longest."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: int
    interval_ms: float
    """The time in which one poll is earned."""


class PollRateLimit:
    """Token buckets, one for each caller and task; `per_second` 0 is no limit."""

    def __init__(self, per_second: int, clock: Callable[[], int] = now_ms) -> None:
        self._clock = clock
        self._interval_ms = 1000 / per_second if per_second else 0.0
        self._burst = per_second * BURST
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def count(self, principal: str, task_id: str) -> None:
        """Count a poll. Raises TooManyRequests for one too many, which then costs nothing."""
        if not self._burst:
            return
        now, key = self._clock(), (principal, task_id)
        bucket = self._buckets.pop(key, None) or _Bucket(self._burst, now, self._interval_ms)
        self._buckets[key] = bucket
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        earned = max(0, now - bucket.at) / bucket.interval_ms
        bucket.left, bucket.at = min(self._burst, bucket.left + earned), now
        if bucket.left < 1:
            wait = round((1 - bucket.left) * bucket.interval_ms)
            message = "You poll this task far more often than its pollIntervalMs suggests"
            raise TooManyRequests(message, wait)
        bucket.left -= 1

    def suggested(self, principal: str, task_id: str, poll_interval_ms: int) -> None:
        """Whoever is told to poll often may do so, twice as often as told."""
        bucket = self._buckets.get((principal, task_id))
        if bucket is not None:
            bucket.interval_ms = min(self._interval_ms, max(1, poll_interval_ms) / 2)
