"""A session with scripted polls, and no sleep."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.unit.client.scripted import FakeSession


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Each request's method and each sleep's seconds, in their order. Sleeps return at once."""
    log: list[Any] = []

    async def sleep(seconds: float) -> None:
        log.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    return log


@pytest.fixture
def session(log: list[Any]) -> FakeSession:
    """A session whose client accepts every question."""
    return FakeSession(log)
