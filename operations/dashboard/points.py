"""Values in time, and what CloudWatch's statistics make of them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Sample = tuple[int, float]
"""Milliseconds since the epoch, and a value."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a page shows, in equal periods."""

    begin_ms: int
    end_ms: int
    period_ms: int

    @classmethod
    def before(cls, now_ms: int, minutes: int, periods: int = 60) -> Window:
        """The last minutes, in at most so many periods of whole minutes. Each period begins where
        it would begin in any other window, so that a value stays in its period.
        """
        period_ms = max(1, math.ceil(minutes / periods)) * 60_000
        end_ms = (now_ms // period_ms + 1) * period_ms
        return cls(end_ms - math.ceil(minutes * 60_000 / period_ms) * period_ms, end_ms, period_ms)

    def at(self, ms: int) -> int | None:
        """The beginning of a time's period; None outside of the window."""
        if not self.begin_ms <= ms < self.end_ms:
            return None
        return ms - ms % self.period_ms


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a graph."""

    label: str
    points: Mapping[int, float]
    """By the beginning of the period. A period without data has none."""


PLAIN: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "Sum": math.fsum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: math.fsum(values) / len(values),
    "SampleCount": len,
}


def statistic(name: str, values: Sequence[float]) -> float:
    """A statistic of at least one value, by CloudWatch's name (CloudWatch user guide, "CloudWatch
    statistics definitions"). Raises ValueError for one that is not known here.
    """
    if name in PLAIN:
        return PLAIN[name](values)
    found = re.fullmatch(r"p([0-9]{1,2}(?:\.[0-9]+)?)", name)
    if found is None:
        raise ValueError(f"{name}: no statistic")
    ordered = sorted(values)
    rank = math.ceil(float(found[1]) / 100 * len(ordered))
    return ordered[max(0, rank - 1)]


def line(label: str, samples: Iterable[Sample], name: str, window: Window) -> Line:
    """The statistic of each period that has samples."""
    periods: dict[int, list[float]] = defaultdict(list)
    for at, value in samples:
        period = window.at(at)
        if period is not None:
            periods[period].append(value)
    return Line(label, {at: statistic(name, values) for at, values in sorted(periods.items())})
