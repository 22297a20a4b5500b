"""What a tool reports is told once, although it runs again from its first line."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import AsyncTaskContext, TaskContext, tool
from mcp_tasks.durable.operations import DurableOperations
from mcp_tasks.durable.run import Mode, Run
from mcp_tasks.testing import LocalTask, start_task


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


@tool(task="required")
async def travel(task: AsyncTaskContext, cities: list[str]) -> int:
    """Report before, between and after all kinds of operations, and in an item of a map."""

    def visit(city: str) -> int:
        task.report(f"visits {city}")
        return len(city)

    task.report("begins")
    letters = await task.map(visit, cities, concurrency=1)
    task.report("rests")
    await task.sleep(timedelta(days=1))
    task.report("asks")
    await task.ask("Go on?", Yes)
    task.report("goes on")
    await task.sleep(timedelta(days=1))
    task.report("is back")
    return sum(letters)


def after_the_answer() -> LocalTask:
    answer = {"answer": {"action": "accept", "content": {"yes": True}}}
    return start_task(travel, {"cities": ["Rome", "Oslo"]}).answer(answer)


def test_each_report_is_told_in_its_turn() -> None:
    task = after_the_answer()
    assert task.runs > 4
    told = ["begins", "visits Rome", "visits Oslo", "rests", "asks", "asks", "goes on", "is back"]
    # A question is no operation: what comes right before it may be told again.
    assert task.reports == told


def test_a_run_that_only_repeats_tells_nothing() -> None:
    task = after_the_answer()
    changed: list[str] = []
    journal = task.journal()
    journal.read()
    operations = DurableOperations(
        Run(journal, task.clock, task.clock() + 60_000, timedelta(days=30), Mode.UNDO)
    )
    context = TaskContext(
        operations=operations,
        on_report=lambda *_: changed.append("told"),
        on_resource_changed=changed.append,
    )
    context.report("undoes")
    context.resource_changed("file:///a")
    assert changed == []


def reserve() -> str:
    """A step with an undo."""
    return "a seat"


@tool(task="required")
def works_on(task: TaskContext) -> int:
    """Work without a durable operation, and report."""
    task.step(reserve, undo=str)
    for number in range(3):
        task.report(f"number {number}")
        WORKED.append(number)
        if number == 1:
            task.ask("Go on?", Yes)
    return 3


WORKED: list[int] = []


def test_a_run_that_undoes_ends_at_the_first_report_after_its_journal() -> None:
    """It need not work on, and its task has ended."""
    WORKED.clear()
    task = start_task(works_on)
    assert (task.status, WORKED) == ("input_required", [0, 1])
    task.cancel()
    assert WORKED == [0, 1]
    assert task.executed == ["reserve", "str"]
    assert task.not_undone == []
