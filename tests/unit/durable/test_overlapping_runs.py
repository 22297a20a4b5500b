"""Two runs of a tool at once: the first was taken for dead, and goes on. Both get one result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mcp_tasks import TaskContext, tool
from mcp_tasks.durable.identity import arguments_hash
from mcp_tasks.durable.journal import Journal, item_id
from mcp_tasks.durable.operations import DurableOperations
from mcp_tasks.durable.record import Kind, Operation, Record, State
from mcp_tasks.durable.run import Run
from mcp_tasks.durable.suspension import Suspended
from mcp_tasks.registry.decorated_function import finished
from mcp_tasks.registry.durable_operations import StepOptions
from mcp_tasks.testing import LocalTask, start_task


@tool(task="required")
def nothing(task: TaskContext) -> str:
    """A tool whose task is used for its journal."""
    return "done"


def ready() -> int:
    return 7


def double(number: int) -> int:
    return 2 * number


@pytest.fixture
def task() -> LocalTask:
    return start_task(nothing)


def run_of(task: LocalTask, journal: Journal) -> DurableOperations:
    """A run that has read the journal as it is now."""
    run = Run(journal, task.clock, task.clock() + 60_000, task.tool.ttl)
    run.enter()
    return DurableOperations(run)


def journals(task: LocalTask) -> tuple[Journal, Journal]:
    """Those of two runs, which begin at the same time."""
    found = task._journal(), task._journal()
    for journal in found:
        journal.open({})
    return found


def test_a_wait_that_another_run_has_begun_is_not_taken_for_its_result(task: LocalTask) -> None:
    first, second = journals(task)
    operations = run_of(task, second)
    waits: dict[str, Any] = {"every": timedelta(minutes=1), "until": timedelta(hours=1)}
    operation = Operation(Kind.WAIT_FOR, "ready", None, arguments_hash())
    first.write(Record("000001", operation, State.STARTED, value=task.clock() + 3_600_000))
    with pytest.raises(Suspended):
        finished(operations.wait_for(ready, **waits))
    assert finished(run_of(task, task._journal()).wait_for(ready, **waits)) == 7


def test_the_end_of_a_map_does_not_depend_on_another_run_that_counts(task: LocalTask) -> None:
    first, _ = journals(task)
    operation = Operation(Kind.MAP, "double", None, arguments_hash([1, 2], 2))
    begun = Record("000001", operation, State.STARTED, value=0)
    first.write(begun)
    for lane, number in enumerate([1, 2]):
        item = Operation(Kind.ITEM, "double")
        first.write(Record(item_id(lane, lane), item, State.DONE, value=2 * number), "000001")
    operations = run_of(task, task._journal())
    first.write(Record("000001", operation, State.STARTED, value=2, attempts=1))
    doubled = operations.map(double, [1, 2], StepOptions(), concurrency=2, tolerate=0)
    assert finished(doubled) == [2, 4]
