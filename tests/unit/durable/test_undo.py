"""What was done is undone: last first, once, with several attempts; and what is left is named."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolError, tool
from mcp_tasks.durable.identity import arguments_hash
from mcp_tasks.durable.journal import OUTCOME
from mcp_tasks.durable.operations import DurableOperations
from mcp_tasks.durable.record import Failure, Kind, Operation, Record, State
from mcp_tasks.durable.run import Run
from mcp_tasks.registry.context import TaskCancelled
from mcp_tasks.registry.decorated_function import finished
from mcp_tasks.registry.durable_operations import StepOptions
from mcp_tasks.testing import crash_everywhere, start_task


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


END_MARGIN_MS = 5_000
"""How long after a run's deadline its function may still run (`worker.handler.END_MARGIN_MS`)."""
DONE: list[str] = []


def state() -> list[str]:
    """What was done; and forget it. A step that is killed may run twice."""
    found = list(dict.fromkeys(DONE))
    DONE.clear()
    return found


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def reserve(what: str) -> str:
    DONE.append(f"reserve {what}")
    if what == "nothing":
        raise ValueError("there is none")
    return what


def release(what: str) -> None:
    if what == "stuck":
        raise ConnectionError("no")
    DONE.append(f"release {what}")


def release_and_report(task: TaskContext, what: str) -> None:
    task.report(f"releasing {what}")
    release(what)


def tidy() -> None:
    DONE.append("tidy")


@tool(task="required")
def book(task: TaskContext, things: list[str], end: str = "ask") -> str:
    """Reserve things."""
    task.on_cancel(tidy)
    for what in things:
        task.step(reserve, what, undo=release)
    if end == "crash":
        raise ValueError("a secret")
    if end == "refuse":
        raise ToolError("too expensive")
    task.ask("Pay?", Yes)
    return "paid"


def test_the_last_thing_is_undone_first() -> None:
    start_task(book, {"things": ["a", "b"]}).cancel()
    assert DONE == ["reserve a", "reserve b", "release b", "release a", "tidy"]


@tool(task="required")
def book_and_report(task: TaskContext) -> str:
    """Reserve something, and say so."""
    task.report("reserving")
    task.step(reserve, "a", undo=partial(release_and_report, task))
    task.report("reserved")
    task.ask("Pay?", Yes)
    return "paid"


def test_a_tool_that_reports_is_undone() -> None:
    """A report to a task that has ended ends the function, and the undoing with it."""
    task = start_task(book_and_report, {}).cancel()
    assert (DONE, task.not_undone) == (["reserve a", "release a"], [])


@pytest.mark.parametrize("end", ["crash", "refuse"])
def test_undoing_survives_crashes(end: str) -> None:
    assert crash_everywhere(book, {"things": ["a", "b"], "end": end}, effects=state) > 20


def test_nothing_is_undone_when_all_goes_well() -> None:
    answers = {"answer": {"action": "accept", "content": {"yes": True}}}
    task = start_task(book, {"things": ["a"]}, answers=answers)
    assert task.status == "completed"
    assert DONE == ["reserve a"]


def test_a_step_that_failed_is_not_undone() -> None:
    task = start_task(book, {"things": ["a", "nothing"]})
    assert task.error == "StepFailed"
    assert DONE == ["reserve a", "reserve nothing", "release a", "tidy"]


