"""The rows of subtasks and their parents: what is written together, and what must not be.

The rules are those of SEP-2268.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.aws.errors import is_transient
from mcp_tasks.tasks.batch_read import MAX_BATCH_ROWS
from mcp_tasks.tasks.errors import Conflict, TaskEnded, UnknownTask
from mcp_tasks.tasks.subtask import subtask_id
from mcp_tasks.tasks.subtask_rows import SubtasksChanged
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_item import item_of, task_of
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import TABLE, Calls, raw_rows, real, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.family import ENDINGS, ERROR, OPERATION, RESULT, a_subtask, with_subtasks


@pytest.fixture
def parent(rows: TaskTable) -> Task:
    """A task in the table."""
    rows.create(a_task())
    return row(rows)


def row(rows: TaskTable, task_id: str = ID) -> Task:
    """A row, expired or not."""
    found = rows.find(task_id)
    assert found is not None
    return found


# ids


def test_a_subtasks_id_follows_from_its_place() -> None:
    ids = {subtask_id(ID, op, n) for op in ("000001", "000002") for n in range(3)}
    assert len(ids | {ID}) == 7
    assert subtask_id(ID, "000001", 2) == subtask_id(ID, "000001", 2)
    assert all(each.startswith("c1-") and len(each) == len(ID) for each in ids)


# the item


def test_a_subtask_is_an_item_and_back(rows: TaskTable, parent: Task) -> None:
    (subtask,) = with_subtasks(rows, 1)
    assert task_of(item_of(subtask)) == subtask
    assert row(rows, subtask.task_id) == subtask
    assert not subtask.begun
    assert parent.begun


# written together


def test_subtasks_and_their_ids_are_written_together_and_in_order(
    rows: TaskTable, parent: Task
) -> None:
    subtasks = with_subtasks(rows, 3)
    ids = tuple(each.task_id for each in subtasks)
    assert row(rows).subtask_ids == ids
    assert [each.task_id for each in rows.subtasks.read(ids)] == list(ids)
    assert row(rows).revision == parent.revision + 1, "clients see that the task has subtasks"
    more = [a_subtask(number, parent) for number in (3, 4)]
    rows.subtasks.add(row(rows), more, NOW)
    assert row(rows).subtask_ids == (*ids, *(each.task_id for each in more))


def test_no_subtask_is_written_without_its_parent_naming_it(rows: TaskTable, parent: Task) -> None:
    with_subtasks(rows, 1)
    before = raw_rows()
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(parent, [a_subtask(1)], NOW)  # as it was read before
    assert raw_rows() == before


def test_subtasks_that_were_added_meanwhile_stay(rows: TaskTable, parent: Task) -> None:
    with_subtasks(rows, 1)
    seen = row(rows)
    rows.subtasks.add(seen, [a_subtask(1)], NOW)
    before = raw_rows()
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(seen, [a_subtask(2)], NOW)
    assert raw_rows() == before


def test_subtasks_that_two_functions_write_are_written_once(rows: TaskTable, parent: Task) -> None:
    (first,) = with_subtasks(rows, 1)
    rows.subtasks.begin(first.task_id, "token", NOW)
    before = raw_rows()
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(row(rows), [a_subtask(0, parent)], NOW)
    assert raw_rows() == before


@pytest.mark.parametrize("ended", ["complete", "fail", "cancel"])
def test_a_task_that_has_ended_gets_no_subtask(rows: TaskTable, parent: Task, ended: str) -> None:
    ENDINGS[ended](rows, parent)
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(parent, [a_subtask()], NOW)
    assert len(raw_rows()) == 1


def test_a_task_whose_cancel_is_requested_gets_no_subtask(rows: TaskTable, parent: Task) -> None:
    rows.request_cancel(ID, NOW, parent.principal)
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(parent, [a_subtask()], NOW)
    assert len(raw_rows()) == 1


def test_an_expired_task_gets_no_subtask(rows: TaskTable, parent: Task) -> None:
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(parent, [a_subtask()], NOW + HOUR)
    assert len(raw_rows()) == 1


def test_times_do_not_go_back_when_clocks_differ(rows: TaskTable, parent: Task) -> None:
    rows.report(ID, "by a clock that is ahead", NOW + 5_000)
    rows.subtasks.add(row(rows), [a_subtask()], NOW)
    assert row(rows).last_updated_at == NOW + 5_000
    rows.report(ID, "by a clock that is far ahead", NOW + 9_000)
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(replace(row(rows), last_updated_at=NOW), [a_subtask(1)], NOW)


def test_another_error_than_a_refusal_is_raised(parent: Task) -> None:
    calls = Calls(instead={"transact_write_items": refusing("dynamodb", "ThrottlingException")})
    rows = TaskTable(calls.client("dynamodb"), TABLE)
    with pytest.raises(ClientError):
        rows.subtasks.add(parent, [a_subtask()], NOW)


def test_a_transaction_that_meets_another_one_is_a_change(parent: Task) -> None:
    def busy(**_: object) -> None:
        response = {
            "Error": {"Code": "TransactionCanceledException", "Message": ""},
            "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}],
        }
        raise ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]

    rows = TaskTable(Calls(instead={"transact_write_items": busy}).client("dynamodb"), TABLE)
    with pytest.raises(SubtasksChanged):
        rows.subtasks.add(parent, [a_subtask()], NOW)


@pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_is_throttled_is_repeated_by_the_state(
    parent: Task, reason: str
) -> None:
    def throttled(**_: object) -> None:
        response = {
            "Error": {"Code": "TransactionCanceledException", "Message": ""},
            "CancellationReasons": [{"Code": reason}, {"Code": "None"}],
        }
        raise ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]

    rows = TaskTable(Calls(instead={"transact_write_items": throttled}).client("dynamodb"), TABLE)
    with pytest.raises(ClientError) as raised:
        rows.subtasks.add(parent, [a_subtask()], NOW)
    assert is_transient(raised.value)


def test_a_write_that_meets_a_transaction_is_repeated(parent: Task) -> None:
    """botocore does not."""
    update, met = real("dynamodb").update_item, 0

    def busy_twice(**request: object) -> object:
        nonlocal met
        met += 1
        if met <= 2:
            response = {"Error": {"Code": "TransactionConflictException", "Message": ""}}
            raise ClientError(response, "UpdateItem")  # type: ignore[arg-type]
        return update(**request)

    rows = TaskTable(Calls(instead={"update_item": busy_twice}).client("dynamodb"), TABLE)
    rows.report(ID, "in the end", NOW)
    assert (met, row(rows).status_message) == (3, "in the end")


def test_a_transaction_that_is_too_large_is_an_error(parent: Task) -> None:
    def invalid(**_: object) -> None:
        response = {
            "Error": {"Code": "TransactionCanceledException", "Message": ""},
            "CancellationReasons": [{"Code": "ValidationError"}],
        }
        raise ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]

    rows = TaskTable(Calls(instead={"transact_write_items": invalid}).client("dynamodb"), TABLE)
    with pytest.raises(ClientError):
        rows.subtasks.add(parent, [a_subtask()], NOW)


def test_more_subtasks_than_one_batch_holds_are_read(rows: TaskTable, parent: Task) -> None:
    count = MAX_BATCH_ROWS + 1
    for number in range(count):
        rows.create(a_subtask(number))
    ids = [subtask_id(ID, OPERATION, number) for number in range(count)]
    assert [each.task_id for each in rows.subtasks.read(ids)] == ids
    assert [each.task_id for each in rows.subtasks.read([ID, "c1-" + "f" * 32])] == [ID]


# begin


def test_a_subtask_is_reconciled_from_the_moment_that_it_begins(
    rows: TaskTable, parent: Task
) -> None:
    (subtask,) = with_subtasks(rows, 1)
    stored = row(rows, subtask.task_id)
    assert stored.reconcile_at is None
    assert not stored.time_to_reconcile(NOW + HOUR), "its parent sees to it"
    begun = rows.subtasks.begin(subtask.task_id, "token", NOW)
    assert begun.begun
    assert begun.reconcile_at is not None
    assert begun.revision == stored.revision, "clients see nothing of it"


def test_every_token_that_a_state_waits_on_is_kept(rows: TaskTable, parent: Task) -> None:
    """Step Functions tries a state again with another token; the first attempt may come late."""
    (subtask,) = with_subtasks(rows, 1)
    for token in ("second", "first", "first"):
        begun = rows.subtasks.begin(subtask.task_id, token, NOW)
    assert begun.parent is not None
    assert sorted(begun.parent.tokens.values()) == ["first", "second"]


def test_a_subtask_that_was_cancelled_before_its_turn_does_not_begin(
    rows: TaskTable, parent: Task
) -> None:
    (subtask,) = with_subtasks(rows, 1)
    rows.cancel(subtask.task_id, NOW, subtask.principal, subtask.relatives)
    before = raw_rows()
    with pytest.raises(TaskEnded):
        rows.subtasks.begin(subtask.task_id, "token", NOW)
    assert raw_rows() == before


def test_an_expired_subtask_does_not_begin(rows: TaskTable, parent: Task) -> None:
    (subtask,) = with_subtasks(rows, 1)
    with pytest.raises(UnknownTask):
        rows.subtasks.begin(subtask.task_id, "token", NOW + HOUR)


# ends


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_task_does_not_end_when_it_has_its_first_subtask_since_it_was_read(
    rows: TaskTable, parent: Task, ending: str
) -> None:
    with_subtasks(rows, 1)
    before = raw_rows()
    with pytest.raises(Conflict) as conflict:
        ENDINGS[ending](rows, parent)
    assert raw_rows() == before
    assert len(conflict.value.task.subtask_ids) == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_task_does_not_end_when_it_has_more_subtasks_since_it_was_read(
    rows: TaskTable, parent: Task, ending: str
) -> None:
    with_subtasks(rows, 1)
    seen = row(rows)
    rows.subtasks.add(seen, [a_subtask(1)], NOW)
    with pytest.raises(Conflict):
        ENDINGS[ending](rows, seen)
    ENDINGS[ending](rows, row(rows))
    assert row(rows).status.terminal


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_subtask_that_has_ended_is_reconciled_until_its_parent_knows(
    rows: TaskTable, parent: Task, ending: str
) -> None:
    (subtask,) = with_subtasks(rows, 1)
    ENDINGS[ending](rows, subtask)
    assert row(rows, subtask.task_id).reconcile_at is not None
    rows.subtasks.parent_told(subtask.task_id, NOW, to_be_undone=False)
    told = row(rows, subtask.task_id)
    assert told.reconcile_at is None
    assert told.parent == subtask.parent
    assert told.parent is not None
    assert not told.parent.tokens


def test_a_subtask_that_has_to_be_undone_is_reconciled_further(
    rows: TaskTable, parent: Task
) -> None:
    (subtask,) = with_subtasks(rows, 1)
    rows.subtasks.begin(subtask.task_id, "token", NOW)
    rows.set_undo(subtask.task_id, True, NOW)
    rows.cancel(subtask.task_id, NOW, subtask.principal, subtask.relatives)
    rows.undone(row(rows, subtask.task_id), None, NOW)
    assert row(rows, subtask.task_id).reconcile_at is not None, "its parent does not know"
    rows.subtasks.parent_told(subtask.task_id, NOW, to_be_undone=True)
    assert row(rows, subtask.task_id).reconcile_at is not None, "something was to be undone"


def test_a_subtask_that_runs_tells_nobody(rows: TaskTable, parent: Task) -> None:
    (subtask,) = with_subtasks(rows, 1)
    rows.subtasks.begin(subtask.task_id, "token", NOW)
    before = raw_rows()
    with pytest.raises(Conflict):
        rows.subtasks.parent_told(subtask.task_id, NOW, to_be_undone=False)
    assert raw_rows() == before


def test_a_row_that_is_gone_is_not_written_again(rows: TaskTable, parent: Task) -> None:
    (subtask,) = with_subtasks(rows, 1)
    real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": subtask.task_id}})
    before = raw_rows()
    rows.subtasks.parent_told(subtask.task_id, NOW, to_be_undone=False)
    assert raw_rows() == before


# a cancel that is requested


def test_a_cancel_is_requested_by_the_tasks_principal_only(rows: TaskTable, parent: Task) -> None:
    with pytest.raises(UnknownTask):
        rows.request_cancel(ID, NOW, "bob")
    marked = rows.request_cancel(ID, NOW, parent.principal)
    assert marked.cancel_requested
    assert marked.revision == parent.revision, "clients see it when it is done"
    assert marked.needs_reconciling(marked.reconcile_at or 0)


@pytest.mark.parametrize("ended", ["complete", "fail", "cancel"])
def test_no_cancel_is_requested_of_a_task_that_has_ended(
    rows: TaskTable, parent: Task, ended: str
) -> None:
    ENDINGS[ended](rows, parent)
    before = raw_rows()
    with pytest.raises(TaskEnded):
        rows.request_cancel(ID, NOW, parent.principal)
    assert raw_rows() == before


def test_no_cancel_is_requested_of_an_expired_task(rows: TaskTable, parent: Task) -> None:
    with pytest.raises(UnknownTask):
        rows.request_cancel(ID, NOW + HOUR, parent.principal)


def test_the_parent_never_changes(rows: TaskTable, parent: Task) -> None:
    """Whatever happens to a subtask ("Subtasks", rule 1)."""
    (subtask,) = with_subtasks(rows, 1)
    rows.subtasks.begin(subtask.task_id, "token", NOW)
    rows.report(subtask.task_id, "half", NOW)
    rows.fail(subtask.task_id, ERROR, NOW, relatives=subtask.relatives)
    assert row(rows, subtask.task_id).parent == subtask.parent
    rows.complete(ID, RESULT, NOW, relatives=row(rows).relatives)
    assert row(rows).subtask_ids == (subtask.task_id,)
