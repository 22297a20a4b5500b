"""Waiting for what AWS shows late, with a bound."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, sleep


def attempts(seconds: float, pause: float) -> Iterator[None]:
    """Yield at once, and after each pause until so many seconds have passed."""
    deadline = monotonic() + seconds
    while True:
        yield
        if monotonic() + pause > deadline:
            return
        sleep(pause)
