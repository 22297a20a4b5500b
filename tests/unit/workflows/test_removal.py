"""A tool, or the server, is removed: its tasks end, and are told why."""

from __future__ import annotations

import logging
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.errors import Busy
from mcp_tasks.tasks.state import Status
from mcp_tasks.workflows import removal
from mcp_tasks.workflows.execution_outcome import (
    NOT_UNDONE,
    SERVER_REMOVED,
    TOOL_REMOVED,
    Failed,
    outcome,
)
from mcp_tasks.workflows.executions import ExecutionEnd, execution_arn
from mcp_tasks.workflows.removal import remove_executions
from tests.unit.support.aws import refusing
from tests.unit.support.example_task import ID, NOW
from tests.unit.support.reconciling import ARN, MACHINE, World

LATER: Final = NOW + 60_000
UNDO: Final = f"{ID}-undo"
UNDO_ARN: Final = execution_arn(MACHINE, UNDO)


@pytest.fixture
def world(moto: None, no_account: None, catalogue: Catalogue) -> World:
    return World(catalogue)


def remove(world: World, *names: str, seconds: float = 60, **changes: Any) -> dict[str, int]:
    """What `make destroy` asks for; returns what the executions came to, as far as it is any."""
    request = {
        "stateMachine": MACHINE,
        "executions": names or (ID,),
        "removed": "tool",
        "undo": True,
        **changes,
    }
    found = remove_executions(request, world.ends, lambda: LATER, seconds)
    return {what: count for what, count in found.items() if count}


@pytest.mark.parametrize(
    ("removed", "message"), [("tool", TOOL_REMOVED), ("server", SERVER_REMOVED)]
)
def test_a_task_that_waits_fails_and_says_why(world: World, removed: str, message: str) -> None:
    """Its state would wait for an answer as long as the task lives, and the state machine for it:
    "deleted only when all its executions are completed" (API reference, "DeleteStateMachine")."""
    world.started()
    world.asked("token 1")
    assert remove(world, removed=removed) == {"ended": 1}
    task = world.row
    assert (task.status, task.status_message) == (Status.FAILED, message)
    assert task.error == {"code": -32603, "message": message}
    assert world.states.executions[ARN].status == "ABORTED"
    assert not task.asks


def test_what_it_did_is_undone(world: World) -> None:
    world.to_be_undone()
    assert remove(world) == {"ended": 1}
    assert world.states.executions[UNDO_ARN].status == "RUNNING"
    assert world.row.undo
    # The list lags behind: it names the first execution once more.
    assert remove(world, ID, UNDO) == {"ended": 1, "undoing": 1}
    assert world.states.executions[UNDO_ARN].status == "RUNNING"


def test_an_undo_that_takes_too_long_is_stopped_and_its_task_says_so(world: World) -> None:
    world.to_be_undone()
    remove(world)
    assert remove(world, UNDO, undo=False) == {"ended": 1}
    assert world.states.executions[UNDO_ARN].status == "ABORTED"
    assert (world.row.undo, world.row.status_message) == (False, NOT_UNDONE + "some steps")


def test_a_task_that_is_ended_too_late_says_that_nothing_was_undone(world: World) -> None:
    world.to_be_undone()
    assert remove(world, undo=False) == {"ended": 1}
    assert list(world.states.executions) == [ARN]
    assert (world.row.undo, world.row.status_message) == (False, NOT_UNDONE + "all steps")


def test_nothing_is_undone_by_a_state_machine_that_is_being_deleted(world: World) -> None:
    world.to_be_undone()
    world.states.deleting.add(MACHINE)
    assert remove(world) == {"ended": 1}
    assert (world.row.undo, world.row.status_message) == (False, NOT_UNDONE + "all steps")


def test_nothing_is_undone_of_a_tool_that_is_gone(world: World) -> None:
    """Its worker is gone as well, although the state machine still waits for its executions."""
    world.to_be_undone(tool="gone")
    assert remove(world) == {"ended": 1}
    assert (world.row.undo, world.row.status_message) == (False, NOT_UNDONE + "all steps")


def test_an_end_that_came_first_stands(world: World) -> None:
    world.started()
    world.rows.cancel(ID, NOW, "alice")
    assert remove(world) == {"ended": 1}
    assert world.row.status is Status.CANCELLED
    assert world.states.executions[ARN].status == "ABORTED"


def test_an_execution_without_a_row_is_stopped(world: World) -> None:
    """Its row has expired and was removed; or somebody started it by hand."""
    world.states.run(MACHINE, ID)
    assert remove(world) == {"ended": 1}
    assert world.states.executions[ARN].status == "ABORTED"


def test_a_row_of_another_state_machine_is_left_alone(world: World) -> None:
    world.started(state_machine_arn=f"{MACHINE}-of-another-tool")
    world.states.run(MACHINE, ID)
    assert remove(world) == {"ended": 1}
    assert world.row.status is Status.WORKING
    assert world.states.executions[ARN].status == "ABORTED"


def test_one_that_cannot_be_ended_does_not_keep_the_others(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.started()

    def busy(self: removal.Removal, name: str, now: int) -> removal.Removed:
        if name != ID:
            raise Busy("the task has more subtasks than could be ended in time")
        return original(self, name, now)

    original = removal.Removal.end
    monkeypatch.setattr(removal.Removal, "end", busy)
    with caplog.at_level(logging.ERROR):
        assert remove(world, "c1-other", ID) == {"ended": 1, "left": 1}
    assert world.row.status is Status.FAILED


def test_a_stop_that_was_throttled_is_named_again(world: World) -> None:
    world.started()
    world.calls.instead["stop_execution"] = refusing("stepfunctions", "ThrottlingException")
    assert remove(world) == {"left": 1}
    assert world.row.status is Status.FAILED
    world.states.serve(world.calls)
    assert remove(world) == {"ended": 1}
    assert world.states.executions[ARN].status == "ABORTED"


def test_what_there_was_no_time_for_is_left(world: World) -> None:
    world.started()
    assert remove(world, seconds=0) == {"left": 1}
    assert world.row.status is Status.WORKING


def test_an_execution_that_its_state_machine_s_deletion_ended_says_so() -> None:
    """AWS re:Post, "My Step Functions state machine is stuck in the DELETING status"."""
    cause = "State machine mcp-tasks-count has been deleted."
    end = ExecutionEnd("FAILED", error="States.Runtime", cause=cause)
    assert outcome(end, dict) == Failed(TOOL_REMOVED)
    assert outcome(ExecutionEnd("FAILED", error="States.Runtime", cause="no"), dict) != Failed(
        TOOL_REMOVED
    )
