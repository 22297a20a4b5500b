"""A task as the table keeps it: its times and its open questions."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.questions import FormQuestion, open_ask
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
