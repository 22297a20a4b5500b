"""A tool that runs again comes to the same operations, or fails clearly and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_tasks import AsyncTaskContext, TaskContext, tool
from mcp_tasks.testing import LocalTask, start_task


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


ACCEPTED = {"answer": {"action": "accept", "content": {"yes": True}}}
Body = Callable[[TaskContext], Any]


def double(number: int) -> int:
    return 2 * number


def triple(number: int) -> int:
    return 3 * number


def changed(first: Body, then: Body) -> LocalTask:
    """A task whose tool's code is changed while it waits for an answer."""
    body = [first]

    @tool(task="required")
    def change(task: TaskContext) -> str:
        """A tool that is deployed again."""
        return str(body[0](task))

    waiting = start_task(change)
    assert waiting.status == "input_required"
    body[0] = then
    return waiting.answer(ACCEPTED)


def ask(task: TaskContext) -> bool:
    return task.ask("Go on?", Yes).yes


def first(task: TaskContext) -> int:
    kept = task.step(double, 1)
    ask(task)
    return kept


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (
            lambda task: task.step(triple, 1),
            "its journal has step double, and now it comes to step triple",
        ),
        (
            lambda task: task.step(double, 2),
            "its journal has step double, and now it comes to step double, with other arguments",
        ),
        (
            lambda task: task.step(double, 1, key="b"),
            "its journal has step double, and now it comes to step double (b)",
        ),
        (
            lambda task: task.sleep(timedelta(1)),
            "its journal has step double, and now it comes to sleep for",
        ),
        (lambda task: "nothing", "its journal has step double, and now it ends"),
    ],
)
def test_another_way_fails_and_says_which(then: Body, message: str) -> None:
    task = changed(first, then)
    assert task.status == "failed"
    assert task.error == "NonDeterminism"
    assert message in task.cause


def test_what_was_done_is_not_undone_by_code_that_does_not_know_it() -> None:
    def undoable(task: TaskContext) -> int:
        kept: int = task.step(double, 1, undo=triple)
        ask(task)
        return kept

    task = changed(undoable, lambda task: task.step(triple, 1))
    assert task.executed == ["double"]
    assert task.journal_table.writes > 0


def test_new_code_takes_the_old_way_for_old_tasks() -> None:
    def versioned(task: TaskContext) -> int:
        if task.version("triple", 1) == 0:
            kept = task.step(double, 1)
            ask(task)
            return kept
        return task.step(triple, 1)

    task = changed(first, versioned)
    assert (task.status, task.executed) == ("completed", ["double"])

    @tool(task="required")
    def new(task: TaskContext) -> int:
        """A task that begins with the new code."""
        return versioned(task)

    assert start_task(new).executed == ["triple"]


def test_a_version_stays_what_it_was_when_the_tool_came_there_first() -> None:
    numbers: list[int] = []

    def at(number: int) -> Body:
        def body(task: TaskContext) -> int:
            numbers.append(task.version("change", number))
            return first(task)

        return body

    assert changed(at(1), at(2)).status == "completed"
    assert numbers == [1, 1]


def test_code_before_the_first_operation_and_after_the_last_may_change() -> None:
    def extended(task: TaskContext) -> str:
        return f"{first(task)} and {task.step(triple, 1)}"

    task = changed(first, extended)
    assert (task.status, task.executed) == ("completed", ["double", "triple"])


def test_the_same_time_numbers_and_names_in_each_run() -> None:
    seen: list[Any] = []

    def look(task: TaskContext) -> str:
        seen.append((task.now(), task.random(), task.uuid(), task.random(), task.uuid()))
        ask(task)
        return ""

    changed(look, look)
    one, two = seen
    assert one == two
    _, first_random, first_uuid, second_random, second_uuid = one
    assert 0 <= first_random < 1
    assert (first_random, first_uuid) != (second_random, second_uuid)


def test_operations_of_coroutines_are_told_apart_however_they_are_awaited() -> None:
    import asyncio

    @tool(task="required")
    async def both(task: AsyncTaskContext) -> list[int]:
        """Begin two steps, and await them in another order."""
        one, two = task.step(double, 1), task.step(triple, 1)
        kept = [await two, await one]
        await task.sleep(timedelta(seconds=5))
        more = await asyncio.gather(task.step(double, 2), task.step(triple, 2))
        await task.ask("Go on?", Yes)
        return [*kept, *more]

    task = start_task(both, answers=ACCEPTED)
    assert task.result is not None
    assert task.result["structuredContent"] == [3, 2, 4, 6]
    assert sorted(task.executed) == ["double", "double", "triple", "triple"]


def test_a_key_has_a_limit() -> None:
    @tool(task="required")
    def keyed(task: TaskContext) -> str:
        """A long key."""
        return str(task.step(double, 1, key="k" * 201))

    assert start_task(keyed).error == "ValueError"
