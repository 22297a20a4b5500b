"""Changes in order, and each once, whatever the bus makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.notifications.changes import Change
from mcp_tasks.notifications.reorder_buffer import GAP_TIMEOUT_MS, ReorderBuffer
from tests.unit.support.example_task import NOW

Heard = tuple[str, int]
"""A task, and its revision."""


def a_change(task_id: str, revision: int, **params: Any) -> Change:
    """A change of a task that works."""
    return Change(task_id, revision, {"taskId": task_id, "status": "working", **params})


def told(order: ReorderBuffer, now: int = NOW) -> list[Heard]:
    """All that there is to tell at a time."""
    changes = iter(lambda: order.next(now), None)
    return [(change.task_id, change.revision) for change in changes]


def hear(order: ReorderBuffer, *heard: Heard, at: int = NOW) -> list[bool]:
    """Add changes; returns what `add` did."""
    return [order.add(a_change(*each), at + GAP_TIMEOUT_MS) for each in heard]


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, int], list[Heard]]:
    """What was told of some tasks, what they have reached, and all between, shuffled and repeated.

    Some of what was told comes once more, too.
    """
    tasks = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    before = {task: draw(st.integers(1, 5)) for task in tasks}
    after = {task: before[task] + draw(st.integers(0, 6)) for task in tasks}
    new = [(task, r) for task in tasks for r in range(before[task] + 1, after[task] + 1)]
    old = [(task, r) for task in tasks for r in range(1, before[task] + 1)]
    again = draw(st.lists(st.sampled_from(new + old), max_size=12))
    return before, after, draw(st.permutations(new + again))


@given(shuffled(), st.data())
def test_any_order_becomes_the_right_one_and_each_change_comes_once(
    spec: tuple[dict[str, int], dict[str, int], list[Heard]], data: st.DataObject
) -> None:
    """Nobody waits as long as `GAP_TIMEOUT_MS` here; what is told is asked for at any moment."""
    before, after, heard = spec
    order = ReorderBuffer(before)
    out: list[Heard] = []
    for n, each in enumerate(heard):
        hear(order, each, at=NOW + n)
        if data.draw(st.booleans()):
            out += told(order, NOW + n)
    out += told(order, NOW + GAP_TIMEOUT_MS - 1)
    for task, last in after.items():
        assert [r for t, r in out if t == task] == list(range(before[task] + 1, last + 1))
    assert order.delivered == after


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("hear"), st.sampled_from("ab"), st.integers(1, 9)),
            st.tuples(st.just("wait"), st.just(""), st.integers(0, GAP_TIMEOUT_MS)),
            st.tuples(st.just("pass over"), st.sampled_from("ab"), st.integers(1, 9)),
        ),
        max_size=40,
    )
)
def test_no_task_ever_goes_backwards(events: list[tuple[str, str, int]]) -> None:
    """Whatever is lost, late, repeated or known from elsewhere."""
    order, now, last = ReorderBuffer({"a": 2}), NOW, {"a": 2, "b": 0}
    for what, task, number in events:
        match what:
            case "hear":
                hear(order, (task, number), at=now)
            case "wait":
                now += number
            case _:
                order.skip_to(task, number)
                last[task] = max(last[task], number)
        for each, revision in told(order, now):
            assert revision > last[each]
            last[each] = revision
    now += GAP_TIMEOUT_MS
    told(order, now)
    assert told(order, now + GAP_TIMEOUT_MS) == [], "nothing is held back for good"


def test_what_is_told_first_need_not_be_the_first_revision() -> None:
    """A listen begins with a task's current state."""
    order = ReorderBuffer({})
    hear(order, ("a", 7))
    assert told(order) == [("a", 7)]


def test_a_gap_holds_back_what_comes_after_it() -> None:
    order = ReorderBuffer({"a": 1})
    hear(order, ("a", 3), ("a", 4))
    assert told(order) == []
    hear(order, ("a", 2))
    assert told(order) == [("a", 2), ("a", 3), ("a", 4)]


def test_a_gap_is_passed_over_in_the_end() -> None:
    order = ReorderBuffer({"a": 1})
    hear(order, ("a", 3))
    hear(order, ("a", 4), at=NOW + 10)
    assert told(order, NOW + GAP_TIMEOUT_MS - 1) == []
    assert told(order, NOW + GAP_TIMEOUT_MS) == [("a", 3), ("a", 4)]


def test_each_gap_has_the_patience_of_its_own() -> None:
    order = ReorderBuffer({"a": 1})
    hear(order, ("a", 3))
    hear(order, ("a", 5), at=NOW + 10)
    assert told(order, NOW + GAP_TIMEOUT_MS) == [("a", 3)]
    assert told(order, NOW + GAP_TIMEOUT_MS + 10) == [("a", 5)]


def test_hearing_of_a_change_again_does_not_prolong_the_wait() -> None:
    """A mailbox is read at each beat, and holds what is held back."""
    order = ReorderBuffer({"a": 1})
    hear(order, ("a", 3))
    hear(order, ("a", 3), at=NOW + GAP_TIMEOUT_MS)
    assert told(order, NOW + GAP_TIMEOUT_MS) == [("a", 3)]


def test_what_comes_too_late_is_dropped() -> None:
    order = ReorderBuffer({"a": 1})
    hear(order, ("a", 3))
    assert told(order, NOW + GAP_TIMEOUT_MS) == [("a", 3)]
    assert hear(order, ("a", 2), ("a", 3), ("a", 4)) == [False, False, True]
    assert told(order) == [("a", 4)]


@pytest.mark.parametrize("first", ["a", "b"])
def test_tasks_do_not_wait_for_each_other(first: str) -> None:
    order = ReorderBuffer({"a": 1, "b": 1})
    gap = {"a": "b", "b": "a"}[first]
    hear(order, (gap, 3), (first, 2), (gap, 4), (first, 3))
    assert told(order) == [(first, 2), (first, 3)]


def test_what_is_passed_over_is_not_told() -> None:
    order = ReorderBuffer({"a": 1, "b": 1})
    hear(order, ("a", 2), ("a", 3), ("a", 5), ("b", 2))
    order.skip_to("a", 3)
    assert told(order) == [("b", 2)]
    hear(order, ("a", 4))
    assert told(order) == [("a", 4), ("a", 5)]


def test_passing_over_goes_forward_only() -> None:
    order = ReorderBuffer({"a": 5})
    order.skip_to("a", 3)
    assert hear(order, ("a", 4), ("a", 5), ("a", 6)) == [False, False, True]
    order.skip_to("b", 2)
    assert hear(order, ("b", 2), ("b", 3)) == [False, True]


def test_what_was_told_is_the_orders_own() -> None:
    """The mailbox's memory changes when the listen ends, and not before."""
    known = {"a": 1}
    order = ReorderBuffer(known)
    hear(order, ("a", 2))
    assert told(order) == [("a", 2)]
    assert known == {"a": 1}
