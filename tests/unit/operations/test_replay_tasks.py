"""A tool is run against the journal of its task: it says where it leaves the record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_tasks import TaskContext, tool
from mcp_tasks.durable.journal import Journal
from mcp_tasks.testing import LocalTask, start_task
from mcp_tasks.workflows.replay import Replayed, replay
from operations.replay_tasks import Recorded, load, save

CALLED: list[str] = []


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


def make(number: int) -> str:
    CALLED.append(f"make {number}")
    return "x" * number


def destroy(made: str) -> None:
    CALLED.append("destroy")


def body(task: TaskContext) -> str:
    made: str = task.step(make, 9_000, undo=destroy)
    task.ask("Go on?", Yes)
    return made + task.step(make, 2)


def task_of(run: Callable[[TaskContext], Any]) -> tuple[LocalTask, list[Callable[..., Any]]]:
    """A task that waits for an answer, and its tool's body, which may be replaced."""
    bodies: list[Callable[..., Any]] = [run]

    @tool(task="required")
    def maker(task: TaskContext) -> str:
        """A tool."""
        return str(bodies[0](task))

    CALLED.clear()
    return start_task(maker), bodies


def replayed(task: LocalTask) -> Replayed:
    CALLED.clear()
    writes = task.journal_table.writes
    result = replay(task.tool, journal_of(task), task.arguments)
    assert CALLED == []
    assert task.journal_table.writes == writes
    return result


def journal_of(task: LocalTask) -> Journal:
    return task.journal()


def test_it_stops_where_the_task_waits() -> None:
    task, _ = task_of(body)
    assert replayed(task) == Replayed(1, "asks answer")


def test_it_comes_to_the_end_of_a_task_that_is_done() -> None:
    task, _ = task_of(body)
    task.answer({"answer": {"action": "accept", "content": {"yes": True}}})
    assert task.status == "completed"
    assert replayed(task) == Replayed(2, "returns its result")


def test_it_names_what_changed_code_does_otherwise() -> None:
    task, bodies = task_of(body)
    bodies[0] = lambda task: task.step(make, 3)
    assert "step make, with other arguments" in (replayed(task).difference or "")
    bodies[0] = lambda task: "nothing"
    assert "now it ends" in (replayed(task).difference or "")


def test_it_says_what_comes_after_the_record() -> None:
    task, bodies = task_of(body)
    bodies[0] = lambda task: [task.step(make, 9_000), task.step(make, 1)]
    assert replayed(task).end == "comes to an operation that is not recorded"
    bodies[0] = lambda task: 1 / 0
    assert replayed(task).end == "raises ZeroDivisionError: division by zero"


def test_a_record_is_kept_in_a_file(tmp_path: Path) -> None:
    task, _ = task_of(body)
    file = tmp_path / "task.json"
    journal = journal_of(task)
    save(Recorded(journal.task_id, "maker", {"a": 1}, journal), file)
    kept = load(file)
    assert (kept.tool, kept.arguments) == ("maker", {"a": 1})
    kept.journal.clock = task.clock
    assert replay(task.tool, kept.journal, {}) == Replayed(1, "asks answer")
    assert json.loads(file.read_text())["task"] == journal.task_id


@pytest.mark.parametrize("secret", ["KEY"])
def test_secrets_are_not_read(secret: str) -> None:
    @tool(task="required", secrets={"KEY": "a/key"})
    def guarded(task: TaskContext) -> str:
        """A tool with a secret."""
        task.secret(secret)
        return str(task.step(make, 1))

    task = start_task(guarded, secrets={"KEY": "hunter2"})
    assert replayed(task) == Replayed(1, "returns its result")
