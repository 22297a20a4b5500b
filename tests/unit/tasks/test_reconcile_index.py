"""The index of the tasks that have to be reconciled, against moto's DynamoDB.

tests/campaigns/conditions/table.py names, for each condition of each write, the test here that
fails without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.payloads.pointer import PayloadPointer
from mcp_tasks.tasks.questions import Ask, FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_index import ScheduledTask
from mcp_tasks.tasks.reconcile_schedule import (
    FIRST_RECONCILE_MS,
    MAX_RECONCILE_INTERVAL_MS,
    MIN_RECONCILE_INTERVAL_MS,
    SHARDS,
    STOP_AGAIN_MS,
    shard_of,
)
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support import rows_of_version_3 as before
from tests.unit.support.aws import TABLE, Calls, raw_rows, real, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

DUE: Final = NOW + FIRST_RECONCILE_MS
LATER: Final = DUE + HOUR // 2
ERROR: Final = {"code": -32603, "message": "broken"}
RESULT: Final[dict[str, Any]] = {"content": []}
YES: Final = {"action": "accept", "content": {}}

Write = Callable[[TaskTable], object]


def due(rows: TaskTable, now: int = LATER) -> list[str]:
    """The tasks of all shards that are due."""
    return [
        found.task_id
        for n in range(SHARDS)
        for found in rows.reconcile_index.tasks_to_reconcile(str(n), now, 10)
    ]


def reconcile_at() -> int | None:
    """When the row says that its task is due; its attributes of the index come and go together."""
    (row,) = raw_rows()
    assert ("reconcileAt" in row) == ("reconcileShard" in row)
    if "reconcileAt" not in row:
        return None
    assert row["reconcileShard"] == {"S": shard_of(ID)}
    return int(row["reconcileAt"]["N"])


def peeked(rows: TaskTable) -> Task:
    """The row, as one reads it who has found it in the index."""
    task = rows.find(ID)
    assert task is not None
    return task


def an_ask(token: str = "token") -> Ask:
    return open_ask(token, {"sure": FormQuestion("Sure?", {})})


# due_in


def test_a_task_is_found_from_when_it_is_due(rows: TaskTable) -> None:
    rows.create(a_task())
    assert due(rows, DUE - 1) == []
    assert due(rows, DUE) == [ID]


def test_a_shard_has_its_own_tasks_only(rows: TaskTable) -> None:
    ids = [f"c1-{n:032x}" for n in range(40)]
    for task_id in ids:
        rows.create(a_task(task_id=task_id))
    found = {
        str(n): [due.task_id for due in rows.reconcile_index.tasks_to_reconcile(str(n), DUE, 100)]
        for n in range(SHARDS)
    }
    assert sorted(task_id for shard in found.values() for task_id in shard) == ids
    for shard, task_ids in found.items():
        assert {shard_of(task_id) for task_id in task_ids} == {shard}


def in_shard_0(rows: TaskTable, aws: Calls) -> list[str]:
    """Tasks of one shard, the first of which has been due for longest."""
    ids = [task_id for n in range(80) if shard_of(task_id := f"c1-{n:032x}") == "0"]
    assert len(ids) == 11
    for age, task_id in enumerate(ids):
        rows.create(a_task(task_id=task_id, created_at=NOW - age))
    aws.forget()
    return ids[::-1]


@pytest.mark.parametrize("page", [1, 4, 11, 100])
def test_what_has_been_due_for_longest_comes_first(rows: TaskTable, aws: Calls, page: int) -> None:
    """However many there are: none waits for ever."""
    ids = in_shard_0(rows, aws)
    since = range(DUE - len(ids) + 1, DUE + 1)
    assert list(rows.reconcile_index.tasks_to_reconcile("0", DUE, page)) == list(
        map(ScheduledTask, ids, since)
    )


@pytest.mark.parametrize("page", [1, 4, 11, 100])
def test_or_what_became_due_last(rows: TaskTable, aws: Calls, page: int) -> None:
    ids = in_shard_0(rows, aws)
    found = rows.reconcile_index.tasks_to_reconcile("0", DUE - 1, page, latest_first=True)
    assert [due.task_id for due in found] == ids[-2::-1]


def test_what_was_looked_at_does_not_come_again(rows: TaskTable, aws: Calls) -> None:
    """Nor does what could not be put off keep the others waiting."""
    ids, found = in_shard_0(rows, aws), []
    for n, entry in enumerate(rows.reconcile_index.tasks_to_reconcile("0", DUE, 2)):
        found.append(entry.task_id)
        task = rows.find(entry.task_id)
        assert task is not None
        assert n % 3 == 0 or rows.reconcile_index.claim(task, DUE)
    assert found == ids


def test_no_more_is_asked_for_than_is_looked_at(rows: TaskTable, aws: Calls) -> None:
    """Pages of the index; a scan would read every task that there ever was."""
    in_shard_0(rows, aws)
    found = rows.reconcile_index.tasks_to_reconcile("0", DUE, 3)
    for _ in range(4):
        next(found)
    assert aws.operations == ["query", "query"]
    for call in aws.made:
        assert (call.arguments["IndexName"], call.arguments["Limit"]) == ("reconcile", 3)


# what is in the index


def answer(rows: TaskTable) -> None:
    """Answer the question that is open, ten minutes after the task was created."""
    task = peeked(rows)
    (ask,) = task.asks.values()
    rows.answer(task, {ask.id: dict.fromkeys(ask.questions, YES)}, NOW + 600_000)


def close(rows: TaskTable) -> None:
    task = peeked(rows)
    (ask_id,) = task.asks
    rows.close_ask(task, ask_id, NOW + 600_000)


GOING_ON: Final[dict[str, Write]] = {
    "report": lambda rows: rows.report(ID, "half-way", NOW + 600_000),
    "store_tool_error": lambda rows: rows.store_tool_error(ID, "no", NOW + 600_000),
    "ask": lambda rows: rows.ask(ID, an_ask("another"), NOW + 600_000),
    "mark_delivered": lambda rows: rows.mark_delivered(ID, an_ask().id, NOW + 600_000),
    "close_ask": close,
}


@pytest.mark.parametrize("write", GOING_ON.values(), ids=GOING_ON)
def test_a_write_does_not_put_the_next_look_off(rows: TaskTable, write: Write) -> None:
    """A task that reports all the time may still wait for an answer that was not passed on."""
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    write(rows)
    assert reconcile_at() == DUE


def test_an_answer_is_looked_after_soon(rows: TaskTable) -> None:
    """Whoever stored it may die before it is sent to the waiting state."""
    rows.create(a_task(ttl_ms=90 * 24 * HOUR))
    rows.ask(ID, an_ask(), NOW)
    assert rows.reconcile_index.claim(peeked(rows), NOW + 24 * HOUR), "the next look is in an hour"
    answer(rows)
    assert reconcile_at() == NOW + 600_000 + FIRST_RECONCILE_MS


ENDED_BY_ITSELF: Final[dict[str, Write]] = {
    "result": lambda rows: rows.complete(ID, RESULT, NOW + 5),
    "large result": lambda rows: rows.complete(ID, PayloadPointer("k", 0, 9), NOW + 5),
    "error": lambda rows: rows.fail(ID, ERROR, NOW + 5),
}


@pytest.mark.parametrize("end", ENDED_BY_ITSELF.values(), ids=ENDED_BY_ITSELF)
def test_a_task_whose_execution_ended_leaves_the_index(rows: TaskTable, end: Write) -> None:
    rows.create(a_task())
    end(rows)
    assert reconcile_at() is None
    assert due(rows) == []


ENDED_FOR_IT: Final[dict[str, tuple[Write, int]]] = {
    "cancel": (lambda rows: rows.cancel(ID, NOW + 5, "alice"), NOW + 5),
    "refused": (lambda rows: rows.fail(ID, ERROR, NOW + 5, may_run=True), NOW + 5),
    "expired": (lambda rows: rows.expire(ID, ERROR, NOW + HOUR), NOW + HOUR),
}


@pytest.mark.parametrize(("end", "now"), ENDED_FOR_IT.values(), ids=ENDED_FOR_IT)
def test_a_task_that_was_ended_is_looked_after_until_its_execution_is_over(
    rows: TaskTable, end: Write, now: int
) -> None:
    """Whoever ended it may die before it is stopped; and a start may be in flight."""
    rows.create(a_task())
    end(rows)
    assert reconcile_at() == now + STOP_AGAIN_MS


# claim


@pytest.fixture(params=[4, 3])
def version(request: pytest.FixtureRequest, rows: TaskTable) -> int:
    """The version of the row that there is."""
    if request.param == 4:
        rows.create(a_task())
    else:
        before.put(before.WORKING)
    found: int = request.param
    return found


def test_a_claim_puts_the_next_look_off(rows: TaskTable, version: int) -> None:
    task = peeked(rows)
    assert rows.reconcile_index.claim(task, LATER)
    assert reconcile_at() == task.next_reconcile_at(LATER) >= LATER + MIN_RECONCILE_INTERVAL_MS
    assert due(rows, LATER) == []


def test_one_of_two_claims_the_task(rows: TaskTable, version: int) -> None:
    """Two sweeps, or a sweep and a poll."""
    one, other = peeked(rows), peeked(rows)
    assert rows.reconcile_index.claim(one, LATER)
    found = reconcile_at()
    assert not rows.reconcile_index.claim(other, LATER + 1)
    assert reconcile_at() == found


def test_a_claim_is_no_news_to_the_client(rows: TaskTable, version: int) -> None:
    seen = peeked(rows)
    rows.reconcile_index.claim(seen, LATER)
    task = peeked(rows)
    assert (task.revision, task.last_updated_at) == (seen.revision, seen.last_updated_at)


def test_a_claim_does_not_put_off_what_is_due_sooner(rows: TaskTable) -> None:
    """An answer that was stored between read and claim is to be looked after soon."""
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    seen = peeked(rows)
    answer(rows)
    found = reconcile_at()
    assert not rows.reconcile_index.claim(seen, LATER)
    assert reconcile_at() == found


ALL_ENDS: Final = ENDED_BY_ITSELF | {"cancel": ENDED_FOR_IT["cancel"][0]}


@pytest.mark.parametrize("end", ALL_ENDS.values(), ids=ALL_ENDS)
def test_a_claim_brings_back_no_task_that_is_over(rows: TaskTable, end: Write) -> None:
    """Its end was heard between read and claim."""
    rows.create(a_task())
    seen = peeked(rows)
    end(rows)
    found = raw_rows()
    assert not rows.reconcile_index.claim(seen, LATER)
    assert raw_rows() == found


def test_a_claim_of_version_3_brings_back_nothing(rows: TaskTable) -> None:
    """A function of the version before ended it, and knows of no index."""
    before.put(before.WORKING)
    seen = peeked(rows)
    before.put(before.COMPLETED)
    assert not rows.reconcile_index.claim(seen, LATER)
    assert raw_rows() == [before.COMPLETED]


def test_a_claim_never_makes_a_row(rows: TaskTable, version: int) -> None:
    """DynamoDB removed it since it was read."""
    seen = peeked(rows)
    real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": ID}})
    assert not rows.reconcile_index.claim(seen, LATER)
    assert raw_rows() == []


def test_a_task_that_expired_is_claimed_like_any_other(rows: TaskTable) -> None:
    rows.create(a_task())
    assert rows.reconcile_index.claim(peeked(rows), NOW + 2 * HOUR)


# settled


def test_a_task_that_is_settled_leaves_the_index(rows: TaskTable) -> None:
    rows.create(a_task())
    rows.cancel(ID, NOW + 5, "alice")
    seen = peeked(rows)
    rows.reconcile_index.remove(ID)
    assert reconcile_at() is None
    task = peeked(rows)
    assert (task.revision, task.last_updated_at) == (seen.revision, seen.last_updated_at)


def test_only_a_task_that_is_over_is_settled(rows: TaskTable) -> None:
    rows.create(a_task())
    found = raw_rows()
    rows.reconcile_index.remove(ID)
    assert raw_rows() == found


def test_a_task_that_is_gone_is_not_settled(rows: TaskTable) -> None:
    rows.reconcile_index.remove(ID)
    assert raw_rows() == []


# rows of version 3

TOUCHING: Final[dict[str, Write]] = {
    "ask": lambda rows: rows.ask(ID, an_ask("another"), NOW + 9),
}


@pytest.mark.parametrize("row", [before.WORKING, before.ASKING], ids=["working", "asking"])
@pytest.mark.parametrize("write", TOUCHING.values(), ids=TOUCHING)
def test_a_row_of_version_3_comes_into_the_index_by_its_first_write(
    rows: TaskTable, write: Write, row: dict[str, Any]
) -> None:
    before.put(row)
    assert due(rows) == []
    write(rows)
    assert reconcile_at() == NOW + 9 + FIRST_RECONCILE_MS
    assert due(rows) == [ID]


def test_a_question_of_version_3_is_answered(rows: TaskTable) -> None:
    before.put(before.ASKING)
    answer(rows)
    task = peeked(rows)
    assert [ask.token for ask in task.undelivered] == [before.TOKEN]
    assert reconcile_at() == NOW + 600_000 + FIRST_RECONCILE_MS
    rows.mark_delivered(ID, before.ASK, NOW + 600_001)
    assert peeked(rows).asks == {}


@pytest.mark.parametrize("end", ENDED_BY_ITSELF.values(), ids=ENDED_BY_ITSELF)
def test_a_row_of_version_3_ends(rows: TaskTable, end: Write) -> None:
    before.put(before.ASKING)
    end(rows)
    assert peeked(rows).status.terminal
    assert reconcile_at() is None


def test_a_row_of_version_3_that_is_over_is_left_alone(rows: TaskTable) -> None:
    before.put(before.COMPLETED)
    rows.reconcile_index.remove(ID)
    assert raw_rows() == [before.COMPLETED]


# put_off


def test_a_row_is_put_off_without_being_read(rows: TaskTable, aws: Calls) -> None:
    rows.create(a_task())
    (row,) = raw_rows()
    aws.forget()
    rows.reconcile_index.postpone(ScheduledTask(ID, DUE), LATER)
    assert aws.operations == ["update_item"]
    assert raw_rows() == [row | {"reconcileAt": {"N": str(LATER + MAX_RECONCILE_INTERVAL_MS)}}]


@pytest.mark.parametrize("meanwhile", ["looked at", "ended", "removed"])
def test_a_row_that_others_could_read_is_not_put_off(rows: TaskTable, meanwhile: str) -> None:
    rows.create(a_task())
    if meanwhile == "looked at":
        assert rows.reconcile_index.claim(peeked(rows), LATER)
    elif meanwhile == "ended":
        rows.complete(ID, RESULT, LATER)
    else:
        real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": ID}})
    left = raw_rows()
    rows.reconcile_index.postpone(ScheduledTask(ID, DUE), LATER)
    assert raw_rows() == left


# faults

CALLS: Final[dict[str, tuple[str, Write]]] = {
    "tasks_to_reconcile": (
        "query",
        lambda rows: list(rows.reconcile_index.tasks_to_reconcile("0", NOW, 1)),
    ),
    "find": ("get_item", lambda rows: rows.find(ID)),
    "claim": ("update_item", lambda rows: rows.reconcile_index.claim(a_task(), LATER)),
    "postpone": (
        "update_item",
        lambda rows: rows.reconcile_index.postpone(ScheduledTask(ID, DUE), LATER),
    ),
    "remove": ("update_item", lambda rows: rows.reconcile_index.remove(ID)),
}


@pytest.mark.parametrize(("operation", "call"), CALLS.values(), ids=CALLS)
def test_a_fault_is_not_taken_for_a_condition(
    rows: TaskTable, aws: Calls, operation: str, call: Write
) -> None:
    aws.instead[operation] = refusing("dynamodb", "ProvisionedThroughputExceededException")
    with pytest.raises(ClientError, match="ProvisionedThroughput"):
        call(rows)
