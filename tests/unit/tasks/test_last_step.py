"""Until when a task counts in its caller's quota: until no step of it can run any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from mcp_tasks.tasks.last_step import open_at
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_schedule import EXPIRED_MS, UNKNOWN_SILENCE_MS
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support import rows_of_version_3 as before
from tests.unit.support.aws import raw_rows
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

STEP_MS: Final = 910_000
"""A step's timeout, and the margin."""
LATER: Final = NOW + 1000
ERROR: Final = {"code": -32603, "message": "broken"}

End = Callable[[TaskTable], object]
FREE_AT_ONCE: Final[dict[str, End]] = {
    "completed": lambda rows: rows.complete(ID, {"content": []}, LATER),
    "failed": lambda rows: rows.fail(ID, ERROR, LATER),
    "not started": lambda rows: rows.fail(ID, ERROR, LATER, may_run=True),
}
A_STEP_MAY_RUN: Final[dict[str, End]] = {
    "cancelled": lambda rows: rows.cancel(ID, LATER, "alice"),
    "timed out": lambda rows: rows.fail(ID, ERROR, LATER, step_may_run=True),
    "a branch failed": lambda rows: rows.complete(ID, {}, LATER, step_may_run=True),
}


def written(rows: TaskTable, end: End, *, asks: bool = False, sequential: bool = True) -> None:
    """A task that is asked a question, or is not, and ends."""
    rows.create(a_task(silence_ms=STEP_MS, sequential=sequential))
    if asks:
        question = FormQuestion("Sure?", {"type": "object", "properties": {}})
        rows.ask(ID, open_ask("token", {"sure": question}), NOW)
    end(rows)


def counts(now: int) -> bool:
    (row,) = raw_rows()
    return open_at(row, now)


@pytest.mark.parametrize("end", FREE_AT_ONCE.values(), ids=FREE_AT_ONCE)
def test_a_task_whose_steps_have_ended_is_free_at_once(rows: TaskTable, end: End) -> None:
    written(rows, end)
    assert not counts(LATER)


@pytest.mark.parametrize("end", A_STEP_MAY_RUN.values(), ids=A_STEP_MAY_RUN)
def test_a_task_counts_as_long_as_its_last_step_may_run(rows: TaskTable, end: End) -> None:
    """StopExecution does not stop the function that the execution has called."""
    written(rows, end)
    assert counts(LATER + STEP_MS - 1)
    assert not counts(LATER + STEP_MS)


@pytest.mark.parametrize("end", A_STEP_MAY_RUN.values(), ids=A_STEP_MAY_RUN)
def test_a_task_that_waited_for_an_answer_is_free_at_once(rows: TaskTable, end: End) -> None:
    """No function runs while it waits."""
    written(rows, end, asks=True)
    assert not counts(LATER)


@pytest.mark.parametrize("end", A_STEP_MAY_RUN.values(), ids=A_STEP_MAY_RUN)
def test_where_steps_run_at_once_one_may_run_while_another_state_asks(
    rows: TaskTable, end: End
) -> None:
    written(rows, end, asks=True, sequential=False)
    assert counts(LATER + STEP_MS - 1)
    assert not counts(LATER + STEP_MS)


def test_a_task_that_has_not_ended_counts(rows: TaskTable) -> None:
    written(rows, lambda rows: rows.report(ID, "half-way", LATER))
    assert counts(NOW + HOUR - 1)


def test_the_last_step_of_a_task_that_expired_may_run_on(rows: TaskTable) -> None:
    written(rows, lambda rows: None)
    assert counts(NOW + HOUR + STEP_MS - 1)
    assert not counts(NOW + HOUR + STEP_MS)


def test_a_task_that_expired_while_it_waited_is_free_at_once(rows: TaskTable) -> None:
    written(rows, lambda rows: None, asks=True)
    assert counts(NOW + HOUR - 1)
    assert not counts(NOW + HOUR)


def test_an_execution_that_is_stopped_late_counts_from_then(rows: TaskTable) -> None:
    """The sweeper ends an expired task minutes later, and stops its execution."""
    ended = NOW + HOUR + EXPIRED_MS
    written(rows, lambda rows: rows.expire(ID, ERROR, ended))
    assert counts(ended + STEP_MS - 1)
    assert not counts(ended + STEP_MS)


def test_a_row_of_version_3_counts_for_as_long_as_most_steps_take(rows: TaskTable) -> None:
    cancelled = before.WORKING | {"status": {"S": "cancelled"}}
    assert not open_at(cancelled, NOW)
    assert open_at(before.WORKING, NOW + HOUR + UNKNOWN_SILENCE_MS - 1)
    assert not open_at(before.WORKING, NOW + HOUR + UNKNOWN_SILENCE_MS)
