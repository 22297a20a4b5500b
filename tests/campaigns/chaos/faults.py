"""Which calls to AWS go wrong, and how: drawn from a seed, and counted.

Each call fails on its own with the probabilities of `ODDS`; and every now and then a whole service
is out for some seconds, in which nearly all of its calls fail: more than what an SDK's own attempts
get over.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What is done to a call."""

    ERROR_BEFORE = "500 before it took effect"
    UNAVAILABLE = "503 before it took effect"
    THROTTLED = "throttled"
    ERROR_AFTER = "500 after it took effect"
    CLOSED_BEFORE = "connection closed before"
    CLOSED_AFTER = "connection closed after"
    HANGING_BEFORE = "no answer, no effect"
    HANGING_AFTER = "no answer, but the effect"
    LATE = "no answer, and the effect later"
    REPEATED = "repeated"
    PARTIAL = "nothing of a batch is done"
    CRASH_BEFORE = "caller killed before"
    CRASH_AFTER = "caller killed after"


FAULTY: Final = ("dynamodb", "states", "events", "s3")
"""The services whose calls go wrong, as endpoints name them."""

BATCHES: Final = frozenset({"BatchGetItem", "BatchWriteItem", "PutEvents"})
"""Operations that may do a part of what they are asked for, and say so in a success."""

CRASHES: Final = frozenset({Kind.CRASH_BEFORE, Kind.CRASH_AFTER})

ODDS: Final = {
    Kind.ERROR_BEFORE: 0.02,
    Kind.UNAVAILABLE: 0.01,
    Kind.THROTTLED: 0.03,
    Kind.ERROR_AFTER: 0.03,
    Kind.CLOSED_BEFORE: 0.01,
    Kind.CLOSED_AFTER: 0.015,
    Kind.HANGING_BEFORE: 0.002,
    Kind.HANGING_AFTER: 0.003,
    Kind.LATE: 0.002,
    Kind.REPEATED: 0.02,
    Kind.PARTIAL: 0.02,
    Kind.CRASH_BEFORE: 0.006,
    Kind.CRASH_AFTER: 0.01,
}

IN_AN_OUTAGE: Final = {
    Kind.THROTTLED: 0.3,
    Kind.ERROR_BEFORE: 0.2,
    Kind.UNAVAILABLE: 0.1,
    Kind.ERROR_AFTER: 0.2,
    Kind.CLOSED_BEFORE: 0.05,
    Kind.CLOSED_AFTER: 0.05,
}
OUTAGE_EVERY: Final = 20.0
"""Seconds from the begin of an outage to that of the next, on average."""
OUTAGE: Final = (5.0, 14.0)
"""Seconds that one lasts, at least and at most."""

CRASH_EVERY: Final = 2.0
"""Seconds between two processes that are killed: each has a successor that has to start."""


class Faults:
    """The faults of one run."""

    def __init__(self, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[tuple[str, str, Kind]] = Counter()
        """Service, operation and kind -> how often."""
        self.calls = 0
        """How many there were, faulty or not."""
        self._seed = seed
        self._clock = clock
        self._lock = threading.Lock()
        self._dice: dict[tuple[str, str], random.Random] = {}
        self._on = False
        self._out: str | None = None
        self._outage_until = 0.0
        self._weather = random.Random(f"{seed} outages")
        self._next_outage = 0.0
        self._next_crash = 0.0

    def start(self) -> None:
        """From now on, calls go wrong."""
        with self._lock:
            self._on = True
            self._next_outage = self._clock() + self._weather.uniform(0, OUTAGE_EVERY)

    def stop(self) -> None:
        """From now on, none does."""
        with self._lock:
            self._on = False

    @property
    def by_kind(self) -> Counter[Kind]:
        """How often each kind was drawn."""
        counts: Counter[Kind] = Counter()
        for (_, _, kind), count in self.counts.items():
            counts[kind] += count
        return counts

    @property
    def by_operation(self) -> Counter[str]:
        """How often each operation's calls went wrong."""
        counts: Counter[str] = Counter()
        for (service, operation, _), count in self.counts.items():
            counts[f"{service} {operation}"] += count
        return counts

    def draw(self, service: str, operation: str) -> Kind | None:
        """What is to be done to the next call of an operation; mostly nothing."""
        with self._lock:
            self.calls += 1
            if not self._on or service not in FAULTY:
                return None
            kind = self._draw(service, operation)
            if kind is not None:
                self.counts[service, operation, kind] += 1
            return kind

    def _draw(self, service: str, operation: str) -> Kind | None:
        now = self._clock()
        if now >= self._next_outage:
            self._out = self._weather.choice(FAULTY)
            self._outage_until = now + self._weather.uniform(*OUTAGE)
            self._next_outage = now + self._weather.uniform(0.5, 1.5) * OUTAGE_EVERY
        out = service == self._out and now < self._outage_until
        # One row of numbers for each operation: what the others do does not change it.
        dice = self._dice.setdefault(
            (service, operation), random.Random(f"{self._seed} {service} {operation}")
        )
        drawn = dice.random()
        for kind, odds in (IN_AN_OUTAGE if out else ODDS).items():
            drawn -= odds
            if drawn < 0:
                return self._possible(kind, operation, now)
        return None

    def _possible(self, kind: Kind, operation: str, now: float) -> Kind | None:
        if kind is Kind.PARTIAL and operation not in BATCHES:
            return None
        if kind in CRASHES:
            if now < self._next_crash:
                return None
            self._next_crash = now + CRASH_EVERY
        return kind
