"""When a task is looked at again: pure rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.ids import new_task_id
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_schedule import (
    EXPIRED_MS,
    FIRST_RECONCILE_MS,
    MAX_RECONCILE_INTERVAL_MS,
    MIN_RECONCILE_INTERVAL_MS,
    RECONCILE_BEFORE_EXPIRY_MS,
    SHARDS,
    next_reconcile_at,
    shard_of,
)
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

MINUTE: Final = 60_000
DAY: Final = 24 * HOUR
TERMINAL: Final = [Status.COMPLETED, Status.FAILED, Status.CANCELLED]


# next_reconcile_at


@pytest.mark.parametrize(
    ("age", "pause"),
    [
        (0, MINUTE),
        (8 * MINUTE, MINUTE),
        (16 * MINUTE, 2 * MINUTE),
        (4 * HOUR, HOUR // 2),
        (8 * HOUR, HOUR),
        (30 * DAY, HOUR),
    ],
)
def test_the_older_a_task_the_less_often_it_is_looked_at(age: int, pause: int) -> None:
    """An eighth of its age, between a minute and an hour."""
    assert next_reconcile_at(NOW, NOW + 90 * DAY, NOW + age) == NOW + age + pause


def test_a_task_is_looked_at_soon_after_it_expired() -> None:
    """Not an hour later: its execution is to be stopped."""
    expires = NOW + 80 * HOUR
    assert next_reconcile_at(NOW, expires, expires - 10 * MINUTE) == expires + EXPIRED_MS


@pytest.mark.parametrize("left", [RECONCILE_BEFORE_EXPIRY_MS + 1, 20 * MINUTE, HOUR])
def test_a_task_is_looked_at_before_it_expires(left: int) -> None:
    """Its end may be unheard of, and the next look would only find that its time is over."""
    expires = NOW + 80 * HOUR
    look = next_reconcile_at(NOW, expires, expires - left)
    assert look == max(
        expires - RECONCILE_BEFORE_EXPIRY_MS, expires - left + MIN_RECONCILE_INTERVAL_MS
    )
    assert next_reconcile_at(NOW, expires, look) == expires + EXPIRED_MS


def test_a_task_that_could_not_be_ended_is_looked_at_every_minute() -> None:
    expires = NOW + 80 * HOUR
    assert (
        next_reconcile_at(NOW, expires, expires + DAY) == expires + DAY + MIN_RECONCILE_INTERVAL_MS
    )


times = st.integers(0, 4_000_000_000_000)
spans = st.integers(0, 400 * DAY)


@given(times, spans, st.integers(-DAY, 400 * DAY))
def test_a_look_puts_a_task_off_whatever_the_clock_says(created: int, ttl: int, age: int) -> None:
    """A look that fails again and again does not keep other tasks waiting; nor is one forgotten."""
    now = created + age
    later = next_reconcile_at(created, created + ttl, now) - now
    assert MIN_RECONCILE_INTERVAL_MS <= later <= MAX_RECONCILE_INTERVAL_MS


# shards


@given(st.text())
def test_a_task_has_one_shard(task_id: str) -> None:
    assert shard_of(task_id) == shard_of(task_id)
    assert shard_of(task_id) in map(str, range(SHARDS))


def test_a_shard_is_the_same_in_every_version() -> None:
    """Python's own hash differs between processes; a row's shard is written once."""
    assert shard_of(ID) == "6"
    assert shard_of(f"c1-{'f' * 32}") == "1"


def test_tasks_spread_over_all_shards() -> None:
    found = Counter(shard_of(new_task_id("c1")) for _ in range(4000))
    assert len(found) == SHARDS
    assert min(found.values()) > 4000 / SHARDS / 2


# overdue


def test_a_new_task_is_due_when_its_start_must_have_been_heard_of() -> None:
    """Nothing was heard of it since it was created: perhaps it was never started."""
    task = a_task()
    assert task.reconcile_at == NOW + FIRST_RECONCILE_MS
    assert not task.needs_reconciling(NOW + FIRST_RECONCILE_MS - 1)
    assert task.needs_reconciling(NOW + FIRST_RECONCILE_MS)


def heard_of(**changes: Any) -> Task:
    """A task of which something was heard an hour after it was created."""
    heard = {"last_updated_at": NOW + HOUR, "revision": 2, "silence_ms": 5 * MINUTE}
    return a_task(**{"ttl_ms": 90 * DAY, **heard, **changes})


def test_a_task_is_overdue_when_it_was_silent_for_longer_than_a_step_may_take() -> None:
    task = heard_of()
    assert not task.needs_reconciling(NOW + HOUR + 5 * MINUTE - 1)
    assert task.needs_reconciling(NOW + HOUR + 5 * MINUTE)


def test_a_task_that_was_looked_at_is_not_overdue_before_it_is_due_again() -> None:
    task = heard_of(reconcile_at=NOW + 2 * HOUR)
    assert not task.needs_reconciling(NOW + 2 * HOUR - 1)
    assert task.needs_reconciling(NOW + 2 * HOUR)


def test_an_answer_that_may_not_have_been_passed_on_waits_for_no_silence() -> None:
    ask = open_ask("token", {"sure": FormQuestion("Sure?", {})})
    (key,) = ask.questions
    answered = replace(ask, answers={key: {"action": "decline"}})
    assert not heard_of(asks={ask.id: ask}).needs_reconciling(NOW + HOUR)
    assert heard_of(asks={ask.id: answered}).needs_reconciling(NOW + HOUR)


def test_a_task_that_expired_is_overdue() -> None:
    task = heard_of(reconcile_at=NOW + 90 * DAY, silence_ms=100 * DAY)
    assert task.needs_reconciling(NOW + 90 * DAY)


@pytest.mark.parametrize("status", TERMINAL)
def test_a_task_that_is_over_is_overdue_while_its_execution_may_run(status: Status) -> None:
    task = a_task(status=status, revision=2, reconcile_at=NOW + 10)
    assert not task.needs_reconciling(NOW + 9)
    assert task.needs_reconciling(NOW + 10)


@pytest.mark.parametrize("status", TERMINAL)
def test_a_task_whose_execution_is_over_is_never_overdue(status: Status) -> None:
    assert not a_task(status=status, reconcile_at=None).needs_reconciling(NOW + 400 * DAY)


@pytest.mark.parametrize("status", [Status.WORKING, Status.INPUT_REQUIRED])
def test_a_task_of_version_3_is_due_as_if_it_were_new(status: Status) -> None:
    task = a_task(status=status, reconcile_at=None)
    assert not task.needs_reconciling(NOW + FIRST_RECONCILE_MS - 1)
    assert task.needs_reconciling(NOW + FIRST_RECONCILE_MS)
