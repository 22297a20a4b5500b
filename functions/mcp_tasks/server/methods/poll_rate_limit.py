"""A rate limit for polls that are far more frequent than `pollIntervalMs` suggests.

Each instance of the function counts in its own memory, so a poll costs no write. A frequent
poller's requests go to few instances, each of which sees most of its polls. Requests that are
spread over many instances pass more often; the gateway's throttling bounds them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...protocol.errors import TooManyRequests
from ...tasks.task import now_ms

BURST_SECONDS: Final = 30
"""A burst may have as many polls as the limit allows in this time."""

MAX_COUNTED_TASKS: Final = 10_000
"""Tasks whose polls one instance counts. It forgets the task with the oldest last poll."""


@dataclass(slots=True)
class _Bucket:
    polls: float
    """Polls that may come now."""
    updated_at: int
    """In milliseconds since the epoch."""
    interval_ms: float
    """The time in which the bucket gains one poll."""


class PollRateLimit:
    """Token buckets, one for each caller and task; `per_second` 0 is no limit."""

    def __init__(self, per_second: int, clock: Callable[[], int] = now_ms) -> None:
        self._clock = clock
        self._interval_ms = 1000 / per_second if per_second else 0.0
        self._burst = per_second * BURST_SECONDS
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def count(self, principal: str, task_id: str) -> None:
        """Count a poll. Raises TooManyRequests for one too many, before anything is read."""
        if not self._burst:
            return
        now, key = self._clock(), (principal, task_id)
        bucket = self._buckets.pop(key, None) or _Bucket(self._burst, now, self._interval_ms)
        self._buckets[key] = bucket
        if len(self._buckets) > MAX_COUNTED_TASKS:
            self._buckets.popitem(last=False)
        gained = max(0, now - bucket.updated_at) / bucket.interval_ms
        bucket.polls, bucket.updated_at = min(self._burst, bucket.polls + gained), now
        if bucket.polls < 1:
            retry_after_ms = round((1 - bucket.polls) * bucket.interval_ms)
            message = "You poll this task far more often than its pollIntervalMs suggests"
            raise TooManyRequests(message, retry_after_ms)
        bucket.polls -= 1

    def suggested(self, principal: str, task_id: str, poll_interval_ms: int) -> None:
        """Allow polls twice as often as the server suggests, where that is above the limit."""
        bucket = self._buckets.get((principal, task_id))
        if bucket is not None:
            bucket.interval_ms = min(self._interval_ms, max(1, poll_interval_ms) / 2)
