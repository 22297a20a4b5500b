"""`pollIntervalMs` grows with a task's age (tasks.md, "Task Polling")."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.poll_interval import poll_interval_ms
from mcp_tasks.tasks.state import Status
from tests.unit.support.example_task import HOUR, NOW, a_task

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND


@pytest.mark.parametrize(
    ("age", "interval"),
    [
        (-HOUR, 2 * SECOND),  # clocks differ
        (0, 2 * SECOND),
        (20 * SECOND, 2 * SECOND),
        (30 * SECOND, 3 * SECOND),
        (5 * MINUTE, 30 * SECOND),
        (10 * MINUTE, MINUTE),
        (23 * 60 * MINUTE, MINUTE),
    ],
)
def test_the_older_a_task_the_slower_its_polls(age: int, interval: int) -> None:
    """tasks.md, "Task Polling": from what its tool suggests to a minute."""
    task = a_task(last_updated_at=NOW + max(age - 1, 0))
    assert task.poll_interval_ms == 2 * SECOND
    assert poll_interval_ms(task, NOW + age) == interval


@pytest.mark.parametrize(
    ("since", "interval"),
    [(0, 2 * SECOND), (20 * SECOND, 2 * SECOND), (MINUTE, 6 * SECOND), (HOUR, MINUTE)],
)
def test_a_task_that_asks_is_polled_as_a_new_one(since: int, interval: int) -> None:
    """It changes as soon as somebody answers, however old it is; unless nobody does."""
    asked_at = NOW + HOUR
    task = a_task(status=Status.INPUT_REQUIRED, last_updated_at=asked_at)
    assert poll_interval_ms(task, asked_at + since) == interval
    working = a_task(status=Status.WORKING, last_updated_at=asked_at)
    assert poll_interval_ms(working, asked_at + since) == MINUTE


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_a_terminal_task_keeps_its_interval(status: Status) -> None:
    """Nobody need poll it; what it says does not change any more."""
    task = a_task(status=status, last_updated_at=NOW + HOUR)
    assert {poll_interval_ms(task, NOW + age) for age in (0, MINUTE, HOUR, 24 * HOUR)} == {
        2 * SECOND
    }


@pytest.mark.parametrize("status", Status)
def test_a_longer_interval_of_the_tool_stands(status: Status) -> None:
    task = a_task(status=status, poll_interval_ms=5 * MINUTE)
    assert {poll_interval_ms(task, NOW + age) for age in (0, HOUR)} == {5 * MINUTE}


@given(st.sampled_from(Status), st.integers(100, 10 * MINUTE), st.integers(0, 24 * HOUR))
def test_an_interval_is_never_below_what_the_tool_suggests(
    status: Status, suggested: int, age: int
) -> None:
    interval = poll_interval_ms(a_task(status=status, poll_interval_ms=suggested), NOW + age)
    assert suggested <= interval <= max(suggested, MINUTE)
