"""One look at a task that is due: whatever was lost is done, once, wherever a function dies."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.errors import UnknownTask
from mcp_tasks.tasks.reconcile_schedule import (
    EXPIRED_MS,
    FIRST_RECONCILE_MS,
    STOP_AGAIN_MS,
    shard_of,
)
from mcp_tasks.tasks.state import Status
from mcp_tasks.workflows import reconcile
from mcp_tasks.workflows.end_task import MAX_ROW_RESULT_BYTES, UNKNOWN_TOOL_MS
from mcp_tasks.workflows.execution_outcome import NOT_STARTED, NOT_UNDONE, TOOL_REMOVED
from mcp_tasks.workflows.executions import MAX_START_AGE_MS, execution_arn
from mcp_tasks.workflows.reconcile import Reconciled
from mcp_tasks.workflows.sweep import sweep
from tests.unit.support import rows_of_version_3 as before
from tests.unit.support.aws import TABLE, Died, raw_rows, real, refusing
from tests.unit.support.example_task import HOUR, ID, NOW
from tests.unit.support.reconciling import ARN, MACHINE, YES, World

DAY: Final = 24 * HOUR
DUE: Final = NOW + FIRST_RECONCILE_MS
MINUTE: Final = 60_000
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}
ENDED: Final = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]


@pytest.fixture
def world(moto: None, no_account: None, catalogue: Catalogue) -> World:
    return World(catalogue)


# started, or not


def test_a_task_that_was_never_started_is_started(world: World) -> None:
    world.written(input='{"upto":5}')
    assert world.reconcile() is Reconciled.STARTED
    assert world.states.executions[ARN].input == '{"upto":5}'
    assert world.row.status is Status.WORKING


@pytest.mark.parametrize("row", [{}, {"schemaVersion": {"N": "4"}, "tool": {"S": "count"}}])
def test_a_row_that_is_no_task_starts_nothing(world: World, row: dict[str, Any]) -> None:
    """As a worker could write it whose role has lost its conditions."""
    scheduled = {"reconcileShard": {"S": shard_of(ID)}, "reconcileAt": {"N": str(NOW)}}
    real("dynamodb").put_item(
        TableName=TABLE, Item={"taskId": {"S": ID}, "input": {"S": "{}"}, **scheduled, **row}
    )
    swept = sweep(world.rows, world.reconciler, lambda: DUE, 5)
    assert swept.counts == {"error": 1}
    assert world.states.executions == {}


def test_the_state_machine_that_is_started_is_the_deployments(world: World) -> None:
    """Not one that the row names, whoever wrote the row."""
    world.written(state_machine_arn=f"{MACHINE}-of-another-tool")
    assert world.reconcile() is Reconciled.FAILED
    assert world.states.executions == {}
    assert world.row.status is Status.FAILED


@pytest.mark.parametrize("status", ["RUNNING", *ENDED])
def test_a_task_whose_execution_cannot_be_seen_yet_is_not_started_again(
    world: World, status: str
) -> None:
    """API reference, "DescribeExecution": eventually consistent."""
    world.started()
    if status in ENDED:
        world.states.end(ARN, RESULT, status)
    world.states.late[ARN] = None
    before = world.states.executions[ARN].status
    assert world.reconcile() is Reconciled.STARTED
    assert list(world.states.executions) == [ARN]
    assert world.states.executions[ARN].status == before


@pytest.mark.parametrize("status", ["RUNNING", *ENDED])
def test_an_execution_of_an_earlier_task_with_the_same_id_gives_no_result(
    world: World, status: str
) -> None:
    """The client has chosen the id again after the row was deleted, and before Step Functions
    forgot the execution; and the function that wrote the row died before it could tell."""
    world.started()
    world.states.end(ARN, RESULT, status)
    world.states.executions[ARN].started_at = datetime.fromtimestamp((NOW - DAY) / 1000, UTC)
    assert world.reconcile() is Reconciled.FAILED
    task = world.row
    assert (task.status, task.status_message) == (Status.FAILED, reconcile.ID_USED_BEFORE)


@pytest.mark.parametrize("code", ["ThrottlingException", "ExecutionLimitExceeded"])
def test_a_task_that_step_functions_throttles_is_started_later(world: World, code: str) -> None:
    world.written()
    start = world.calls.instead["start_execution"]
    world.calls.instead["start_execution"] = refusing("stepfunctions", code)
    assert world.reconcile() is Reconciled.NOT_STARTED
    assert world.row.status is Status.WORKING
    world.calls.instead["start_execution"] = start
    assert world.reconcile() is Reconciled.STARTED


def test_a_task_that_cannot_be_started_fails(world: World) -> None:
    """Its tool was removed while there was no room for it."""
    world.written()
    world.calls.instead["start_execution"] = refusing("stepfunctions", "StateMachineDoesNotExist")
    assert world.reconcile() is Reconciled.FAILED
    task = world.row
    assert (task.status, task.error) == (
        Status.FAILED,
        {"code": -32603, "message": NOT_STARTED},
    )


def test_what_was_started_before_a_start_was_refused_is_stopped(world: World) -> None:
    """What another attempt has just started is not found at once (DescribeExecution)."""
    world.written()
    world.calls.instead["start_execution"] = refusing("stepfunctions", "AccessDeniedException")
    assert world.reconcile() is Reconciled.FAILED
    assert world.row.reconcile_at == DUE + STOP_AGAIN_MS
    assert world.reconcile(DUE + STOP_AGAIN_MS) is Reconciled.STOPPED
    assert "stop_execution" in world.calls.operations
    assert world.row.reconcile_at is None


def test_a_task_that_was_cancelled_before_its_start_was_refused_stays_cancelled(
    world: World,
) -> None:
    world.written()

    def refuse(**arguments: Any) -> Any:
        world.rows.cancel(ID, DUE, "alice")
        return refusing("stepfunctions", "AccessDeniedException")()

    world.calls.instead["start_execution"] = refuse
    assert world.reconcile() is Reconciled.FAILED
    assert world.row.status is Status.CANCELLED


@pytest.mark.parametrize(("age", "found"), [(0, Reconciled.STARTED), (1, Reconciled.FAILED)])
def test_a_task_that_step_functions_may_have_forgotten_is_not_started(
    world: World, age: int, found: Reconciled
) -> None:
    """API reference, "StartExecution": a name may be used again 90 days after its execution
    ended. It may have run, and started a second time it would do everything twice."""
    world.written(ttl_ms=400 * DAY)
    assert world.reconcile(NOW + MAX_START_AGE_MS + age) is found
    assert (ARN in world.states.executions) is (found is Reconciled.STARTED)
    assert MAX_START_AGE_MS < 90 * DAY
    if found is Reconciled.FAILED:
        assert world.row.status_message == reconcile.EXECUTION_NOT_FOUND


def test_a_task_that_runs_for_longer_than_that_is_not_given_up(world: World) -> None:
    world.started(ttl_ms=400 * DAY)
    assert world.reconcile(NOW + 300 * DAY) is Reconciled.RUNNING
    world.states.end(ARN, RESULT)
    assert world.reconcile() is Reconciled.ENDED


# ended


@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        ("SUCCEEDED", Status.COMPLETED),
        ("FAILED", Status.FAILED),
        ("TIMED_OUT", Status.FAILED),
        ("ABORTED", Status.FAILED),
    ],
)
def test_an_end_whose_event_was_lost_is_written(world: World, status: str, becomes: Status) -> None:
    world.ended(RESULT, status)
    assert world.reconcile() is Reconciled.ENDED
    task = world.row
    assert (task.status, task.reconcile_at) == (becomes, None)
    assert task.result == (RESULT if becomes is Status.COMPLETED else None)


def test_a_large_result_whose_event_was_lost_is_stored(world: World) -> None:
    result = {"content": [{"type": "text", "text": "x" * MAX_ROW_RESULT_BYTES}]}
    world.ended(result)
    assert world.reconcile() is Reconciled.ENDED
    stored = world.row.result_payload
    assert stored is not None
    assert json.loads(world.payloads.get(stored)) == result


def test_an_end_that_cannot_be_seen_yet_is_written_by_the_next_reconciling(world: World) -> None:
    world.ended(RESULT)
    world.states.late[ARN] = "RUNNING"
    assert world.reconcile() is Reconciled.RUNNING
    assert world.row.status is Status.WORKING
    world.states.late.clear()
    assert world.reconcile() is Reconciled.ENDED


def test_an_execution_that_is_to_be_redriven_has_not_ended(world: World) -> None:
    world.ended(status="FAILED")
    world.states.late[ARN] = "PENDING_REDRIVE"
    assert world.reconcile() is Reconciled.RUNNING


def test_a_cancel_between_describe_and_write_stands(world: World) -> None:
    world.ended(RESULT)
    describe = world.calls.instead["describe_execution"]

    def cancel_then_describe(**arguments: Any) -> Any:
        world.rows.cancel(ID, DUE, "alice")
        return describe(**arguments)

    world.calls.instead["describe_execution"] = cancel_then_describe
    assert world.reconcile() is Reconciled.ENDED
    assert (world.row.status, world.row.result) == (Status.CANCELLED, None)


def test_an_execution_that_runs_is_left_alone(world: World) -> None:
    world.started()
    task = world.row
    world.calls.forget()
    assert world.reconciler.reconcile(task, DUE) is Reconciled.RUNNING
    assert world.calls.operations == ["update_item", "describe_execution"]


# whose execution it is


def test_the_execution_is_that_of_the_state_machine_that_the_row_names(world: World) -> None:
    """Of a state machine that somebody else has made, or that the tool had when it was called;
    not one of the same name of another state machine."""
    machine = "arn:aws:states:eu-west-1:999999999999:stateMachine:theirs"
    world.started(tool="orders", state_machine_arn=machine, input='{"item":"tea"}')
    theirs = execution_arn(machine, ID)
    other = world.states.run(MACHINE, ID)
    world.states.end(other, {"content": []})
    assert world.reconcile() is Reconciled.RUNNING
    world.states.end(theirs, {"order": 7})
    assert world.reconcile() is Reconciled.ENDED
    assert world.row.result is not None
    assert world.row.result["structuredContent"] == {"order": 7}


def test_a_removed_tools_execution_is_finished_too(world: World) -> None:
    world.ended(RESULT, tool="gone")
    assert world.reconcile() is Reconciled.ENDED
    assert world.row.result == RESULT


def in_an_hour(world: World, **changes: Any) -> int:
    """When a task of the tool `gone` is looked at, of which only the row knows."""
    world.started(tool="gone", ttl_ms=DAY, **changes)
    return NOW + UNKNOWN_TOOL_MS


def test_a_removed_tools_task_fails_and_says_so(world: World) -> None:
    """Nothing of it can go on: its worker was removed with it."""
    assert world.reconcile(in_an_hour(world)) is Reconciled.FAILED
    assert (world.row.status, world.row.status_message) == (Status.FAILED, TOOL_REMOVED)
    assert world.row.error == {"code": -32603, "message": TOOL_REMOVED}
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.reconcile() is Reconciled.STOPPED
    assert world.row.reconcile_at is None


def test_a_tool_that_is_not_known_yet_was_not_removed(world: World) -> None:
    """A deployment brings it; the function that creates its tasks may be the first to be new."""
    in_an_hour(world)
    assert world.reconcile(NOW + UNKNOWN_TOOL_MS - 1) is Reconciled.RUNNING
    assert world.row.status is Status.WORKING
    assert world.states.executions[ARN].status == "RUNNING"


def test_a_tool_whose_state_machine_is_being_deleted_was_removed(world: World) -> None:
    """The stack waits for its last executions: nobody waits an hour to see."""
    in_an_hour(world)
    world.states.deleting.add(MACHINE)
    assert world.reconcile() is Reconciled.FAILED
    assert (world.row.status, world.row.status_message) == (Status.FAILED, TOOL_REMOVED)
    assert world.states.executions[ARN].status == "ABORTED"


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_a_state_machine_that_may_not_be_read_does_not_say_so(world: World, code: str) -> None:
    in_an_hour(world)
    world.calls.instead["describe_state_machine"] = refusing("stepfunctions", code)
    if code == "ThrottlingException":
        with pytest.raises(ClientError, match=code):
            world.reconcile()
    else:
        assert world.reconcile() is Reconciled.RUNNING
    assert world.row.status is Status.WORKING


def test_what_a_removed_tools_task_did_stays_and_its_row_says_so(world: World) -> None:
    """Its state machine starts no execution that could undo it, and `finish` begins none."""
    world.to_be_undone(tool="gone", ttl_ms=DAY)
    now = NOW + UNKNOWN_TOOL_MS
    world.states.deleting.add(MACHINE)
    assert world.reconcile(now) is Reconciled.FAILED
    assert (world.row.undo, world.row.status_message) == (False, NOT_UNDONE + "all steps")
    assert list(world.states.executions) == [ARN]
    world.ends.follow_up(world.row, now)
    assert list(world.states.executions) == [ARN]


def test_a_cancelled_task_of_a_removed_tool_says_that_nothing_was_undone(world: World) -> None:
    world.to_be_undone(tool="gone", ttl_ms=DAY)
    now = NOW + UNKNOWN_TOOL_MS
    world.rows.cancel(ID, NOW, "alice")
    assert world.reconcile() is Reconciled.RUNNING, "the tool may be deployed yet"
    world.ends.follow_up(world.row, now - 1)
    assert world.row.undo, "left to the sweeper"
    assert world.reconcile(now) is Reconciled.NOT_UNDONE
    assert (world.row.undo, world.row.status_message) == (False, NOT_UNDONE + "all steps")
    assert world.row.reconcile_at is None
    assert list(world.states.executions) == [ARN]


def test_a_removed_tools_task_is_not_started(world: World) -> None:
    world.written(tool="gone", ttl_ms=DAY)
    assert world.reconcile() is Reconciled.RUNNING
    assert world.reconcile(NOW + UNKNOWN_TOOL_MS) is Reconciled.FAILED
    assert world.states.executions == {}


def test_an_execution_without_permissions_any_more_is_left_alone(world: World) -> None:
    """The removed tool's state machine was somebody else's."""
    now = in_an_hour(world)
    for call in ("describe_execution", "stop_execution"):
        world.calls.instead[call] = refusing("stepfunctions", "AccessDeniedException")
    assert world.reconcile(now) is Reconciled.FAILED
    assert world.row.status_message == TOOL_REMOVED
    assert world.reconcile() is Reconciled.STOPPED
    assert world.row.reconcile_at is None


@pytest.mark.parametrize(
    ("tool", "code"),
    [("gone", "ThrottlingException"), ("count", "ThrottlingException"), ("count", "AccessDenied")],
)
def test_a_transient_error_does_not_end_a_task(world: World, tool: str, code: str) -> None:
    world.started(tool=tool, ttl_ms=DAY)
    world.calls.instead["describe_execution"] = refusing("stepfunctions", code)
    with pytest.raises(ClientError, match=code):
        world.reconcile(NOW + UNKNOWN_TOOL_MS)
    assert world.row.status is Status.WORKING


@pytest.mark.parametrize(
    ("tool", "code"),
    [("gone", "ThrottlingException"), ("count", "ThrottlingException"), ("count", "AccessDenied")],
)
def test_a_stop_that_met_a_transient_error_is_repeated(world: World, tool: str, code: str) -> None:
    world.started(tool=tool)
    world.rows.cancel(ID, NOW, "alice")
    world.calls.instead["stop_execution"] = refusing("stepfunctions", code)
    with pytest.raises(ClientError, match=code):
        world.reconcile()
    del world.calls.instead["stop_execution"]
    world.states.serve(world.calls)
    assert world.reconcile() is Reconciled.STOPPED
    assert world.states.executions[ARN].status == "ABORTED"


# answers


def test_an_answer_that_was_stored_and_not_sent_is_sent(world: World) -> None:
    world.started()
    (ask,) = world.asked("token")
    world.answered(ask)
    assert world.reconcile() is Reconciled.DELIVERED
    assert world.states.received == [("token", {"sure": YES})]
    assert world.row.asks == {}


@pytest.mark.parametrize("state", ["used", "gone"])
def test_an_answer_whose_token_is_used_up_is_sent_to_nobody(world: World, state: str) -> None:
    """It was sent before, by a function that died then; or its state ran over its time."""
    world.started()
    (ask,) = world.asked("token")
    world.answered(ask)
    world.states.tokens["token"] = state
    assert world.reconcile() is Reconciled.DELIVERED
    assert world.states.received == []
    assert world.row.asks == {}, "and it is not tried again"
    assert world.reconcile() is Reconciled.RUNNING


def test_an_answer_that_could_not_be_sent_is_sent_by_the_next_reconciling(world: World) -> None:
    world.started()
    (ask,) = world.asked("token")
    world.answered(ask)
    send = world.calls.instead["send_task_success"]
    world.calls.instead["send_task_success"] = refusing("stepfunctions", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        world.reconcile()
    assert [found.token for found in world.row.undelivered] == ["token"]
    world.calls.instead["send_task_success"] = send
    assert world.reconcile() is Reconciled.DELIVERED


# questions


def test_a_question_that_a_state_waits_for_stays_open(world: World) -> None:
    world.started()
    (ask,) = world.asked("token")
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.RUNNING
    assert world.row.asks == {ask.id: ask}
    assert world.states.tokens == {"token": "waits"}, "and the probe has not used the token"


@pytest.mark.parametrize("state", ["used", "gone", None])
def test_a_question_that_nothing_waits_for_is_closed(world: World, state: str | None) -> None:
    """The state ran over its time, and the workflow went on."""
    world.started()
    world.asked("token")
    if state is None:
        del world.states.tokens["token"]
    else:
        world.states.tokens["token"] = state
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.ASK_CLOSED
    assert (world.row.status, world.row.asks) == (Status.WORKING, {})


def test_one_of_two_questions_is_closed(world: World) -> None:
    world.started()
    _, second = world.asked("token 1", "token 2")
    world.states.tokens["token 1"] = "gone"
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.ASK_CLOSED
    assert (world.row.status, world.row.asks) == (Status.INPUT_REQUIRED, {second.id: second})


def test_several_questions_are_closed_at_once(world: World) -> None:
    world.started()
    world.asked("token 1", "token 2", "token 3")
    world.states.tokens |= {"token 1": "gone", "token 3": "gone"}
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.ASK_CLOSED
    assert [ask.token for ask in world.row.asks.values()] == ["token 2"]
    assert world.row.status is Status.INPUT_REQUIRED


def test_an_answer_is_sent_and_a_question_closed_in_one_reconciling(world: World) -> None:
    world.started()
    first, _ = world.asked("token 1", "token 2")
    world.answered(first)
    world.states.tokens["token 2"] = "gone"
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.ASK_CLOSED
    assert world.states.received == [("token 1", {"sure": YES})]
    assert (world.row.status, world.row.asks) == (Status.WORKING, {})


def test_an_answer_that_comes_during_the_reconciling_is_not_thrown_away(world: World) -> None:
    """It was stored and sent between the look's read and its probe, which finds the token used."""
    world.started()
    (ask,) = world.asked("token")
    heartbeat = world.calls.instead["send_task_heartbeat"]

    def answer_first(**arguments: Any) -> Any:
        world.answered(ask)
        world.states.send_task_success("token", "{}")
        return heartbeat(**arguments)

    world.calls.instead["send_task_heartbeat"] = answer_first
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.RUNNING
    assert [found.answers for found in world.row.undelivered] == [dict.fromkeys(ask.questions, YES)]


