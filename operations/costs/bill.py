"""The bill of a load: its quantities times the prices, by service and for each task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .load import Load
from .prices import Prices
from .usage import Of, Usage, usage


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the bill, in US dollars for a month."""

    usage: Usage
    usd: float


@dataclass(frozen=True, slots=True)
class Bill:
    """A month's bill."""

    load: Load
    prices: Prices
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, load: Load, prices: Prices) -> Bill:
        """The bill of a load."""
        lines = (Line(each, prices.of[each.price].of(each.quantity)) for each in usage(load))
        return cls(load, prices, tuple(line for line in lines if line.usage.quantity))

    def total(self, of: Of | None = None, service: str | None = None, what: str = "") -> float:
        """What the lines cost that are chosen."""
        return sum(
            line.usd
            for line in self.lines
            if of in (None, line.usage.of)
            and service in (None, line.usage.service)
            and line.usage.what.startswith(what)
        )

    @property
    def services(self) -> list[str]:
        """The services, the dearest first."""
        names = {line.usage.service for line in self.lines}
        return sorted(names, key=lambda name: -self.total(service=name))

    @property
    def of_a_task(self) -> float:
        """What one more task costs."""
        return self.total("task") / self.load.tasks if self.load.tasks else 0.0

    def __str__(self) -> str:
        """The bill as a table."""
        return "\n".join(self._text())

    def _text(self) -> Iterable[str]:
        yield f"{'':56}{'a month':>14}{'a million tasks':>18}"
        for service in self.services:
            yield self._row(service, [each for each in self.lines if each.usage.service == service])
            for line in self.lines:
                if line.usage.service == service and line.usd:
                    quantity = f"{line.usage.quantity:,.2f}".removesuffix(".00")
                    yield self._row(f"    {line.usage.what}: {quantity}", [line])
        yield self._row("total", self.lines)
        idle = self.total("month")
        yield f"of which ${idle:,.2f} without a task; one more task costs ${self.of_a_task:.7f}"
        unseen = sorted({n for n, p in self.prices.of.items() if p.seen == "memory"})
        yield (
            f"List prices of {self.prices.region}, {self.prices.at}, without free tiers and taxes "
            "(operations/costs/prices.toml)."
        )
        yield f"From memory, to be looked up: {', '.join(unseen)}."

    def _row(self, name: str, lines: Iterable[Line]) -> str:
        lines = list(lines)
        usd = sum(line.usd for line in lines)
        per_task = sum(line.usd for line in lines if line.usage.of == "task")
        million = 1_000_000 / self.load.tasks if self.load.tasks else 0
        return f"{name:56}{f'${usd:,.2f}':>14}{f'${per_task * million:,.2f}':>18}"
