"""One option of a deployment: its name, what it takes and what it decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """One option."""

    name: str
    meaning: str
    """What it decides, for the documentation."""
    values: str
    """What it takes. The error that refuses another value ends with these words."""
    example: str
    default: str = ""
    """Empty when the option may be left out and nothing stands in its place."""
    emulator: bool = True
    """Whether `make up` takes it, as `make deploy` and `make synth` do."""
    pattern: str = ".*"
    """What all of the value has to match, as far as a pattern can say it."""
    bounds: tuple[int, int] | None = None
    """The lowest and the highest value of a whole number."""


def number(
    name: str,
    meaning: str,
    default: int,
    bounds: tuple[int, int],
    unit: str,
    example: int | None = None,
) -> Option:
    """An option that takes a whole number within bounds."""
    low, high = bounds
    shown = max(low, default // 2) if example is None else example
    values = f"{low} to {high} {unit}"
    return Option(name, meaning, values, f"{name}={shown}", str(default), bounds=bounds)
