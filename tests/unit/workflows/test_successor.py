"""A task goes on in another execution before the history of the first one is full."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.errors import Conflict
from mcp_tasks.tasks.state import Status
from mcp_tasks.workflows.execution_names import execution_name
from mcp_tasks.workflows.executions import MAX_START_AGE_MS, execution_arn
from mcp_tasks.workflows.finish import finish
from mcp_tasks.workflows.reconcile import Reconciled
from tests.unit.support.example_task import ID, NOW, a_task
from tests.unit.support.reconciling import ARN, MACHINE, World

GIVEN: Final = {"arguments": {"upto": 3}, "answers": {}}
ANSWERS: Final = {"answers": {"a": {"action": "accept"}}, "earlier_answers": {}}
SECOND: Final = execution_arn(MACHINE, f"{ID}-2")


@pytest.fixture
def world(moto: None, catalogue: Catalogue) -> World:
    """A task of a function tool, whose execution has ended with a long history."""
    world = World(catalogue)
    world.rows.create(a_task(input=json.dumps(GIVEN)))
    world.states.run(MACHINE, ID, json.dumps(GIVEN))
    world.states.end(ARN, {"successor": ANSWERS})
    return world


def told(world: World, name: str = ID) -> Status | None:
    """EventBridge tells `finish` of an execution's end."""
    detail = {"name": name, "stateMachineArn": MACHINE, "status": "SUCCEEDED"}
    return finish(detail, world.ends, NOW + 1)


def test_the_successor_has_the_same_input_and_the_answers_since(world: World) -> None:
    assert told(world) is None
    assert json.loads(world.states.executions[SECOND].input) == {**GIVEN, **ANSWERS}
    assert (world.row.status, world.row.execution) == (Status.WORKING, 2)
    assert execution_name(world.row) == f"{ID}-2"


def test_an_end_that_is_told_twice_starts_one_successor(world: World) -> None:
    told(world)
    told(world)
    assert len(world.states.executions) == 2
    assert world.row.execution == 2


def test_two_functions_that_hear_of_one_end_count_one_successor(world: World) -> None:
    seen = world.row
    world.rows.start_successor(seen, NOW)
    with pytest.raises(Conflict):
        world.rows.start_successor(seen, NOW)
    again = replace(world.row)
    world.rows.start_successor(again, NOW)
    with pytest.raises(Conflict):
        world.rows.start_successor(again, NOW)
    assert world.row.execution == 3


def test_the_successors_end_ends_the_task(world: World) -> None:
    told(world)
    world.states.end(SECOND, {"content": []})
    assert told(world, f"{ID}-2") is Status.COMPLETED


def test_a_successor_that_was_not_started_is_started_by_the_sweeper(world: World) -> None:
    world.rows.start_successor(world.row, NOW)
    assert world.reconcile() is Reconciled.STARTED
    assert json.loads(world.states.executions[SECOND].input) == {**GIVEN, **ANSWERS}
    assert world.reconcile() is Reconciled.RUNNING


def test_a_successor_of_an_old_task_is_started(moto: None, catalogue: Catalogue) -> None:
    """An execution of its name cannot have been forgotten: the one before it ended earlier."""
    world = World(catalogue)
    world.rows.create(a_task(input=json.dumps(GIVEN), ttl_ms=2 * MAX_START_AGE_MS))
    world.states.run(MACHINE, ID, json.dumps(GIVEN))
    world.states.end(ARN, {"successor": ANSWERS})
    world.rows.start_successor(world.row, NOW)
    assert world.reconcile(NOW + MAX_START_AGE_MS + 1) is Reconciled.STARTED
    assert SECOND in world.states.executions


def test_an_end_that_nobody_was_told_of_is_found(world: World) -> None:
    assert world.reconcile() is Reconciled.STARTED
    assert SECOND in world.states.executions


def test_a_third_execution_follows(world: World) -> None:
    told(world)
    world.states.end(SECOND, {"successor": ANSWERS})
    told(world, f"{ID}-2")
    assert execution_arn(MACHINE, f"{ID}-3") in world.states.executions


def test_the_execution_that_runs_is_stopped(world: World) -> None:
    told(world)
    world.rows.cancel(ID, NOW, world.row.principal)
    assert world.reconcile() is Reconciled.STOPPED
    assert world.states.executions[SECOND].status == "ABORTED"


def test_a_workflows_output_is_no_successor(world: World) -> None:
    """Whatever its members are called."""
    changes: dict[str, Any] = {"tool": "review", "task_id": ID.replace("c1", "c2")}
    world.rows.create(a_task(**changes))
    arn = world.states.run(MACHINE, changes["task_id"])
    world.states.end(arn, {"successor": ANSWERS})
    assert told(world, changes["task_id"]) is Status.FAILED


def test_a_task_whose_cancel_is_requested_gets_no_successor(world: World) -> None:
    seen = world.row
    world.rows.request_cancel(ID, NOW, seen.principal)
    with pytest.raises(Conflict):
        world.rows.start_successor(seen, NOW)
    assert world.row.execution == 1