def test_a_probe_that_fails_closes_nothing(world: World) -> None:
    world.started()
    (ask,) = world.asked("token")
    refuse = refusing("stepfunctions", "ThrottlingException")
    world.calls.instead["send_task_heartbeat"] = refuse
    with pytest.raises(ClientError, match="Throttling"):
        world.reconcile(NOW + HOUR // 2)
    assert world.row.asks == {ask.id: ask}


# over


def test_a_task_that_was_cancelled_is_stopped_once_more(world: World) -> None:
    """Whoever cancelled it died before it was; or a start was in flight at that moment."""
    world.started()
    world.rows.cancel(ID, NOW + 5, "alice")
    assert world.reconcile_at == NOW + 5 + STOP_AGAIN_MS
    assert world.reconcile() is Reconciled.STOPPED
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.row.reconcile_at is None


@pytest.mark.parametrize("status", [None, *ENDED])
def test_a_cancelled_task_whose_execution_has_ended_or_never_was_leaves_the_index(
    world: World, status: str | None
) -> None:
    if status is None:
        world.written()
    else:
        world.ended(status=status)
    world.rows.cancel(ID, NOW + 5, "alice")
    assert world.reconcile() is Reconciled.STOPPED
    assert world.row.reconcile_at is None
    assert {e.status for e in world.states.executions.values()} == ({status} - {None})


def test_a_task_whose_execution_could_not_be_stopped_is_reconciled_again(world: World) -> None:
    world.started()
    world.rows.cancel(ID, NOW + 5, "alice")
    stop = world.calls.instead["stop_execution"]
    world.calls.instead["stop_execution"] = refusing("stepfunctions", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        world.reconcile()
    world.calls.instead["stop_execution"] = stop
    assert world.reconcile() is Reconciled.STOPPED


# expired


def test_a_task_that_has_passed_its_time_to_live_fails_and_is_stopped(world: World) -> None:
    world.started()
    assert world.reconcile(NOW + HOUR + EXPIRED_MS) is Reconciled.EXPIRED
    task = world.row
    assert (task.status, task.status_message) == (Status.FAILED, reconcile.EXPIRED)
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.reconcile() is Reconciled.STOPPED
    assert world.row.reconcile_at is None


def test_a_task_that_has_passed_its_time_to_live_is_not_started_any_more(world: World) -> None:
    world.written()
    assert world.reconcile(NOW + HOUR + EXPIRED_MS) is Reconciled.EXPIRED
    assert world.states.executions == {}


@pytest.mark.parametrize("late", [0, EXPIRED_MS - 1])
def test_a_clock_that_is_ahead_ends_no_task(world: World, late: int) -> None:
    """Its last seconds are those of whoever has the right time."""
    world.started()
    assert world.reconcile(NOW + HOUR + late) is Reconciled.RUNNING
    assert world.row.status is Status.WORKING
    assert world.states.executions[ARN].status == "RUNNING"
    assert world.reconcile_at >= NOW + HOUR + EXPIRED_MS, "it is due when it is surely over"


def test_an_expired_task_whose_execution_cannot_be_stopped_is_reconciled_again(
    world: World,
) -> None:
    world.started()
    stop = world.calls.instead["stop_execution"]
    world.calls.instead["stop_execution"] = refusing("stepfunctions", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        world.reconcile(NOW + HOUR + EXPIRED_MS)
    world.calls.instead["stop_execution"] = stop
    assert world.reconcile() in (Reconciled.EXPIRED, Reconciled.STOPPED)
    assert world.states.executions[ARN].status == "ABORTED"
    assert world.row.status is Status.FAILED


def test_an_end_that_comes_as_the_task_expires_stands(world: World) -> None:
    """By a function whose clock is behind, between the claim and the write."""
    world.started()
    claims = iter([True])

    def complete_after_claim(**arguments: Any) -> Any:
        written = real("dynamodb").update_item(**arguments)
        if next(claims, False):
            world.rows.complete(ID, RESULT, NOW + HOUR - 1)
        return written

    world.calls.instead["update_item"] = complete_after_claim
    assert world.reconcile(NOW + HOUR + EXPIRED_MS) is Reconciled.EXPIRED
    assert (world.row.status, world.row.result) == (Status.COMPLETED, RESULT)


def test_an_expired_task_fails_though_its_execution_cannot_be_stopped(world: World) -> None:
    """Those who listen hear of its end; a state machine of others may not let itself be stopped."""
    world.started()
    world.calls.instead["stop_execution"] = refusing("stepfunctions", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDenied"):
        world.reconcile(NOW + HOUR + EXPIRED_MS)
    assert world.row.status is Status.FAILED
    assert world.row.reconcile_at is not None


# one look at a time


def test_a_task_whose_time_has_not_come_is_not_reconciled(world: World) -> None:
    """The index lags: it shows a task as due whose next look was just put off."""
    world.started()
    before = raw_rows()
    world.calls.forget()
    assert world.reconcile(DUE - 1) is None
    assert raw_rows() == before
    assert "update_item" not in world.calls.operations


def test_a_task_that_was_just_written_is_not_reconciled(world: World) -> None:
    """It runs. And it is due again later, in case that it falls silent."""
    world.started()
    world.rows.report(ID, "half-way", DUE)
    world.calls.forget()
    assert world.reconcile(DUE + 5) is None
    assert "describe_execution" not in world.calls.operations
    assert world.reconcile_at > DUE + MINUTE


def test_of_two_reconcilings_at_one_moment_one_is_done(world: World) -> None:
    world.written()
    seen = world.row
    assert world.reconciler.reconcile(seen, DUE) is Reconciled.STARTED
    world.calls.forget()
    assert world.reconciler.reconcile(seen, DUE) is None
    assert world.calls.operations == ["update_item"], "the claim that fails, and nothing else"


def test_a_reconciling_that_fails_is_repeated_later(world: World) -> None:
    """The claim comes first: a task whose look always fails does not keep the others waiting."""
    world.written()
    describe = world.calls.instead["describe_execution"]
    world.calls.instead["describe_execution"] = refusing("stepfunctions", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        world.reconcile()
    assert world.reconcile_at >= DUE + MINUTE
    world.calls.instead["describe_execution"] = describe
    assert world.reconcile() is Reconciled.STARTED


# rows of version 3


def test_a_task_of_version_3_that_was_never_started_is_started(world: World) -> None:
    before.put(before.WORKING)
    assert world.reconcile(DUE) is Reconciled.STARTED
    assert world.states.executions[ARN].input == '{"upto":3}'
    assert world.reconcile_at > DUE, "and is in the index from now on"


def test_a_task_of_version_3_is_finished(world: World) -> None:
    before.put(before.ASKING)
    world.states.run(MACHINE, ID)
    world.states.end(ARN, RESULT)
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.ENDED
    assert (world.row.status, world.row.result) == (Status.COMPLETED, RESULT)


def test_a_question_of_version_3_is_closed(world: World) -> None:
    before.put(before.ASKING)
    world.states.run(MACHINE, ID)
    world.states.tokens[before.TOKEN] = "gone"
    assert world.reconcile(NOW + HOUR // 2) is Reconciled.ASK_CLOSED
    assert world.row.status is Status.WORKING


def test_a_task_of_version_3_that_has_expired_fails_and_is_stopped(world: World) -> None:
    before.put(before.WORKING)
    world.states.run(MACHINE, ID)
    assert world.reconcile(NOW + HOUR + EXPIRED_MS) is Reconciled.EXPIRED
    assert world.states.executions[ARN].status == "ABORTED"


def test_a_task_of_version_3_that_has_ended_is_left_alone(world: World) -> None:
    before.put(before.COMPLETED)
    assert world.reconcile(NOW + DAY) is None
    assert raw_rows() == [before.COMPLETED]


# a function that dies between two calls


def never_started(world: World) -> None:
    world.written()


def ended_unheard(world: World) -> None:
    world.ended(RESULT)


def large_ended_unheard(world: World) -> None:
    world.ended({"content": [{"type": "text", "text": "x" * MAX_ROW_RESULT_BYTES}]})


def answered(world: World) -> None:
    world.started()
    (ask,) = world.asked("token")
    world.answered(ask)


def asked_in_vain(world: World) -> None:
    world.started()
    world.asked("token 1", "token 2")
    world.states.tokens |= {"token 1": "gone", "token 2": "gone"}


def answered_and_asked_in_vain(world: World) -> None:
    world.started()
    first, _, third = world.asked("token 1", "token 2", "token 3")
    world.answered(first)
    world.answered(third)
    world.states.tokens["token 2"] = "gone"


def cancelled(world: World) -> None:
    world.started()
    world.rows.cancel(ID, NOW + 5, "alice")


def expired(world: World) -> None:
    world.started()


LOST: Final[dict[Callable[[World], None], int | None]] = {
    never_started: None,
    ended_unheard: None,
    large_ended_unheard: None,
    answered: None,
    asked_in_vain: NOW + HOUR // 4,
    answered_and_asked_in_vain: NOW + HOUR // 4,
    cancelled: None,
    expired: NOW + HOUR + EXPIRED_MS,
}
"""What was lost, and when it is looked at, unless as soon as it is due."""


def state(world: World) -> dict[str, Any]:
    """What a task has come to, but for when, and for when somebody looks at it again."""
    (row,) = raw_rows()
    skipped = ("reconcileAt", "reconcileShard", "lastUpdatedAt", "resultPayload")
    return {
        "row": {name: value for name, value in row.items() if name not in skipped},
        "result": "resultPayload" in row,
        "executions": world.states.executions,
        "tokens": world.states.tokens,
        "received": world.states.received,
    }


@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("lost", LOST, ids=lambda lost: lost.__name__)
def test_wherever_a_reconciling_dies_the_next_one_does_the_rest(
    world: World, lost: Callable[[World], None], takes_effect: bool
) -> None:
    """And what was done is not done twice: one execution, one delivery, one end."""
    lost(world)
    before = world.kept()
    task, at = world.row, LOST[lost] or world.reconcile_at
    world.calls.forget()
    assert world.reconciler.reconcile(task, at) not in (None, Reconciled.RUNNING)
    expected, calls = state(world), len(world.calls.made)

    for last in range(calls):
        world.put_back(before)
        world.calls.forget()
        world.calls.last, world.calls.takes_effect = last, takes_effect
        with pytest.raises(Died):
            world.reconciler.reconcile(task, at)
        world.calls.last = inf
        if world.row.reconcile_at is not None:
            world.reconcile(max(at, world.reconcile_at))
        assert state(world) == expected, f"it died {takes_effect=} at call {last} of {calls}"


def test_a_reconciling_that_died_is_not_noticed_by_clients(world: World) -> None:
    """A task that expired is gone for them from its time on, whatever is still to be done."""
    world.started()
    world.calls.forget()
    world.calls.last = 2
    with pytest.raises(Died):
        world.reconcile(NOW + HOUR + EXPIRED_MS)
    world.calls.last = inf
    with pytest.raises(UnknownTask):
        world.rows.get(ID, NOW + HOUR + EXPIRED_MS)