@pytest.mark.parametrize("end", ["ask", "crash", "refuse"])
def test_what_cannot_be_undone_is_named_and_the_rest_is_undone(
    end: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    task = start_task(book, {"things": ["a", "stuck", "b"], "end": end}).cancel()
    assert DONE[3:] == ["release b", "release a", "tidy"]
    assert task.executed.count("release") == 2 + 8
    assert timedelta(0) < task.waited < timedelta(minutes=5)
    if end == "ask":
        assert (task.status, task.not_undone) == ("cancelled", ["reserve"])
    elif end == "refuse":
        assert task.result is not None
        assert task.result["content"][0]["text"] == "too expensive\nNot undone: reserve"
    else:
        assert (task.error, task.cause) == ("ValueError", "Not undone: reserve")
    out = capsys.readouterr().out
    assert '"NotUndone":[1.0]' in out
    assert "reserve" in [getattr(record, "not_undone", None) for record in caplog.records]
    crashes = [vars(each) for each in caplog.records if vars(each).get("step") == "release"]
    assert [(each["exception"], each["attempt"]) for each in crashes] == [
        ("ConnectionError", attempt) for attempt in range(1, 9)
    ]
    logged = [vars(each) for each in caplog.records if each.name != "mcp_tasks.tracebacks"]
    assert "a secret" not in out + str(logged)


def test_a_step_that_began_and_did_not_end_is_named_when_its_run_must_have_ended() -> None:
    task = start_task(book, {"things": []})
    record_id = "000002"
    journal = task.journal()
    journal.read()
    journal.write(Record(record_id, Operation(Kind.STEP, "reserve"), State.STARTED, undo="release"))
    task.cancel()
    assert task.not_undone == ["reserve"]
    assert task.waited >= task.tool.timeout
    assert DONE == ["tidy"]


@pytest.mark.parametrize("state", [State.STARTED, State.DONE])
@pytest.mark.parametrize("seen", [False, True])
def test_a_run_whose_task_is_cancelled_leaves_the_step_of_another_run_alone(
    state: State, seen: bool
) -> None:
    task = start_task(book, {"things": []})
    other, journal = task.journal(), task.journal()
    journal.read()
    other.read()
    step = Operation(Kind.STEP, "reserve", None, arguments_hash("a"))
    if seen:
        other.write(Record("000002", step, State.STARTED, undo="release"))
        journal = task.journal()
    journal.read()
    other.write(Record("000002", step, state, value="a", undo="release"))

    def cancelled() -> None:
        raise TaskCancelled

    run = Run(journal, task.clock, task.clock() + 60_000, task.tool.ttl, announce_undo=cancelled)
    operations = DurableOperations(run)
    finished(operations.on_cancel(tidy))
    with pytest.raises(TaskCancelled):
        finished(operations.step(reserve, ["a"], StepOptions(), release))
    assert task.journal_table.partitions[journal.partition]["000002"].state is state


def test_a_task_that_is_cancelled_at_on_cancel_has_it_in_its_journal() -> None:
    """Else the execution that undoes would not see it, and the run would go on for a moment."""

    @tool(task="required")
    def hold(task: TaskContext) -> None:
        """Have something tidied up."""
        task.on_cancel(tidy)
        task.ask("Go on?", Yes)

    task = start_task(hold)
    task.journal_table.partitions.clear()

    def announced() -> None:
        task.to_undo = True
        task.cancel()

    deadline = task.clock() + 60_000
    run = Run(task.journal(), task.clock, deadline, task.tool.ttl, announce_undo=announced)
    TaskContext(operations=DurableOperations(run)).on_cancel(tidy)
    assert (task.status, DONE) == ("cancelled", ["tidy"])


def test_a_task_that_is_cancelled_while_its_own_failure_is_undone_is_undone() -> None:
    task = start_task(book, {"things": ["a"]})
    journal = task.journal()
    journal.read()
    failure = Failure("ToolError", "too expensive")
    journal.write(
        Record(OUTCOME, Operation(Kind.RUN, "book"), State.FAILED, failure=failure, attempts=1)
    )
    task.cancel()
    assert (task.status, task.not_undone) == ("cancelled", [])
    assert DONE == ["reserve a", "release a", "tidy"]


def test_a_run_that_undoes_waits_for_another_one_that_does_so() -> None:
    task = start_task(book, {"things": ["a"]})
    journal = task.journal()
    journal.read()
    until = task.clock() + 30_000
    journal.write(
        Record(
            "undo#000002",
            Operation(Kind.UNDO, "release"),
            State.STARTED,
            attempts=1,
            due_at=until,
        )
    )
    task.cancel()
    assert task.clock() >= until
    assert DONE == ["reserve a", "release a", "tidy"]


def test_an_undo_is_left_to_its_run_until_lambda_has_ended_that() -> None:
    @tool(task="required")
    def pay(task: TaskContext) -> None:
        """Pay, and be killed while that is undone."""
        task.step(reserve, "a", undo=release)
        task.ask("Go on?", Yes)

    task = start_task(pay)
    writes = task.journal_table.writes
    task.journal_table.crashes = lambda number, before: number == writes + 1 and not before
    began = task.clock()
    task.cancel()
    assert task.clock() >= began + task.tool.timeout // timedelta(milliseconds=1) + END_MARGIN_MS
    assert DONE == ["reserve a", "release a"]


@tool(task="required")
def book_and_sleep(task: TaskContext) -> None:
    """Reserve something, sleep, and ask."""
    task.step(reserve, "a", undo=release)
    task.sleep(timedelta(hours=2))
    task.ask("Pay?", Yes)


def test_what_is_undone_does_not_wait_until_the_tool_would_have_woken() -> None:
    task = start_task(book_and_sleep)
    assert task.status == "input_required"
    task.clock.ms -= 3_600_000  # it is cancelled asleep
    cancelled_at = task.clock()
    task.cancel()
    assert DONE == ["reserve a", "release a"]
    assert task.clock() == cancelled_at
