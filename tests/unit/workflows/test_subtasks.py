"""Subtasks from call to outcome: what is started, who is told, and how a tree ends (SEP-2268)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from moto.dynamodb.models import dynamodb_backends

from mcp_tasks.durable.calls import Called
from mcp_tasks.durable.journal import journal_partition
from mcp_tasks.durable.journal_table import JournalTable
from mcp_tasks.durable.record import Kind, Operation, Record, State
from mcp_tasks.payloads.pointer import payload_prefix
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.errors import Busy
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.subtask import MAX_DEPTH, MAX_SUBTASKS, Relatives, subtask_id
from mcp_tasks.tasks.task import Task
from mcp_tasks.workflows import task_tree
from mcp_tasks.workflows.executions import execution_arn
from mcp_tasks.workflows.finish import finish
from mcp_tasks.workflows.reconcile import Reconciled
from mcp_tasks.workflows.run_event import MAX_AT_ONCE
from mcp_tasks.workflows.subtask_outcome import SubtaskOutcomes
from mcp_tasks.workflows.subtasks import DEPLOYMENT_MS, Subtasks
from mcp_tasks.workflows.task_tree import TaskTree
from tests.unit.support.aws import JOURNAL, Died, raw_rows, real, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.family import OPERATION, with_subtasks
from tests.unit.support.reconciling import MACHINE, World

TRACE: Final = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
CONTEXT: Final = {"session": "s", "other": "x", "xray": TRACE}
INPUT: Final = {
    "schema": 2,
    "arguments": {},
    "answers": {},
    "client_can": [],
    "trace": {"traceparent": "00-a-b-01"},
}
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}


@dataclass
class Family:
    """A task whose tool calls others, and the function that starts them."""

    world: World
    subtasks: Subtasks = field(init=False)

    def __post_init__(self) -> None:
        ends = self.world.ends
        assert ends.journal_table is not None
        outcomes = SubtaskOutcomes(ends.journal_table, ends.payloads, ends.executions)
        self.subtasks = Subtasks(ends, outcomes, lambda entry: MACHINE)
        self.world.started(input=json.dumps(INPUT), client_context=CONTEXT)

    @property
    def journal(self) -> JournalTable:
        """The journals of all tasks."""
        return JournalTable(real("dynamodb"), JOURNAL)

    def call(self, *arguments: dict[str, Any], tool: str = "count", concurrency: int = 10) -> None:
        """What the worker writes before it asks for the subtasks."""
        called = Called(tool, list(arguments), concurrency).as_json()
        operation = Operation(Kind.CALL, tool)
        text, prefix = json.dumps(called), payload_prefix("count", ID)
        large = self.world.payloads.put(prefix, text) if len(text) > 8_000 else None
        record = Record(
            OPERATION,
            operation,
            State.STARTED,
            value=None if large else called,
            payload=large,
            written_at=NOW,
        )
        self.journal.write(journal_partition("count", ID), record, None, NOW)

    def create(self) -> dict[str, Any]:
        """The state `Create subtasks`."""
        return self.subtasks.handle({"task": ID, "operation": OPERATION}, NOW)

    def begin(self, number: int = 0, token: str | None = None, now: int = NOW) -> dict[str, Any]:
        """The state of one subtask."""
        token = token or f"token {number}"
        self.world.states.wait(token)
        event = {"task": ID, "operation": OPERATION, "number": number, "token": token}
        return self.subtasks.handle(event, now)

    def row(self, number: int = 0) -> Task:
        """A subtask's row."""
        return self.find(subtask_id(ID, OPERATION, number))

    def find(self, task_id: str) -> Task:
        """A row."""
        task = self.world.rows.find(task_id)
        assert task is not None
        return task

    def end(self, number: int = 0, output: Any = RESULT, status: str = "SUCCEEDED") -> None:
        """A subtask's execution ends."""
        self.world.states.executions[self.arn(number)].status = status
        self.world.states.executions[self.arn(number)].output = json.dumps(output)

    def arn(self, number: int = 0) -> str:
        """A subtask's execution."""
        return execution_arn(MACHINE, subtask_id(ID, OPERATION, number))

    def tell(self, number: int | None = 0, status: str = "SUCCEEDED") -> Status | None:
        """EventBridge tells `finish` of the end of a subtask's execution, or of the parent's."""
        name = ID if number is None else subtask_id(ID, OPERATION, number)
        detail = {"name": name, "stateMachineArn": MACHINE, "status": status}
        return finish(detail, self.world.ends, NOW + 1)

    def outcomes(self) -> dict[int, Record]:
        """What the parent's journal has of its subtasks."""
        found = self.journal.read(journal_partition("count", ID, OPERATION))
        return {int(record.id.rpartition("#")[2]): record for record in found}

    @property
    def received(self) -> list[str]:
        """The tokens of states that go on."""
        return [token for token, _ in self.world.states.received]


