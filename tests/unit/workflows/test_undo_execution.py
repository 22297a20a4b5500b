"""What a cancelled or failed task did is undone in an execution of its own, whatever is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.errors import TaskEnded
from mcp_tasks.tasks.state import Status
from mcp_tasks.workflows.execution_names import task_of_execution, undo_name
from mcp_tasks.workflows.executions import execution_arn
from mcp_tasks.workflows.finish import finish
from mcp_tasks.workflows.reconcile import Reconciled
from tests.unit.support.example_task import ID, NOW, a_task
from tests.unit.support.reconciling import ARN, MACHINE, World

UNDO: Final = execution_arn(MACHINE, undo_name(ID))
GIVEN: Final = {"arguments": {"upto": 3}, "answers": {}}


@pytest.fixture
def world(moto: None, catalogue: Catalogue) -> World:
    """A task that runs, and has something to undo."""
    world = World(catalogue)
    world.rows.create(a_task(input=json.dumps(GIVEN)))
    world.states.run(MACHINE, ID, json.dumps(GIVEN))
    world.rows.set_undo(ID, True, NOW)
    return world


def told(world: World, name: str = ID) -> Status | None:
    """EventBridge tells `finish` of an execution's end."""
    return finish(
        {"name": name, "stateMachineArn": MACHINE, "status": "ABORTED"},
        world.ends,
        NOW + 1,
    )


def end_with_failure(world: World) -> None:
    world.states.end(ARN, status="FAILED")
    assert told(world) is Status.FAILED


def end_with_cancel(world: World) -> None:
    world.rows.cancel(ID, NOW, world.row.principal)
    world.states.end(ARN, status="ABORTED")
    assert told(world) is None


@pytest.mark.parametrize("end", [end_with_failure, end_with_cancel])
def test_it_is_undone_when_its_execution_has_ended(
    world: World, end: Callable[[World], None]
) -> None:
    end(world)
    assert json.loads(world.states.executions[UNDO].input) == {**GIVEN, "undo": True}
    world.states.end(UNDO, {"not_undone": []})
    assert told(world, undo_name(ID)) is None
    row = world.row
    assert (row.undo, row.reconcile_at) == (False, None)
    assert "Not undone" not in (row.status_message or "")


def test_the_status_message_names_what_is_not_undone(world: World) -> None:
    end_with_cancel(world)
    world.states.end(UNDO, {"not_undone": ["pay", "book"]})
    told(world, undo_name(ID))
    assert world.row.status_message == "Not undone: pay, book"
    assert world.row.status is Status.CANCELLED


def test_an_undoing_that_fails_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    end_with_cancel(world)
    world.states.end(UNDO, status="FAILED")
    told(world, undo_name(ID))
    assert world.row.status_message == "Not undone: some steps"
    assert '"NotUndone":[1.0]' in capsys.readouterr().out


def test_a_task_that_went_well_is_not_undone(world: World) -> None:
    world.states.end(ARN, {"content": []})
    assert told(world) is Status.COMPLETED
    assert UNDO not in world.states.executions
    assert world.row.reconcile_at is None


def test_nothing_is_undone_by_a_tool_that_takes_another_way(world: World) -> None:
    world.states.end(ARN, status="FAILED")
    failed = world.states.describe_execution

    def differs(executionArn: str) -> dict[str, Any]:
        return {**failed(executionArn), "error": "NonDeterminism", "cause": "It was step a"}

    world.calls.instead["describe_execution"] = differs
    assert told(world) is Status.FAILED
    assert world.row.error is not None
    assert world.row.error["message"] == "NonDeterminism: It was step a"
    assert UNDO not in world.states.executions
    assert world.row.undo


def test_a_lost_event_is_made_up_for(world: World) -> None:
    world.rows.cancel(ID, NOW, world.row.principal)
    assert world.reconcile() is Reconciled.UNDO_STARTED
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.reconcile() is Reconciled.RUNNING
    world.states.end(UNDO, {"not_undone": ["pay"]})
    assert world.reconcile() is Reconciled.UNDONE
    assert (world.row.undo, world.row.reconcile_at) == (False, None)
    assert world.row.status_message == "Not undone: pay"


def test_an_expired_task_is_undone(world: World) -> None:
    expired = world.row.expires_at + 200_000
    assert world.reconcile(expired) is Reconciled.EXPIRED
    assert world.reconcile(expired + 400_000) is Reconciled.UNDO_STARTED
    world.states.end(UNDO, {"not_undone": []})
    told(world, undo_name(ID))
    assert not world.row.undo


def test_a_task_that_expires_after_its_execution_is_undone_at_once(world: World) -> None:
    """The worker found the task's time over and ended the execution, whose event led to nothing."""
    expired = world.row.expires_at + 200_000
    world.states.end(ARN, status="FAILED")
    assert world.reconcile(expired) is Reconciled.EXPIRED
    assert json.loads(world.states.executions[UNDO].input) == {**GIVEN, "undo": True}
    assert world.reconcile(expired + 400_000) is Reconciled.RUNNING
    world.states.end(UNDO, {"not_undone": []})
    told(world, undo_name(ID))
    assert not world.row.undo


def test_a_failure_that_finish_does_not_live_to_undo_stays_in_the_schedule(world: World) -> None:
    world.states.end(ARN, status="FAILED")
    world.calls.instead["start_execution"] = lambda **_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        told(world)
    del world.calls.instead["start_execution"]
    world.states.serve(world.calls)
    assert world.row.status is Status.FAILED
    assert world.reconcile() is Reconciled.UNDO_STARTED


def test_a_step_that_begins_while_the_task_fails_is_undone(world: World) -> None:
    """The row was read before the step noted that there is something to undo."""
    world.rows.set_undo(ID, False, NOW)
    read = world.states.describe_execution

    def meanwhile(executionArn: str) -> dict[str, Any]:
        del world.calls.instead["describe_execution"]
        world.states.serve(world.calls)
        world.rows.set_undo(ID, True, NOW)
        return read(executionArn)

    world.states.end(ARN, status="FAILED")
    world.calls.instead["describe_execution"] = meanwhile
    assert told(world) is Status.FAILED
    assert UNDO in world.states.executions
    assert world.row.reconcile_at is not None


def test_a_step_of_a_cancelled_task_does_not_begin(world: World) -> None:
    world.rows.cancel(ID, NOW, world.row.principal)
    with pytest.raises(TaskEnded):
        world.rows.set_undo(ID, True, NOW)


def test_an_undoing_is_noted_once(world: World) -> None:
    end_with_cancel(world)
    assert world.rows.undone(world.row, "Not undone: pay", NOW)
    assert not world.rows.undone(world.row, None, NOW)
    assert world.row.status_message == "Not undone: pay"


def test_only_an_ended_task_is_undone(world: World) -> None:
    assert not world.rows.undone(world.row, None, NOW)
    assert world.row.undo


def test_what_step_functions_has_forgotten_cannot_be_undone(world: World) -> None:
    world.rows.cancel(ID, NOW, world.row.principal)
    del world.states.executions[ARN]
    world.reconcile()
    assert world.row.status_message == "Not undone: all steps"
    assert not world.row.undo


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (ID, (ID, "")),
        (f"{ID}-undo", (ID, "undo")),
        (f"{ID}-12", (ID, "12")),
        ("nightly", ("nightly", "")),
    ],
)
def test_the_name_of_an_execution_names_its_task(name: str, parts: tuple[str, str]) -> None:
    assert task_of_execution(name) == parts
