"""How many tasks a caller may create per minute: the generic cell rate algorithm (GCRA). Pure."""

from __future__ import annotations

from dataclasses import dataclass


class RateLimited(Exception):
    """The caller creates tasks faster than it may; `retry_after_ms` says when the next may come."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(f"{retry_after_ms} ms too early")
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many per minute: all of them at once, or evenly.

    A caller's item keeps its `tat`, the algorithm's theoretical arrival time: when its creations so
    far would have come, had they come evenly. Each adds `interval_ms` to it.
    """

    per_minute: int

    @property
    def interval_ms(self) -> int:
        """The share of a minute that one creation uses up."""
        return max(1, 60_000 // self.per_minute)

    @property
    def max_ahead_ms(self) -> int:
        """How far ahead of the clock the `tat` may be before a creation."""
        return self.interval_ms * (self.per_minute - 1)
