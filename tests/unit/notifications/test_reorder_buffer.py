"""Changes in order, and each once, however the bus repeats and reorders them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.notifications.changes import Change
from mcp_tasks.notifications.reorder_buffer import GAP_TIMEOUT_MS, ReorderBuffer
from tests.unit.support.example_task import NOW

Received = tuple[str, int]
"""A task, and its revision."""


def a_change(task_id: str, revision: int, **params: Any) -> Change:
    """A change of a task that works."""
    return Change(task_id, revision, {"taskId": task_id, "status": "working", **params})


def delivered(buffer: ReorderBuffer, now: int = NOW) -> list[Received]:
    """All changes that are due at a time, as tasks and revisions."""
    changes = iter(lambda: buffer.next(now), None)
    return [(change.task_id, change.revision) for change in changes]


def add(buffer: ReorderBuffer, *received: Received, at: int = NOW) -> list[bool]:
    """Add changes; returns what `add` did."""
    return [buffer.add(a_change(*each), at + GAP_TIMEOUT_MS) for each in received]


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, int], list[Received]]:
    """The delivered revisions of some tasks, their last revisions, and all changes in between,
    shuffled and repeated. Some changes that were delivered come once more.
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
    spec: tuple[dict[str, int], dict[str, int], list[Received]], data: st.DataObject
) -> None:
    """No change waits for `GAP_TIMEOUT_MS`. Deliveries happen at any moment."""
    before, after, received = spec
    buffer = ReorderBuffer(before)
    out: list[Received] = []
    for n, each in enumerate(received):
        add(buffer, each, at=NOW + n)
        if data.draw(st.booleans()):
            out += delivered(buffer, NOW + n)
    out += delivered(buffer, NOW + GAP_TIMEOUT_MS - 1)
    for task, last in after.items():
        assert [r for t, r in out if t == task] == list(range(before[task] + 1, last + 1))
    assert buffer.delivered == after


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("ab"), st.integers(1, 9)),
            st.tuples(st.just("wait"), st.just(""), st.integers(0, GAP_TIMEOUT_MS)),
            st.tuples(st.just("skip"), st.sampled_from("ab"), st.integers(1, 9)),
        ),
        max_size=40,
    )
)
def test_no_task_ever_goes_backwards(events: list[tuple[str, str, int]]) -> None:
    """Whichever changes are lost, late, repeated or skipped."""
    buffer, now, last = ReorderBuffer({"a": 2}), NOW, {"a": 2, "b": 0}
    for what, task, number in events:
        match what:
            case "add":
                add(buffer, (task, number), at=now)
            case "wait":
                now += number
            case _:
                buffer.skip_to(task, number)
                last[task] = max(last[task], number)
        for each, revision in delivered(buffer, now):
            assert revision > last[each]
            last[each] = revision
    now += GAP_TIMEOUT_MS
    delivered(buffer, now)
    assert delivered(buffer, now + GAP_TIMEOUT_MS) == [], "nothing is held back for good"


def test_the_first_delivered_revision_need_not_be_1() -> None:
    """A subscription begins with a task's current state."""
    buffer = ReorderBuffer({})
    add(buffer, ("a", 7))
    assert delivered(buffer) == [("a", 7)]


def test_a_gap_holds_back_what_comes_after_it() -> None:
    buffer = ReorderBuffer({"a": 1})
    add(buffer, ("a", 3), ("a", 4))
    assert delivered(buffer) == []
    add(buffer, ("a", 2))
    assert delivered(buffer) == [("a", 2), ("a", 3), ("a", 4)]


def test_a_gap_is_skipped_after_its_timeout() -> None:
    buffer = ReorderBuffer({"a": 1})
    add(buffer, ("a", 3))
    add(buffer, ("a", 4), at=NOW + 10)
    assert delivered(buffer, NOW + GAP_TIMEOUT_MS - 1) == []
    assert delivered(buffer, NOW + GAP_TIMEOUT_MS) == [("a", 3), ("a", 4)]


def test_each_gap_has_a_timeout_of_its_own() -> None:
    buffer = ReorderBuffer({"a": 1})
    add(buffer, ("a", 3))
    add(buffer, ("a", 5), at=NOW + 10)
    assert delivered(buffer, NOW + GAP_TIMEOUT_MS) == [("a", 3)]
    assert delivered(buffer, NOW + GAP_TIMEOUT_MS + 10) == [("a", 5)]


def test_a_repeated_change_does_not_prolong_the_wait() -> None:
    """A change that waits stays in its mailbox, so every read of the mailbox adds it again."""
    buffer = ReorderBuffer({"a": 1})
    add(buffer, ("a", 3))
    add(buffer, ("a", 3), at=NOW + GAP_TIMEOUT_MS)
    assert delivered(buffer, NOW + GAP_TIMEOUT_MS) == [("a", 3)]


def test_a_change_that_comes_too_late_is_dropped() -> None:
    buffer = ReorderBuffer({"a": 1})
    add(buffer, ("a", 3))
    assert delivered(buffer, NOW + GAP_TIMEOUT_MS) == [("a", 3)]
    assert add(buffer, ("a", 2), ("a", 3), ("a", 4)) == [False, False, True]
    assert delivered(buffer) == [("a", 4)]


@pytest.mark.parametrize("first", ["a", "b"])
def test_tasks_do_not_wait_for_each_other(first: str) -> None:
    buffer = ReorderBuffer({"a": 1, "b": 1})
    gap = {"a": "b", "b": "a"}[first]
    add(buffer, (gap, 3), (first, 2), (gap, 4), (first, 3))
    assert delivered(buffer) == [(first, 2), (first, 3)]


def test_a_skipped_change_is_not_delivered() -> None:
    buffer = ReorderBuffer({"a": 1, "b": 1})
    add(buffer, ("a", 2), ("a", 3), ("a", 5), ("b", 2))
    buffer.skip_to("a", 3)
    assert delivered(buffer) == [("b", 2)]
    add(buffer, ("a", 4))
    assert delivered(buffer) == [("a", 4), ("a", 5)]


def test_skipping_goes_forward_only() -> None:
    buffer = ReorderBuffer({"a": 5})
    buffer.skip_to("a", 3)
    assert add(buffer, ("a", 4), ("a", 5), ("a", 6)) == [False, False, True]
    buffer.skip_to("b", 2)
    assert add(buffer, ("b", 2), ("b", 3)) == [False, True]


def test_the_buffer_keeps_its_own_copy_of_the_delivered_revisions() -> None:
    """The mailbox's `delivered` changes when the subscription ends, and not before."""
    known = {"a": 1}
    buffer = ReorderBuffer(known)
    add(buffer, ("a", 2))
    assert delivered(buffer) == [("a", 2)]
    assert known == {"a": 1}
