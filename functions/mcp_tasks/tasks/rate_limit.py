"""How many tasks a caller may create per minute, or subscriptions begin: the generic cell rate
algorithm (GCRA). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass


class RateLimited(Exception):
    """The caller is faster than it may be; `retry_after_ms` says when the next may come."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(f"{retry_after_ms} ms too early")
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many per minute: all of them at once, or evenly.

    A caller's item keeps its `tat`, the algorithm's theoretical arrival time: when its creations or
    subscriptions so far would have come, had they come evenly. Each adds `interval_ms` to it.
    """

    per_minute: int

    @property
    def interval_ms(self) -> int:
        """The share of a minute that one of them uses up."""
        return max(1, 60_000 // self.per_minute)

    @property
    def max_ahead_ms(self) -> int:
        """How far ahead of the clock the `tat` may be before another."""
        return self.interval_ms * (self.per_minute - 1)

    def check(self, tat: int, now: int) -> None:
        """Raise RateLimited when another would be too early, at a time in milliseconds."""
        if tat > now + self.max_ahead_ms:
            raise RateLimited(tat - now - self.max_ahead_ms)
