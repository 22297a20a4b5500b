"""Functions whose clocks differ: what becomes of a task is the same.

Amazon Time Sync keeps the clocks of Lambda within milliseconds of each other; five minutes are what
AWS itself still takes from a caller (IAM user guide, "Signing AWS API requests").
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_schedule import EXPIRED_MS, STOP_AGAIN_MS
from mcp_tasks.tasks.state import Status
from mcp_tasks.workflows.finish import finish
from mcp_tasks.workflows.reconcile import Reconciled
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.reconciling import ARN, MACHINE, YES, World

MINUTE: Final = 60_000
SKEW: Final = 5 * MINUTE
RESULT: Final[dict[str, Any]] = {"content": []}
ASK: Final = open_ask("token", {"sure": FormQuestion("Sure?", {})})
CLOCKS: Final = ("create", "report", "ask", "answer", "end", "sweep")

each_way = pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["ahead", "behind"])


@pytest.fixture
def world(moto: None, no_account: None, catalogue: Catalogue) -> World:
    return World(catalogue)


def live(world: World, skews: Mapping[str, int], *, heard: bool) -> None:
    """Some minutes of a task that reports, asks, is answered and ends.

    Unless all of it is `heard`, its start, its answer and its end get lost, and the sweeper, which
    runs every minute, has to find them.
    """

    def clock(function: str, minute: int) -> int:
        return NOW + minute * MINUTE + skews.get(function, 0)

    rows = []
    for minute in range(26):
        match minute:
            case 0:
                created = clock("create", minute)
                new = {"created_at": created, "last_updated_at": created, "ttl_ms": 24 * HOUR}
                world.rows.create(a_task(**new))
                if heard:
                    world.states.run(MACHINE, ID)
            case 7:
                world.rows.report(ID, "half-way", clock("report", minute))
            case 8:
                world.states.wait("token")
                world.rows.ask(ID, ASK, clock("ask", minute))
            case 10:
                seen = world.row
                answers = {ASK.id: dict.fromkeys(ASK.questions, YES)}
                world.rows.answer(seen, answers, clock("answer", minute))
                if heard:
                    world.executions.resume("token", {"sure": YES})
                    world.rows.mark_delivered(ID, ASK.id, clock("answer", minute))
            case 18:
                world.states.end(ARN, RESULT)
                if heard:
                    detail = {"name": ID, "stateMachineArn": MACHINE}
                    now = clock("end", minute)
                    finish(detail, world.ends, now)
        rows.append(row := world.row)
        world.reconciler.reconcile(row, clock("sweep", minute))
    for earlier, later in pairwise(rows):
        assert earlier.revision <= later.revision
        assert earlier.last_updated_at <= later.last_updated_at, "times do not go back"


@each_way
@pytest.mark.parametrize("heard", [True, False], ids=["heard", "lost"])
@pytest.mark.parametrize("function", CLOCKS)
def test_a_task_ends_as_it_would_have_whoever_has_the_wrong_time(
    world: World, function: str, skew: int, heard: bool
) -> None:
    """One execution, one delivery, one end."""
    live(world, {function: skew}, heard=heard)
    assert (world.row.status, world.row.result) == (Status.COMPLETED, RESULT)
    assert world.states.executions.keys() == {ARN}
    assert world.states.received == [("token", {"sure": YES})]
    assert world.row.reconcile_at is None


def test_all_clocks_may_be_wrong(world: World) -> None:
    skews = {name: SKEW if n % 2 else -SKEW for n, name in enumerate(CLOCKS)}
    live(world, skews, heard=False)
    assert (world.row.status, world.row.result) == (Status.COMPLETED, RESULT)
    assert world.states.received == [("token", {"sure": YES})]


@each_way
def test_a_cancel_stands_whoever_has_the_wrong_time(world: World, skew: int) -> None:
    """And the execution is stopped, also one that was being started at that moment."""
    world.written()
    world.rows.cancel(ID, NOW + skew, "alice")
    for minute in range(2):
        world.reconcile(NOW + minute * MINUTE)
    world.states.run(MACHINE, ID)  # by a function that has not heard of the cancel
    for minute in range(2, 20):
        world.reconcile(NOW + minute * MINUTE)
    assert world.row.status is Status.CANCELLED
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.row.reconcile_at is None


@each_way
def test_a_task_that_was_ended_is_stopped_again_after_all_that_was_in_flight(
    world: World, skew: int
) -> None:
    """Counted from the row's own times: a clock that is behind does not make it due at once."""
    world.written()
    world.rows.report(ID, "half-way", NOW)
    task = world.rows.cancel(ID, NOW + skew, "alice")
    assert task.reconcile_at == task.last_updated_at + STOP_AGAIN_MS >= NOW + STOP_AGAIN_MS


def test_an_answer_by_a_clock_that_is_behind_is_not_looked_at_before_it_is_sent(
    world: World,
) -> None:
    world.started()
    world.rows.ask(ID, ASK, NOW)
    answers: dict[str, Any] = {ASK.id: dict.fromkeys(ASK.questions, YES)}
    task = world.rows.answer(world.row, answers, NOW - SKEW)
    assert task.reconcile_at is not None
    assert not task.needs_reconciling(NOW)


# the time to live


@pytest.mark.parametrize("ahead", [1, EXPIRED_MS])
def test_a_sweeper_whose_clock_is_ahead_ends_no_task_that_is_there_for_others(
    world: World, ahead: int
) -> None:
    """In its last moment, by the right clock."""
    world.started()
    last = NOW + HOUR - 1
    assert world.reconcile(last + ahead) is Reconciled.RUNNING
    world.states.end(ARN, RESULT)
    assert world.rows.complete(ID, RESULT, last).status is Status.COMPLETED


@each_way
def test_a_task_that_expired_for_one_clock_ends_for_all(world: World, skew: int) -> None:
    """Sooner or later: it is the same end."""
    world.started()
    for minute in range(60, 90):
        world.reconcile(NOW + minute * MINUTE + skew)
    assert world.row.status is Status.FAILED
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.row.reconcile_at is None


def test_an_end_that_comes_with_an_early_clock_is_not_lost(world: World) -> None:
    """The event came to a function for which the task has expired already."""
    world.ended(RESULT)
    detail = {"name": ID, "stateMachineArn": MACHINE}
    now, late = NOW + HOUR - 3 * MINUTE, NOW + HOUR + 2 * MINUTE
    assert finish(detail, world.ends, late) is None
    assert world.reconcile(now) is Reconciled.ENDED
    assert world.row.status is Status.COMPLETED
