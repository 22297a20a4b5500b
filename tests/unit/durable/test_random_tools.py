"""Tools made at random, killed at random: no finished step twice, no undo missing.

Each history is a tool of up to eight operations, up to four moments at which its run is killed, and
a client that answers or cancels. What the steps and undos did is compared with what they had to do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_tasks import AsyncTaskContext, TaskContext, ToolError, tool
from mcp_tasks.testing import LocalTask, start_task
from mcp_tasks.testing.memory import MemoryJournalTable

HISTORIES = 300


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


ACCEPTED: dict[str, Any] = {"action": "accept", "content": {"yes": True}}
OPERATIONS = st.one_of(
    st.tuples(st.just("step"), st.booleans()),
    st.tuples(st.just("map"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["sleep", "ask", "now", "on_cancel"]), st.just(0)),
)
CRASHES = st.dictionaries(st.integers(2, 30), st.booleans(), max_size=4)
"""Write of the journal -> whether its run is killed before it, or after it."""


@dataclass
class Done:
    """What a tool's functions did, in their order."""

    steps: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    checks: int = 0

    def step(self, name: str) -> str:
        """A step, and an item of a map."""
        self.steps.append(name)
        return name

    def undo(self, name: str) -> None:
        """Undo a step."""
        self.undone.append(name)

    def check(self, times: int) -> bool:
        """Be true at the third call, for instance."""
        self.checks += 1
        return self.checks % times == 0


def operate(task: TaskContext, operations: list[Any], done: Done) -> list[str]:
    """The body of a tool, as a `def`."""
    results: list[str] = []
    for n, (kind, detail) in enumerate(operations):
        if kind == "step":
            undo = done.undo if detail else None
            results.append(task.step(done.step, f"step {n}", undo=undo))
        elif kind == "map":
            items = [f"item {n}.{each}" for each in range(detail)]
            results += task.map(done.step, items, concurrency=2)
        elif kind == "wait":
            task.wait_for(
                partial(done.check, detail), every=timedelta(minutes=1), until=timedelta(hours=9)
            )
        elif kind == "sleep":
            task.sleep(timedelta(minutes=n))
        elif kind == "ask":
            task.ask("Go on?", Yes, key=f"ask {n}")
        elif kind == "now":
            results.append(task.now().isoformat())
        else:
            task.on_cancel(partial(done.undo, f"step {n}"))
    return results


def run(operations: list[Any], end: str, crashes: dict[int, bool]) -> tuple[LocalTask, Done, int]:
    """A tool's task, to its end; what it did; and how often it was killed before a write."""
    done, left, before_writes = Done(), dict(crashes), [0]

    def crash(number: int, before: bool) -> bool:
        if left.get(number) is before:
            del left[number]
            before_writes[0] += before
            return True
        return False

    @tool(task="required", ttl=timedelta(days=1))
    def made(task: TaskContext) -> list[str]:
        """A tool that was made at random."""
        results = operate(task, operations, done)
        if end == "refuse":
            raise ToolError("no")
        if end == "crash":
            raise ValueError("no")
        return results

    task = start_task(made, journal_table=MemoryJournalTable(crashes=crash))
    while task.status == "input_required":
        if end == "cancel":
            task.cancel()
        else:
            task.answer(dict.fromkeys(task.questions, ACCEPTED))
    return task, done, before_writes[0]


@settings(max_examples=HISTORIES)
@given(
    st.lists(OPERATIONS, max_size=8),
    st.sampled_from(["return", "refuse", "crash", "cancel"]),
    CRASHES,
)
def test_whatever_kills_it_a_tool_does_each_thing_once(
    operations: list[Any], end: str, crashes: dict[int, bool]
) -> None:
    undisturbed, wanted, _ = run(operations, end, {})
    task, done, killed = run(operations, end, crashes)

    assert (task.status, task.error) == (undisturbed.status, undisturbed.error)
    assert not task.to_undo or task.status == "completed"
    repeated = Counter(done.steps) - Counter(wanted.steps)
    assert not Counter(wanted.steps) - Counter(done.steps)
    assert repeated.total() <= killed
    if "now" not in [kind for kind, _ in operations]:
        assert task.result == undisturbed.result
    assert list(dict.fromkeys(done.undone)) == wanted.undone
    assert (Counter(done.undone) - Counter(wanted.undone)).total() <= killed
    assert task.not_undone == []
    if end != "cancel":
        slept = sum(n for n, (kind, _) in enumerate(operations) if kind == "sleep")
        assert task.waited >= timedelta(minutes=slept)


@given(st.integers(1, 4), CRASHES)
def test_a_tool_that_fails_once_does_not_go_on_with_what_is_undone(
    steps: int, crashes: dict[int, bool]
) -> None:
    done, left, failed = Done(), dict(crashes), [0]

    def crash(number: int, before: bool) -> bool:
        return left.get(number) is before and left.pop(number) is before

    @tool(task="required")
    def made(task: TaskContext) -> str:
        """A tool that fails the first time that it comes to its end."""
        for n in range(steps):
            task.step(done.step, f"step {n}", undo=done.undo)
        failed[0] += 1
        if failed[0] == 1:
            raise ToolError("no")
        return "went on"

    task = start_task(made, journal_table=MemoryJournalTable(crashes=crash))
    assert task.result is not None
    undone = [f"step {n}" for n in reversed(range(steps))]
    assert list(dict.fromkeys(done.undone)) == (undone if "isError" in task.result else [])


@given(st.lists(st.booleans(), max_size=6), st.booleans())
def test_coroutines_do_the_same(undoable: list[bool], refuse: bool) -> None:
    done = Done()

    @tool(task="required")
    async def made(task: AsyncTaskContext) -> list[str]:
        """A tool of steps."""
        results = [
            await task.step(done.step, f"step {n}", undo=done.undo if undo else None)
            for n, undo in enumerate(undoable)
        ]
        if refuse:
            raise ToolError("no")
        return results

    task = start_task(made)
    assert task.status == "completed"
    assert done.steps == [f"step {n}" for n in range(len(undoable))]
    undone = [f"step {n}" for n, undo in enumerate(undoable) if undo and refuse]
    assert done.undone == undone[::-1]
