"""How often a step is tried, and how long between two attempts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The retry policy of a step: `task.step(look_up, company, retry=Retry(attempts=5))`.

    Nothing runs between two attempts. A ToolError is never tried again: it says that the step
    cannot be done.

    Raises ValueError for less than one attempt, and for a time or a rate that makes no sense.
    """

    attempts: int = 3
    """How often the step is tried, the first time included."""
    delay: timedelta = timedelta(seconds=1)
    """Between the first two attempts."""
    backoff: float = 2.0
    """What the delay is multiplied by, from one attempt to the next."""
    max_delay: timedelta = timedelta(minutes=5)
    jitter: bool = True
    """Whether a delay is a random part of itself, so that many tasks do not come back at once."""
    only: tuple[type[Exception], ...] = (Exception,)
    """The exceptions after which the step is tried again."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("Retry: attempts is at least 1")
        if self.delay < timedelta(0) or self.max_delay < timedelta(0) or self.backoff < 1:
            raise ValueError("Retry: delay and max_delay are not negative, backoff is at least 1")

    def again(self, error: Exception, attempts: int) -> bool:
        """Whether to try once more, when the last of so many attempts raised `error`."""
        return attempts < self.attempts and isinstance(error, self.only)

    def delay_ms(self, attempts: int) -> int:
        """How long to wait after so many attempts, in milliseconds."""
        longest = self.max_delay.total_seconds() * 1000
        # Past 2^64, a power would only overflow: the longest delay was reached long before.
        delay = self.delay.total_seconds() * 1000 * self.backoff ** min(attempts - 1, 64)
        delay = min(longest, delay)
        return round(delay * random.random() if self.jitter else delay)  # noqa: S311  no secret


ONCE = Retry(attempts=1)
"""What a step without a policy has."""
