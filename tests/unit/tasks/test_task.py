"""A task as the table keeps it: its times and its open questions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import iso, now_ms
from tests.unit.support.example_task import HOUR, NOW, a_task


def test_times_are_written_in_utc_with_milliseconds() -> None:
    """tasks.md, "Tasks": ISO 8601."""
    assert iso(NOW) == "2023-11-14T22:13:20.000Z"
    assert iso(NOW + 7) == "2023-11-14T22:13:20.007Z"
    assert iso(0) == "1970-01-01T00:00:00.000Z"


@given(st.integers(0, 4_000_000_000_000))
def test_a_written_time_is_the_time(ms: int) -> None:
    assert abs(datetime.fromisoformat(iso(ms)).timestamp() * 1000 - ms) < 1


def test_the_clock_gives_milliseconds() -> None:
    before = datetime.now().timestamp() * 1000  # noqa: DTZ005  an instant is an instant
    assert before - 1 <= now_ms() <= before + 60_000


def test_a_task_expires_at_its_time_to_live_and_not_before() -> None:
    task = a_task()
    assert task.expires_at == NOW + HOUR
    assert not task.expired(NOW + HOUR - 1)
    assert task.expired(NOW + HOUR)


def test_open_questions_are_those_of_all_asks() -> None:
    question = FormQuestion("?", {})
    one, two = open_ask("1", {"a": question}), open_ask("2", {"a": question, "b": question})
    task = a_task(asks={one.id: one, two.id: two})
    assert set(task.outstanding) == {*one.questions, *two.questions}
    assert a_task().outstanding == {}


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
    assert task.poll_after(NOW + age) == interval


@pytest.mark.parametrize(
    ("since", "interval"),
    [(0, 2 * SECOND), (20 * SECOND, 2 * SECOND), (MINUTE, 6 * SECOND), (HOUR, MINUTE)],
)
def test_a_task_that_asks_is_polled_as_a_new_one(since: int, interval: int) -> None:
    """It changes as soon as somebody answers, however old it is; unless nobody does."""
    asked_at = NOW + HOUR
    task = a_task(status=Status.INPUT_REQUIRED, last_updated_at=asked_at)
    assert task.poll_after(asked_at + since) == interval
    working = a_task(status=Status.WORKING, last_updated_at=asked_at)
    assert working.poll_after(asked_at + since) == MINUTE


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_a_task_that_is_over_keeps_its_interval(status: Status) -> None:
    """Nobody need poll it; what it says does not change any more."""
    task = a_task(status=status, last_updated_at=NOW + HOUR)
    assert {task.poll_after(NOW + age) for age in (0, MINUTE, HOUR, 24 * HOUR)} == {2 * SECOND}


@pytest.mark.parametrize("status", Status)
def test_a_slow_tools_interval_is_its_own(status: Status) -> None:
    task = a_task(status=status, poll_interval_ms=5 * MINUTE)
    assert {task.poll_after(NOW + age) for age in (0, HOUR)} == {5 * MINUTE}


@given(st.sampled_from(Status), st.integers(100, 10 * MINUTE), st.integers(0, 24 * HOUR))
def test_an_interval_is_never_below_what_the_tool_suggests(
    status: Status, suggested: int, age: int
) -> None:
    interval = a_task(status=status, poll_interval_ms=suggested).poll_after(NOW + age)
    assert suggested <= interval <= max(suggested, MINUTE)