@pytest.fixture
def family(moto: None, no_account: None, catalogue: Catalogue) -> Family:
    return Family(World(catalogue))


# created


def test_subtasks_are_tasks_that_wait_for_their_turn(family: Family) -> None:
    family.call({"upto": 1}, {"upto": 2}, concurrency=2)
    assert family.create() == {"numbers": [0, 1], "concurrency": 2}
    parent, first, second = family.world.row, family.row(0), family.row(1)
    assert parent.subtask_ids == (first.task_id, second.task_id)
    assert json.loads(second.input or "") == {
        **INPUT,
        "arguments": {"upto": 2},
        "client_can": ["form"],
    }
    assert second.parent is not None
    assert (second.parent.root_tool, second.parent.depth) == ("count", 1)
    assert second.client_context == {"session": "s", "xray": TRACE}, "it is of the same call"
    assert family.arn(0) not in family.world.states.executions


def test_a_subtask_lives_exactly_as_long_as_its_parent(family: Family) -> None:
    """ "MUST NOT cause a task to be deleted after its parent"; and its parent names it."""
    family.call({"upto": 1})
    family.subtasks.handle({"task": ID, "operation": OPERATION}, NOW + 60_000)
    assert family.row().expires_at == family.world.row.expires_at


def test_a_create_that_is_repeated_writes_nothing(family: Family) -> None:
    family.call({"upto": 1}, {"upto": 2})
    first = family.create()
    before = raw_rows()
    assert family.create() == first
    assert raw_rows() == before


def test_many_subtasks_are_written_in_several_transactions(family: Family) -> None:
    family.call(*({"upto": n} for n in range(MAX_AT_ONCE + 1)))
    assert family.create()["numbers"] == list(range(MAX_AT_ONCE))
    ids = family.world.row.subtask_ids
    assert len(ids) == MAX_AT_ONCE + 1
    assert ids == tuple(subtask_id(ID, OPERATION, n) for n in range(len(ids)))


def test_a_create_that_died_in_the_middle_is_completed(family: Family) -> None:
    family.call(*({"upto": n} for n in range(60)))
    family.world.calls.forget()
    family.world.calls.last = 6
    with pytest.raises(Died):
        family.create()
    family.world.calls.last = float("inf")
    there = len(family.world.row.subtask_ids)
    assert 0 < there < 60
    family.create()
    assert family.world.row.subtask_ids == tuple(subtask_id(ID, OPERATION, n) for n in range(60))


@pytest.mark.parametrize("how", ["cancelled", "requested", "expired", "gone"])
def test_a_task_that_ends_has_no_more_subtasks(family: Family, how: str) -> None:
    family.call({"upto": 1})
    now, rows = NOW, family.world.rows
    match how:
        case "cancelled":
            rows.cancel(ID, NOW, "alice")
        case "requested":
            rows.request_cancel(ID, NOW, "alice")
        case "expired":
            now = NOW + HOUR
        case "gone":
            dynamodb_backends["123456789012"]["us-east-1"].tables["tasks"].items.clear()
    event = {"task": ID, "operation": OPERATION}
    assert family.subtasks.handle(event, now)["numbers"] == []
    assert len(raw_rows()) == (0 if how == "gone" else 1)


