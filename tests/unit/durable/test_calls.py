"""Tools that call other tools, in one process: what they get, and what is undone in which order."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from mcp_tasks import (
    AsyncTaskContext,
    SubtaskFailed,
    TaskContext,
    ToolError,
    ToolResult,
    content,
    tool,
    workflow_tool,
)
from mcp_tasks.registry.schema import InvalidArguments
from mcp_tasks.tasks.subtask import MAX_SUBTASKS
from mcp_tasks.testing import crash_everywhere, start_task

done: list[str] = []
"""What the steps have done, and undone."""


class Approve(BaseModel):
    """A yes or a no."""

    yes: bool


@dataclass
class Letter:
    """A typed result."""

    text: str
    pages: int


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def note(line: str) -> str:
    """A step with an effect."""
    done.append(line)
    return line


def undo(line: str) -> None:
    """Undo it."""
    done.append(f"undo {line}")


@tool(task="optional")
def write(task: TaskContext, to: str, pages: int = 1) -> Letter:
    """Write a letter."""
    if pages > 10:
        raise ToolError("too long")
    if not pages:
        raise ValueError("a secret")
    task.step(note, f"write to {to}", undo=undo)
    return Letter(f"Dear {to}", pages)


@tool(task="required")
async def ask_and_write(task: AsyncTaskContext, to: str) -> str:
    """Write a letter, if somebody approves."""
    await task.step(note, f"draft to {to}", undo=undo)
    if not (await task.ask(f"Write to {to}?", Approve)).yes:
        raise ToolError("not approved")
    return to


@tool
def greet(name: str) -> str:
    """Greet somebody, within the request."""
    return name


class Upto(BaseModel):
    """Arguments of a workflow."""

    upto: int


count = workflow_tool(
    "count",
    description="Count.",
    arguments=Upto,
    result=list[int],
    state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:count",
)


@tool(task="required")
async def call_write(task: AsyncTaskContext, to: str, pages: int = 1) -> list[object]:
    """Call the tool, and tell what came."""
    try:
        letter = await task.call(write, to=to, pages=pages)
    except SubtaskFailed as failed:
        return [failed.tool, failed.status, failed.message]
    return [type(letter).__name__, letter.text, letter.pages]


def test_a_call_returns_what_the_tool_returns_in_its_own_type() -> None:
    task = start_task(call_write, {"to": "Ann"})
    assert task.result is not None
    assert task.result["structuredContent"] == ["Letter", "Dear Ann", 1]
    (letter,) = task.subtasks
    assert (letter.status, letter.tool.name) == ("completed", "write")
    assert task.runs == 2


def test_a_call_that_fails_raises_and_says_what_clients_are_told() -> None:
    task = start_task(call_write, {"to": "Ann", "pages": 0})
    assert task.result is not None
    said = ["write", "failed", "The tool failed: ValueError"]
    assert task.result["structuredContent"] == said


def test_the_tool_error_of_a_called_tool_is_its_callers() -> None:
    task = start_task(call_write, {"to": "Ann", "pages": 11})
    assert task.result is not None
    assert task.result["isError"]
    assert task.result["content"][0]["text"] == "too long"


@tool(task="required")
def call_wrongly(task: TaskContext) -> str:
    """Call a tool with arguments that it does not take."""
    task.call(write, to=["Ann"])
    return ""


def test_wrong_arguments_are_an_error_before_anything_is_started() -> None:
    task = start_task(call_wrongly)
    assert (task.status, task.error) == ("failed", InvalidArguments.__name__)
    assert task.journal_table.writes == 0


@tool(task="required")
def write_all(task: TaskContext, names: list[str], tolerate: int = 0) -> list[str]:
    """Call a tool for each of several arguments."""
    each = [{"to": name, "pages": 0 if name == "Bob" else 1} for name in names]
    letters = task.map(write, each, concurrency=2, tolerate=tolerate)
    return [str(x) if isinstance(x, Exception) else x.text for x in letters]


def test_a_map_over_a_tool_returns_results_in_the_order_of_its_arguments() -> None:
    task = start_task(write_all, {"names": ["Ann", "Cy", "Di"]})
    assert task.result is not None
    assert task.result["structuredContent"] == ["Dear Ann", "Dear Cy", "Dear Di"]
    assert [sub.arguments["to"] for sub in task.subtasks] == ["Ann", "Cy", "Di"]
    assert len({sub.task_id for sub in task.subtasks}) == 3


def test_a_tolerated_failure_of_a_subtask_is_among_the_results() -> None:
    task = start_task(write_all, {"names": ["Ann", "Bob"], "tolerate": 1})
    assert task.result is not None
    failed = "write failed: The tool failed: ValueError"
    assert task.result["structuredContent"] == ["Dear Ann", failed]


def test_more_failures_than_are_tolerated_raise_the_first_one() -> None:
    task = start_task(write_all, {"names": ["Ann", "Bob"]})
    assert (task.status, task.error) == ("failed", SubtaskFailed.__name__)


@tool(task="required")
def write_none(task: TaskContext, how_many: int) -> int:
    """Call a tool for no arguments, or for too many."""
    return len(task.map(write, [{"to": "x"}] * how_many))


def test_no_arguments_are_no_subtasks() -> None:
    task = start_task(write_none, {"how_many": 0})
    assert task.result is not None
    assert task.result["structuredContent"] == 0
    assert task.journal_table.writes == 1  # the journal was begun


def test_a_task_has_a_thousand_subtasks_at_most() -> None:
    task = start_task(write_none, {"how_many": MAX_SUBTASKS + 1})
    assert (task.status, task.error) == ("failed", "ValueError")
    assert task.subtasks == []


@tool(task="required")
async def approve_all(task: AsyncTaskContext, names: list[str]) -> list[str]:
    """Call tools that ask."""
    await task.step(note, "begin", undo=undo)
    letters: list[str] = await task.map(ask_and_write, [{"to": name} for name in names])
    return letters


YES = {"answer": {"action": "accept", "content": {"yes": True}}}
NO = {"answer": {"action": "accept", "content": {"yes": False}}}


def test_a_subtask_asks_and_its_parent_works_meanwhile() -> None:
    task = start_task(approve_all, {"names": ["Ann", "Bob"]})
    assert task.status == "working"
    assert [sub.status for sub in task.subtasks] == ["input_required"] * 2
    task.subtasks[1].answer(YES)
    assert task.status == "working"
    task.subtasks[0].answer(YES)
    assert task.result is not None
    assert task.result["structuredContent"] == ["Ann", "Bob"]


def test_a_subtask_that_is_declined_undoes_itself_and_then_its_parent() -> None:
    task = start_task(approve_all, {"names": ["Ann"]})
    task.subtasks[0].answer(NO)
    assert task.result is not None
    assert task.result["isError"]
    assert done == ["begin", "draft to Ann", "undo draft to Ann", "undo begin"]


def test_a_cancel_ends_subtasks_first() -> None:
    task = start_task(approve_all, {"names": ["Ann", "Bob"]})
    task.cancel()
    assert [each.status for each in (task, *task.subtasks)] == ["cancelled"] * 3
    assert done[-3:] == ["undo draft to Ann", "undo draft to Bob", "undo begin"]


def test_a_subtask_that_is_cancelled_alone_is_a_failure_of_its_parents_call() -> None:
    task = start_task(approve_all, {"names": ["Ann"]})
    task.subtasks[0].cancel()
    assert (task.status, task.error) == ("failed", SubtaskFailed.__name__)


@tool(task="required")
def call_a_workflow(task: TaskContext) -> list[int]:
    """Call a tool that is a state machine."""
    numbers: list[int] = task.call(count, upto=3)
    return numbers


def test_a_workflow_that_is_called_is_replaced_in_a_test() -> None:
    task = start_task(call_a_workflow, steps={count: lambda upto: list(range(upto))})
    assert task.result is not None
    assert task.result["structuredContent"] == [0, 1, 2]
    with pytest.raises(TypeError, match="count is a workflow"):
        start_task(call_a_workflow)


def test_a_tool_is_replaced_in_a_test_and_may_fail() -> None:
    def fail(to: str, pages: int) -> Letter:
        raise ToolError("no paper")

    task = start_task(call_write, {"to": "Ann"}, steps={write: fail})
    assert task.result is not None
    assert task.result["content"][0]["text"] == "no paper"
    task = start_task(call_write, {"to": "Ann"}, steps={write: lambda to, pages: 1 / 0})
    assert task.result is not None
    assert task.result["structuredContent"][2] == "The tool failed: ZeroDivisionError"


@tool(task="required")
def call_what_is_no_task(task: TaskContext, what: str) -> str:
    """Call, or map over, what cannot be a subtask."""
    match what:
        case "request":
            task.call(greet, name="x")
        case "function":
            task.call(note, line="x")
        case "options":
            task.map(write, [{"to": "x"}], timeout=write.__mcp_declaration__.timeout)  # type: ignore[attr-defined]
        case "items":
            task.map(write, ["x"])
    return ""


@pytest.mark.parametrize("what", ["request", "function", "options", "items"])
def test_what_is_no_subtask_is_named(what: str) -> None:
    task = start_task(call_what_is_no_task, {"what": what})
    assert (task.status, task.error) == ("failed", "TypeError")
    assert {"request": "greet", "function": "note"}.get(what, "write") in task.cause


@tool(task="required")
def greet_all(task: TaskContext) -> list[str]:
    """A tool that answers within a request is a function like any other: a step."""
    greetings: list[str] = task.map(greet, ["Ann", "Bob"])
    return greetings


def test_a_tool_that_is_no_task_is_a_step_of_a_map() -> None:
    task = start_task(greet_all)
    assert task.executed == ["greet", "greet"]
    assert task.subtasks == []


def draw() -> ToolResult:
    """Two blocks."""
    return ToolResult([content.text("a"), content.text("b")])


@tool(task="required")
def blocks(task: TaskContext) -> ToolResult:
    """Return content blocks."""
    return draw()


@tool(task="required")
def nothing(task: TaskContext) -> None:
    """Return nothing."""


@tool(task="required")
def call_others(task: TaskContext) -> list[str]:
    """Call tools with other kinds of results."""
    return [str(task.call(nothing)), str(len(task.call(blocks).content))]


def test_blocks_and_nothing_are_results_too() -> None:
    task = start_task(call_others)
    assert task.result is not None
    assert task.result["structuredContent"] == ["None", "2"]


def test_a_large_result_of_a_subtask_comes_whole() -> None:
    task = start_task(call_write, {"to": "Ann" * 20_000})
    assert task.result is not None
    assert len(task.result["structuredContent"][1]) == 60_005


@tool(task="required")
async def company(task: AsyncTaskContext) -> list[str]:
    """Steps around subtasks."""
    await task.step(note, "open", undo=undo)
    letters = await task.map(write, [{"to": "Ann"}, {"to": "Bob"}])
    last = await task.call(write, to="Cy")
    await task.step(note, "close")
    return [letter.text for letter in [*letters, last]]


def test_no_crash_of_a_parent_or_a_subtask_does_anything_twice() -> None:
    def effects() -> list[str]:
        found = sorted(set(done))
        done.clear()
        return found

    assert crash_everywhere(company, effects=effects) > 20
