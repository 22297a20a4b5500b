"""AWS's list prices, from a table that stands in the repository (`prices.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True, slots=True)
class Price:
    """One price."""

    usd: float
    per: float
    """How many units the price is for."""
    what: str
    page: str
    """Where AWS has it."""
    seen: str
    """"page", "quoted" or "memory": how it came into the table."""

    def of(self, quantity: float) -> float:
        """What a quantity costs, in US dollars."""
        return self.usd * quantity / self.per


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of one region."""

    region: str
    at: date
    """When they were written down."""
    of: Mapping[str, Price]

    @classmethod
    def read(cls, region: str, file: Path = FILE) -> Prices:
        """Read a region's prices. Raises LookupError for one that the table does not have."""
        table: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        at = table.pop("date")
        if region not in table:
            known = ", ".join(table)
            raise LookupError(
                f"region={region}: {file.name} has the prices of {known}; copy them under "
                f"[{region}...], and change the numbers"
            )
        prices = {
            name: Price(row["usd"], row["for"], row["what"], row["page"], row["seen"])
            for name, row in table[region].items()
        }
        return cls(region, at, prices)