def test_a_task_that_is_cancelled_while_its_subtasks_are_written_gets_no_more(
    family: Family,
) -> None:
    family.call(*({"upto": n} for n in range(30)))
    transact, calls = real("dynamodb").transact_write_items, 0

    def cancel_first(**request: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            family.world.rows.request_cancel(ID, NOW, "alice")
        return transact(**request)

    family.world.calls.instead["transact_write_items"] = cancel_first
    assert family.create()["numbers"] == []
    assert len(family.world.row.subtask_ids) == 25


def test_rows_that_change_all_the_time_have_the_state_retried(family: Family) -> None:
    family.call({"upto": 1})

    def report_first(**request: Any) -> Any:
        family.world.rows.report(ID, "busy", family.world.row.last_updated_at + 1)
        return real("dynamodb").transact_write_items(**request)

    family.world.calls.instead["transact_write_items"] = report_first
    with pytest.raises(Busy):
        family.create()


def test_a_call_that_is_over_starts_nothing(family: Family) -> None:
    assert family.create()["numbers"] == []


@pytest.mark.parametrize(
    ("changes", "tool", "count", "reason"),
    [
        ({}, "removed", 1, "does not have the tool removed any more"),
        ({"depth": MAX_DEPTH}, "count", 1, "at most 8 tasks above it"),
        ({"others": MAX_SUBTASKS}, "count", 1, "at most 1000 subtasks"),
    ],
)
def test_subtasks_that_a_task_may_not_have_fail_the_call(
    family: Family, changes: dict[str, Any], tool: str, count: int, reason: str
) -> None:
    if "depth" in changes:
        _make_deep(family, changes["depth"])
    if "others" in changes:
        _make_large(family, changes["others"])
    family.call(*[{"upto": 1}] * count, tool=tool)
    before = len(raw_rows())
    event = {"task": ID, "operation": OPERATION}
    assert family.subtasks.handle(event, NOW + DEPLOYMENT_MS)["numbers"] == []
    assert len(raw_rows()) == before
    (record,) = family.journal.read(journal_partition("count", ID), OPERATION)
    assert record.failure is not None
    assert (record.state, record.failure.name) == (State.FAILED, "refused")
    assert reason in record.failure.message


def _make_deep(family: Family, depth: int) -> None:
    above = with_subtasks(family.world.rows, 1)[0].parent
    assert above is not None
    _rewrite(family, replace(family.world.row, parent=replace(above, depth=depth)))


def _make_large(family: Family, count: int) -> None:
    ids = tuple(f"c1-{n:032x}" for n in range(count))
    _rewrite(family, replace(family.world.row, subtask_ids=ids))


def _rewrite(family: Family, task: Task) -> None:
    from mcp_tasks.aws.dynamodb_values import to_attribute
    from mcp_tasks.tasks.task_item import item_of

    item = item_of(task)
    if task.subtask_ids:
        item["childTaskIds"] = to_attribute(list(task.subtask_ids))
    real("dynamodb").put_item(TableName="tasks", Item=item)


def test_large_arguments_are_stored_for_the_subtask(family: Family) -> None:
    family.call({"upto": 1, "text": "x" * 200_000})
    family.create()
    given = json.loads(family.row().input or "")["arguments"]
    prefix = payload_prefix("count", family.row().task_id)
    assert family.world.payloads.resolve(given, prefix)["text"] == "x" * 200_000


# begun


def test_a_subtask_begins_when_its_turn_has_come(family: Family) -> None:
    family.call({"upto": 1})
    family.create()
    assert family.begin() == {"begun": True}
    assert family.world.states.executions[family.arn()].status == "RUNNING"
    assert family.begin(token="another") == {"begun": True}, "a repeated state waits as well"


def test_a_single_subtask_is_created_and_begun_at_once(family: Family) -> None:
    family.call({"upto": 1})
    family.world.states.wait("token")
    event = {"task": ID, "operation": OPERATION, "token": "token"}
    assert family.subtasks.handle(event, NOW) == {"begun": True}
    assert family.row().begun


def test_a_single_subtask_that_may_not_be_lets_its_caller_go_on(family: Family) -> None:
    family.call({"upto": 1}, tool="removed")
    family.world.states.wait("token")
    event = {"task": ID, "operation": OPERATION, "token": "token"}
    assert family.subtasks.handle(event, NOW + DEPLOYMENT_MS) == {"begun": False}
    assert family.received == ["token"]


def test_the_last_one_of_several_is_begun_and_not_the_first(family: Family) -> None:
    """The others have ended: one is left, as if there had been one only."""
    family.call({"upto": 1}, {"upto": 2})
    family.create()
    family.begin(0)
    family.end(0)
    family.tell(0)
    family.world.states.wait("token")
    event = {"task": ID, "operation": OPERATION, "token": "token"}
    assert family.subtasks.handle(event, NOW) == {"begun": True}
    assert family.world.states.executions[family.arn(1)].status == "RUNNING"
    assert family.received == ["token 0"]


def test_a_tool_that_is_being_deployed_is_waited_for(family: Family) -> None:
    """Functions are replaced one after the other."""
    family.call({"upto": 1}, tool="new")
    with pytest.raises(Busy):
        family.subtasks.handle({"task": ID, "operation": OPERATION}, NOW - DEPLOYMENT_MS)


def test_large_inputs_are_written_a_few_at_a_time(family: Family) -> None:
    """A transaction of DynamoDB has 4 MB at most."""
    given = [{"item": "x" * 200_000} for _ in range(20)]
    family.call(*given, tool="orders")
    family.world.calls.forget()
    family.create()
    sizes = [
        sum(len(str(each)) for each in call.arguments["TransactItems"])
        for call in family.world.calls.made
        if call.operation == "transact_write_items"
    ]
    assert len(sizes) == 2
    assert max(sizes) < 4_000_000
    assert len(family.world.row.subtask_ids) == 20


def test_arguments_that_no_execution_takes_fail_the_call(family: Family) -> None:
    family.call({"item": "x" * 300_000}, tool="orders")
    assert family.create()["numbers"] == []
    (record,) = family.journal.read(journal_partition("count", ID), OPERATION)
    assert record.failure is not None
    assert record.failure.name == "refused"


def test_a_start_that_was_throttled_is_made_up_for_by_the_sweeper(family: Family) -> None:
    family.call({"upto": 1})
    family.create()
    start = family.world.calls.instead.pop("start_execution")
    family.world.calls.instead["start_execution"] = refusing("stepfunctions", "ThrottlingException")
    assert family.begin() == {"begun": True}
    family.world.calls.instead["start_execution"] = start
    task = family.row()
    assert task.reconcile_at is not None
    assert family.world.reconciler.reconcile(task, task.reconcile_at) is Reconciled.STARTED


def test_a_subtask_that_cannot_be_started_fails_and_its_parent_is_told(family: Family) -> None:
    family.call({"upto": 1})
    family.create()
    family.world.calls.instead["start_execution"] = refusing(
        "stepfunctions", "StateMachineDoesNotExist"
    )
    with pytest.raises(Busy):
        family.begin()  # its state machine may be on its way
    assert family.begin(now=NOW + DEPLOYMENT_MS) == {"begun": False}
    assert family.row().status is Status.FAILED
    assert family.received == ["token 0"]
    assert family.outcomes()[0].failure is not None


def test_a_subtask_that_was_cancelled_before_its_turn_is_told_at_once(family: Family) -> None:
    family.call({"upto": 1})
    family.create()
    family.world.rows.cancel(family.row().task_id, NOW, "alice", family.row().relatives)
    assert family.begin() == {"begun": False}
    assert family.arn() not in family.world.states.executions
    assert family.received == ["token 0"]


def test_a_subtask_without_a_row_is_of_a_task_that_has_ended(family: Family) -> None:
    assert family.begin() == {"begun": False}
    assert family.received == []


# ended


@pytest.fixture
def running(family: Family) -> Family:
    """Two subtasks that run."""
    family.call({"upto": 1}, {"upto": 2})
    family.create()
    family.begin(0)
    family.begin(1)
    return family


def test_a_subtasks_end_is_told_to_its_parent(running: Family) -> None:
    running.end()
    assert running.tell() is Status.COMPLETED
    assert running.outcomes()[0].value == RESULT
    assert running.received == ["token 0"]
    assert running.row().reconcile_at is None
    assert running.world.row.status is Status.WORKING


@pytest.mark.parametrize("size", [10, 20_000, 400_000])
def test_a_result_of_any_size_gets_into_the_parents_journal(running: Family, size: int) -> None:
    """As an object that the parent's worker may read, if it is large."""
    large = {"content": [{"type": "text", "text": "x" * size}]}
    running.end(output=large)
    running.tell()
    record = running.outcomes()[0]
    if record.payload is None:
        assert record.value == large
        return
    assert record.payload.key.startswith(f"{payload_prefix('count', ID)}/")
    assert json.loads(running.world.payloads.get(record.payload)) == large


def test_a_result_that_is_gone_is_a_failure(running: Family) -> None:
    running.end(output={"content": [{"type": "text", "text": "x" * 400_000}]})
    running.world.calls.instead["copy_object"] = refusing("s3", "NoSuchKey")
    running.tell()
    assert running.outcomes()[0].failure is not None


def test_a_failed_subtask_is_told_with_what_clients_see(running: Family) -> None:
    running.end(status="FAILED")
    assert running.tell(status="FAILED") is Status.FAILED
    failure = running.outcomes()[0].failure
    assert failure is not None
    assert (failure.name, failure.message) == ("failed", "The tool failed: Broken")


def test_an_end_that_is_told_twice_is_told_once_to_the_parent(running: Family) -> None:
    running.end()
    running.tell()
    before = raw_rows()
    assert running.tell() is None
    assert raw_rows() == before
    assert running.received == ["token 0"]


def test_every_state_that_waits_goes_on(running: Family) -> None:
    running.begin(token="another")
    running.end()
    running.tell()
    assert sorted(running.received) == ["another", "token 0"]


@pytest.mark.parametrize("last", range(8))
def test_a_parent_is_told_whatever_dies_on_the_way(running: Family, last: int) -> None:
    """The sweeper does what `finish` did not."""
    running.end()
    running.world.calls.forget()
    running.world.calls.last = last
    with suppress(Died):
        running.tell()
    running.world.calls.last = float("inf")
    for _ in range(4):
        task = running.row()
        if task.reconcile_at is not None:
            running.world.reconciler.reconcile(task, max(task.reconcile_at, NOW + 200_000))
    assert running.row().status is Status.COMPLETED
    assert running.row().reconcile_at is None
    assert running.outcomes()[0].value == RESULT
    assert running.received == ["token 0"]


def test_a_poll_that_finds_the_end_leaves_the_parent_to_the_sweeper(running: Family) -> None:
    """The function `api` may not write journals."""
    running.end()
    within_request = replace(running.world.ends, journal_table=None)
    repair = replace(running.world.reconciler, ends=within_request)
    task = running.row()
    assert repair.reconcile(task, NOW + 200_000) is Reconciled.ENDED
    assert running.outcomes() == {}
    task = running.row()
    assert task.reconcile_at is not None
    done = running.world.reconciler.reconcile(task, task.reconcile_at)
    assert done is Reconciled.PARENT_TOLD
    assert running.received == ["token 0"]


def test_a_subtask_that_is_cancelled_alone_is_an_outcome_like_any_other(running: Family) -> None:
    task = TaskTree(running.world.rows, running.world.executions).cancel(running.row(), NOW)
    assert (task.status, running.world.row.status) == (Status.CANCELLED, Status.WORKING)
    running.end(status="ABORTED")
    running.tell(status="ABORTED")
    failure = running.outcomes()[0].failure
    assert failure is not None
    assert failure.name == "cancelled"
    assert "token 0" in running.received


# trees


def tree(running: Family) -> TaskTree:
    return TaskTree(running.world.rows, running.world.executions)


def grandchildren(running: Family) -> list[Task]:
    """Subtasks of the first subtask."""
    return with_subtasks(running.world.rows, 2, of=running.row(0).task_id)


def in_order(running: Family, work: Callable[[], object]) -> list[str]:
    """The ids of the tasks that become terminal, as that happens."""
    ended: list[str] = []
    update = real("dynamodb").update_item

    def note(**request: Any) -> Any:
        response = update(**request)
        new = response.get("Attributes", {})
        if new.get("status", {}).get("S") in ("cancelled", "failed", "completed"):
            ended.append(request["Key"]["taskId"]["S"])
        return response

    running.world.calls.instead["update_item"] = note
    work()
    del running.world.calls.instead["update_item"]
    return ended


def test_a_cancel_goes_down_and_ends_the_leaves_first(running: Family) -> None:
    leaves = grandchildren(running)
    ended = in_order(running, lambda: tree(running).cancel(running.world.row, NOW))
    ids = [*(leaf.task_id for leaf in leaves), running.row(0).task_id, running.row(1).task_id, ID]
    assert ended == ids
    assert {running.find(each).status for each in ids} == {Status.CANCELLED}
    stopped = running.world.states.executions
    assert {stopped[running.arn(n)].status for n in (0, 1)} == {"ABORTED"}
    assert stopped[execution_arn(MACHINE, ID)].status == "ABORTED"


def test_a_parent_is_stopped_before_its_subtasks_end(running: Family) -> None:
    """It would go on with what they came to."""
    running.world.calls.forget()
    tree(running).cancel(running.world.row, NOW)
    operations = [
        call.arguments.get("executionArn", call.operation)
        for call in running.world.calls.made
        if call.operation in ("stop_execution", "batch_get_item")
    ]
    assert operations[:2] == [execution_arn(MACHINE, ID), "batch_get_item"]


def test_a_subtask_that_has_ended_stays_as_it_is(running: Family) -> None:
    running.end()
    running.tell()
    tree(running).cancel(running.world.row, NOW)
    assert running.row(0).status is Status.COMPLETED
    assert running.row(1).status is Status.CANCELLED


@pytest.mark.parametrize("last", range(12))
def test_a_cancel_that_died_is_completed_by_the_sweeper(running: Family, last: int) -> None:
    running.world.calls.forget()
    running.world.calls.last = last
    with suppress(Died):
        tree(running).cancel(running.world.row, NOW)
    running.world.calls.last = float("inf")
    row = running.world.row
    if row.cancel_requested and not row.status.terminal:
        assert running.world.reconcile() is Reconciled.CANCELLED
        row = running.world.row
    if row.status is Status.CANCELLED:
        assert {running.row(n).status for n in (0, 1)} == {Status.CANCELLED}
    else:
        assert not row.cancel_requested


def test_a_cancel_that_died_is_completed_when_the_parents_execution_has_ended(
    running: Family,
) -> None:
    running.world.rows.request_cancel(ID, NOW, "alice")
    running.world.executions.stop(MACHINE, ID)
    assert running.tell(None, status="ABORTED") is Status.CANCELLED
    assert {running.row(n).status for n in (0, 1)} == {Status.CANCELLED}


def test_a_task_that_is_being_cancelled_gets_no_successor(running: Family) -> None:
    """Its execution ended for its long history just before it was to be stopped."""
    running.world.rows.request_cancel(ID, NOW, "alice")
    running.world.states.end(execution_arn(MACHINE, ID), {"successor": {"answers": {}}})
    assert running.tell(None) is Status.CANCELLED
    assert execution_arn(MACHINE, f"{ID}-2") not in running.world.states.executions


def test_an_end_that_an_earlier_version_has_told_nobody_is_told(running: Family) -> None:
    """It has taken the subtask out of the reconcile schedule, too."""
    task = running.row()
    no_parent = Relatives()
    running.world.rows.complete(task.task_id, RESULT, NOW, relatives=no_parent)
    assert running.row().reconcile_at is None
    assert running.world.reconcile(NOW + 200_000) is Reconciled.PARENT_TOLD
    assert running.received == ["token 0"]


def test_a_result_that_came_before_the_cancel_stands(running: Family) -> None:
    running.world.rows.request_cancel(ID, NOW, "alice")
    running.world.states.end(execution_arn(MACHINE, ID), RESULT)
    assert running.tell(None) is Status.COMPLETED
    assert {running.row(n).status for n in (0, 1)} == {Status.CANCELLED}


def test_a_task_that_fails_ends_its_subtasks_first(running: Family) -> None:
    running.world.states.end(execution_arn(MACHINE, ID), status="TIMED_OUT")
    ended = in_order(running, lambda: running.tell(None, status="TIMED_OUT"))
    assert ended == [running.row(0).task_id, running.row(1).task_id, ID]
    assert running.row(0).status is Status.CANCELLED
    assert running.world.row.status is Status.FAILED


def test_a_task_that_expires_ends_its_subtasks_first(running: Family) -> None:
    late = NOW + 2 * HOUR
    ended = in_order(running, lambda: running.world.reconcile(late))
    assert ended == [running.row(0).task_id, running.row(1).task_id, ID]
    assert running.row(0).status is Status.FAILED
    assert {e.status for e in running.world.states.executions.values()} == {"ABORTED"}


def test_a_task_with_a_subtask_more_is_ended_all_the_same(running: Family) -> None:
    """It was written while the others were ended; there is one more round."""
    seen = replace(running.world.row, subtask_ids=running.world.row.subtask_ids[:1])
    tree(running).end(
        seen,
        lambda task, at: running.world.rows.complete(ID, RESULT, at, relatives=task.relatives),
        NOW,
    )
    assert running.row(1).status is Status.CANCELLED
    assert running.world.row.status is Status.COMPLETED


def test_a_task_ends_at_the_time_of_its_last_subtask_or_later(running: Family) -> None:
    """Their clocks may be ahead."""
    running.world.rows.report(running.row(1).task_id, "by a clock that is ahead", NOW + 9_000)
    tree(running).cancel(running.world.row, NOW)
    assert running.world.row.last_updated_at == NOW + 9_000


def test_an_end_of_a_large_tree_is_left_to_others_when_it_takes_too_long(
    running: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_tree, "MAX_SECONDS", -1)
    with pytest.raises(Busy):
        tree(running).cancel(running.world.row, NOW)
    assert not running.world.row.status.terminal
    monkeypatch.undo()
    assert running.world.reconcile() is Reconciled.CANCELLED


def test_a_subtask_asks_and_its_parent_works(running: Family) -> None:
    asked = open_ask("its token", {"sure": FormQuestion("Sure?", {})})
    running.world.rows.ask(running.row().task_id, asked, NOW)
    assert running.row().status is Status.INPUT_REQUIRED
    assert running.world.row.status is Status.WORKING


def test_what_is_deleted_takes_its_subtasks_along(running: Family) -> None:
    leaves = grandchildren(running)
    tree(running).cancel(running.world.row, NOW)
    tree(running).discard(running.world.row, NOW)
    ids = [ID, running.row(0).task_id, running.row(1).task_id, *(leaf.task_id for leaf in leaves)]
    assert all(running.find(each).expired(NOW) for each in ids)


def test_a_subtask_that_has_to_be_undone_is_undone_when_its_parent_knows(running: Family) -> None:
    running.world.rows.set_undo(running.row().task_id, True, NOW)
    running.end(status="FAILED")
    running.tell(status="FAILED")
    assert running.received == ["token 0"]
    undo = execution_arn(MACHINE, f"{running.row().task_id}-undo")
    assert json.loads(running.world.states.executions[undo].input)["undo"] is True
    assert running.row().reconcile_at is not None


def test_a_task_without_subtasks_ends_with_one_write(family: Family) -> None:
    """And no read more than before."""
    family.world.calls.forget()
    tree(family).cancel(a_task(), NOW)
    assert family.world.calls.operations == ["update_item"]


# what it costs


def calls_of(family: Family, work: Callable[[], object]) -> list[str]:
    """The calls to AWS that something makes."""
    family.world.calls.forget()
    work()
    return family.world.calls.operations


def test_a_subtask_costs_its_calls(family: Family) -> None:
    """docs/durable-functions.md, "What it costs"."""
    family.call({"upto": 1})
    family.world.states.wait("token")
    event = {"task": ID, "operation": OPERATION, "token": "token"}
    started = calls_of(family, lambda: family.subtasks.handle(event, NOW))
    assert started == [
        *("get_item", "query", "transact_write_items"),
        *("update_item", "start_execution"),
    ]
    family.end()
    told = calls_of(family, family.tell)
    assert told == [
        *("get_item", "describe_execution", "update_item"),
        *("put_item", "send_task_success", "update_item"),
    ]


def test_each_of_many_subtasks_costs_as_much(family: Family) -> None:
    family.call(*({"upto": n} for n in range(50)))
    created = calls_of(family, family.create)
    assert Counter(created) == {"get_item": 2, "query": 1, "transact_write_items": 2}
    begun = calls_of(family, lambda: [family.begin(n) for n in range(3)])
    assert Counter(begun) == {"update_item": 3, "start_execution": 3}


# what a fault campaign has found


def test_a_subtask_whose_cancel_got_no_answer_is_stopped(running: Family) -> None:
    """botocore repeats the write, which finds that the subtask has ended."""
    update = real("dynamodb").update_item

    def twice(**request: Any) -> Any:
        if request["ExpressionAttributeValues"].get(":set0") == {"S": "cancelled"}:
            update(**request)
        return update(**request)

    running.world.calls.instead["update_item"] = twice
    tree(running)._cancel_subtask(running.row(), NOW, float("inf"))
    assert running.row().status is Status.CANCELLED
    assert running.world.states.executions[running.arn()].status == "ABORTED"


def test_a_parent_that_is_told_first_does_not_leave_an_execution_behind(running: Family) -> None:
    """Whoever cancelled the subtask died before it stopped the execution. Of a subtask whose parent
    knows of its end, the sweeper thinks no more."""
    task = running.row()
    running.world.rows.cancel(task.task_id, NOW, task.principal, task.relatives)
    assert running.world.reconcile(NOW + 200_000) is Reconciled.PARENT_TOLD
    failure = running.outcomes()[0].failure
    assert failure is not None
    assert failure.name == "cancelled"
    assert running.row().reconcile_at is None
    assert running.world.states.executions[running.arn()].status == "ABORTED"


def test_a_completed_subtask_has_nothing_to_stop(running: Family) -> None:
    """Its parent is told, whatever a stop of an execution that has ended would come to."""
    running.end()
    running.world.rows.complete(
        running.row().task_id, RESULT, NOW, relatives=running.row().relatives
    )
    running.world.calls.instead["stop_execution"] = refusing(
        "stepfunctions", "ServiceUnavailableException"
    )
    task = running.row()
    assert task.reconcile_at is not None
    done = running.world.reconciler.reconcile(task, task.reconcile_at)
    assert done is Reconciled.PARENT_TOLD


def test_a_stop_of_an_execution_that_has_ended_may_be_refused(running: Family) -> None:
    running.world.calls.instead["stop_execution"] = refusing("stepfunctions", "ValidationException")
    running.world.executions.stop(MACHINE, running.row().task_id)
