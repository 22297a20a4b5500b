"""Time that passes when a check waits."""

from __future__ import annotations

import pytest


class Waited:
    """How many seconds checks have waited."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    """Waiting takes no time, and is counted."""
    clock = Waited()
    monkeypatch.setattr("operations.verify.waiting.sleep", clock.sleep)
    monkeypatch.setattr("operations.verify.waiting.monotonic", clock.monotonic)
    return clock
