"""Tasks as rows of a table, against moto's DynamoDB, whose conditional writes are real.

tests/campaigns/conditions/table.py names, for each condition of each write, the test here that
fails without it. These fail when something else is removed:

    create     another's createdAt, input    test_an_id_that_is_anothers_is_not_taken
    get        ConsistentRead                test_a_read_is_strongly_consistent
    get        not expired                   test_an_expired_task_does_not_exist
    get        principal                     test_a_task_exists_for_its_principal_only
    get_many   ConsistentRead                test_many_tasks_are_read_consistently_in_one_call
    get_many   not expired, principal        test_what_one_may_not_see_is_left_out_of_many
    are_open   ConsistentRead                test_whether_tasks_are_open_is_read_consistently
    both       UnprocessedKeys               test_rows_that_were_left_out_are_asked_for_again
    every      revision + 1                  test_each_write_that_clients_see_is_a_revision
    refusal    expired                       test_nothing_is_written_to_an_expired_task
    refusal    principal                     test_only_its_principal_cancels_a_task
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_tasks.payloads.pointer import PayloadPointer
from mcp_tasks.tasks.batch_read import MAX_READ_ATTEMPTS
from mcp_tasks.tasks.errors import Busy, ClientCannotAnswer, Conflict, TaskEnded, UnknownTask
from mcp_tasks.tasks.questions import (
    Ask,
    FormQuestion,
    Kind,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    open_ask,
)
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_item import ITEM_KEPT_MS, revision_of
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import TABLE, Calls, raw_rows, real, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

TERMINAL: Final = [Status.COMPLETED, Status.FAILED, Status.CANCELLED]
FORM: Final = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
YES: Final = {"action": "accept", "content": {"sure": True}}
NO: Final = {"action": "decline"}
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}
ERROR: Final = {"code": -32603, "message": "broken"}


QUESTIONS: Final[dict[Kind, Question]] = {
    Kind.FORM: FormQuestion("Sure?", FORM),
    Kind.URL: UrlQuestion("Pay there", "https://pay.example/1"),
    Kind.SAMPLING: SamplingQuestion({"messages": [{"role": "user"}], "maxTokens": 9}),
    Kind.ROOTS: RootsQuestion(),
}


def an_ask(token: str = "token", *names: str) -> Ask:
    """An ask of a form for each name."""
    return open_ask(token, {name: FormQuestion(f"{name}?", FORM) for name in names or ("sure",)})


def key_of(ask: Ask, name: str = "sure") -> str:
    """The wire key of a question."""
    return next(key for key, own in ask.names.items() if own == name)


def end(rows: TaskTable, status: Status, now: int = NOW + 1) -> None:
    """End the task."""
    match status:
        case Status.COMPLETED:
            rows.complete(ID, RESULT, now)
        case Status.FAILED:
            rows.fail(ID, ERROR, now)
        case _:
            rows.cancel(ID, now, "alice")


WRITES: Final[dict[str, Callable[[TaskTable, Task, int], object]]] = {
    "report": lambda rows, task, now: rows.report(ID, "late", now),
    "ask": lambda rows, task, now: rows.ask(ID, an_ask("another"), now),
    "answer": lambda rows, task, now: rows.answer(
        task, {ask.id: {key_of(ask): YES} for ask in task.asks.values()}, now
    ),
    "close_ask": lambda rows, task, now: rows.close_ask(task, an_ask().id, now),
    "mark_delivered": lambda rows, task, now: rows.mark_delivered(ID, an_ask().id, now),
    "store_tool_error": lambda rows, task, now: rows.store_tool_error(ID, "late", now),
    "set_undo": lambda rows, task, now: rows.set_undo(ID, True, now),
    "start_successor": lambda rows, task, now: rows.start_successor(task, now),
    "complete": lambda rows, task, now: rows.complete(ID, RESULT, now),
    "fail": lambda rows, task, now: rows.fail(ID, ERROR, now),
    "cancel": lambda rows, task, now: rows.cancel(ID, now, "alice"),
}
"""Every write to a task that exists, as one who read the task `task` earlier attempts it."""

each_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


# create and get


def test_a_task_is_read_back_as_it_was_created(rows: TaskTable) -> None:
    task = a_task()
    rows.create(task)
    assert rows.get(ID, NOW, "alice") == task


def test_a_create_that_is_repeated_resets_nothing(rows: TaskTable) -> None:
    """botocore repeats a write whose answer was lost; by then the task may run, and report."""
    rows.create(a_task())
    rows.report(ID, "half-way", NOW + 1)
    before = raw_rows()
    rows.create(a_task())
    assert raw_rows() == before


@pytest.mark.parametrize(
    "other",
    [{"created_at": NOW + 1}, {"input": '{"upto":4}'}, {"client_context": {"requestId": "2"}}],
)
def test_an_id_that_is_anothers_is_not_taken(rows: TaskTable, other: dict[str, Any]) -> None:
    rows.create(a_task())
    before = raw_rows()
    with pytest.raises(Conflict) as caught:
        rows.create(a_task(**other))
    assert caught.value.task == rows.get(ID, NOW)
    assert raw_rows() == before


def test_a_create_that_dynamodb_refuses_for_another_reason_is_an_error(
    rows: TaskTable, aws: Calls
) -> None:
    aws.instead["put_item"] = refusing("dynamodb", "ProvisionedThroughputExceededException")
    with pytest.raises(ClientError, match="ProvisionedThroughput"):
        rows.create(a_task())


def test_a_task_is_deleted_when_it_has_ended(rows: TaskTable) -> None:
    rows.create(a_task())
    assert not rows.discard(ID, NOW)
    assert rows.get(ID, NOW).status is Status.WORKING
    rows.complete(ID, RESULT, NOW)
    assert rows.discard(ID, NOW)
    with pytest.raises(UnknownTask):
        rows.get(ID, NOW - HOUR)  # by a clock that is behind
    (left,) = [row for row in [rows.find(ID)] if row]
    assert (left.result, left.input) == (None, None)
    (item,) = raw_rows()
    assert int(item["expiresAt"]["N"]) == (NOW + ITEM_KEPT_MS) // 1000
    assert not rows.discard("c1-none", NOW)


def test_a_read_is_strongly_consistent(rows: TaskTable, aws: Calls) -> None:
    """tasks.md, "Task Creation": a task must be readable once its creator was told of it."""
    rows.create(a_task())
    aws.forget()
    rows.get(ID, NOW)
    (call,) = aws.made
    assert call.operation == "get_item"
    assert call.arguments["ConsistentRead"] is True


def test_an_expired_task_does_not_exist(rows: TaskTable) -> None:
    """DynamoDB deletes expired rows hours or days late."""
    rows.create(a_task())
    assert rows.get(ID, NOW + HOUR - 1).task_id == ID
    with pytest.raises(UnknownTask):
        rows.get(ID, NOW + HOUR)


def test_a_task_exists_for_its_principal_only(rows: TaskTable) -> None:
    rows.create(a_task())
    assert rows.get(ID, NOW, "alice").principal == "alice"
    with pytest.raises(UnknownTask):
        rows.get(ID, NOW, "mallory")


def test_the_server_itself_reads_every_task(rows: TaskTable) -> None:
    rows.create(a_task())
    assert rows.get(ID, NOW).principal == "alice"


# what holds for every write


@each_write
@pytest.mark.parametrize("ended", TERMINAL)
def test_a_terminal_task_never_changes(
    rows: TaskTable, ended: Status, write: Callable[[TaskTable, Task, int], object]
) -> None:
    """tasks.md, "Task Status": completed, failed and cancelled are final.

    The asks are put back into the row, so that its status alone protects it.
    """
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    seen = rows.get(ID, NOW)
    (asking,) = raw_rows()
    end(rows, ended)
    (row,) = raw_rows()
    real("dynamodb").put_item(TableName=TABLE, Item={**row, "asks": asking["asks"]})
    before = raw_rows()

    if write is WRITES["mark_delivered"]:
        write(rows, seen, NOW + 2)
    else:
        with pytest.raises(TaskEnded) as caught:
            write(rows, seen, NOW + 2)
        assert caught.value.task.status is ended
    assert raw_rows() == before


@each_write
def test_nothing_is_written_to_an_expired_task(
    rows: TaskTable, write: Callable[[TaskTable, Task, int], object]
) -> None:
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    seen = rows.get(ID, NOW)
    before = raw_rows()

    if write is WRITES["mark_delivered"]:
        write(rows, seen, NOW + HOUR)
    else:
        with pytest.raises(UnknownTask):
            write(rows, seen, NOW + HOUR)
    assert raw_rows() == before


@each_write
def test_a_task_lives_to_its_last_millisecond(
    rows: TaskTable, write: Callable[[TaskTable, Task, int], object]
) -> None:
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    seen = rows.get(ID, NOW)
    before = raw_rows()
    write(rows, seen, NOW + HOUR - 1)
    assert raw_rows() != before


@each_write
def test_a_write_never_makes_a_row(
    rows: TaskTable, write: Callable[[TaskTable, Task, int], object]
) -> None:
    """UpdateItem would create the item; a deleted task must not come back as a fragment."""
    ask = an_ask()
    gone = a_task(status=Status.INPUT_REQUIRED, asks={ask.id: ask}, input_revision=1)
    with suppress(UnknownTask):
        write(rows, gone, NOW)
        assert write is WRITES["mark_delivered"], "raises UnknownTask"
    assert raw_rows() == []


@each_write
def test_an_error_of_dynamodb_is_not_taken_for_a_refusal(
    rows: TaskTable, aws: Calls, write: Callable[[TaskTable, Task, int], object]
) -> None:
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    seen = rows.get(ID, NOW)
    aws.instead["update_item"] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(ClientError, match="InternalServerError"):
        write(rows, seen, NOW + 1)


@each_write
def test_a_write_is_one_call_and_a_refusal_needs_no_second(
    rows: TaskTable, aws: Calls, write: Callable[[TaskTable, Task, int], object]
) -> None:
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    seen = rows.get(ID, NOW)
    end(rows, Status.COMPLETED)
    aws.forget()
    with suppress(TaskEnded):
        write(rows, seen, NOW + 2)
    assert aws.operations == ["update_item"]


# many at once


def other(n: int) -> str:
    """The id of another task."""
    return f"c1-{n:032x}"


def test_many_tasks_are_read_consistently_in_one_call(rows: TaskTable, aws: Calls) -> None:
    """Up to a hundred (DynamoDB API reference, "BatchGetItem").

    Race: a listen subscribes and then reads; a read that lags would miss the change between.
    """
    tasks = {other(n): a_task(task_id=other(n), input=str(n)) for n in range(100)}
    for task in tasks.values():
        rows.create(task)
    aws.forget()
    assert rows.get_many(tasks, NOW, "alice") == tasks
    (call,) = aws.made
    assert call.operation == "batch_get_item"
    assert call.arguments["RequestItems"][TABLE]["ConsistentRead"] is True


def test_what_one_may_not_see_is_left_out_of_many(rows: TaskTable) -> None:
    """Somebody else's, expired and unknown tasks: all are as if they were not there."""
    rows.create(a_task())
    rows.create(a_task(task_id=other(1), principal="mallory"))
    rows.create(a_task(task_id=other(2), ttl_ms=5))
    wanted = [ID, *map(other, range(1, 4))]
    assert list(rows.get_many(wanted, NOW + 5, "alice")) == [ID]
    assert set(rows.get_many(wanted, NOW + 4, "alice")) == {ID, other(2)}
    assert list(rows.get_many(wanted, NOW + HOUR, "alice")) == []


def test_nothing_is_read_for_nothing(rows: TaskTable, aws: Calls) -> None:
    """DynamoDB refuses an empty batch."""
    aws.forget()
    assert rows.get_many([], NOW, "alice") == {}
    assert aws.operations == []


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before a repeated read, in seconds; nobody waits."""
    taken: list[float] = []
    monkeypatch.setattr("mcp_tasks.tasks.batch_read.time.sleep", taken.append)
    return taken


def giving(at_most: int) -> Callable[..., Any]:
    """DynamoDB that has no room for more than some rows of a batch."""

    def read(RequestItems: dict[str, Any]) -> dict[str, Any]:
        request = RequestItems[TABLE]
        given, left = request["Keys"][:at_most], request["Keys"][at_most:]
        answer: dict[str, Any] = {"Responses": {}, "UnprocessedKeys": {}}
        if given:
            answer = real("dynamodb").batch_get_item(
                RequestItems={TABLE: {**request, "Keys": given}}
            )
        if left:
            answer["UnprocessedKeys"] = {TABLE: {**request, "Keys": left}}
        return answer

    return read


MANY: Final[dict[str, Callable[[TaskTable, Iterable[str]], Collection[str]]]] = {
    "get_many": lambda rows, task_ids: rows.get_many(task_ids, NOW, "alice"),
    "are_open": lambda rows, task_ids: rows.are_open(task_ids, NOW),
}

each_read = pytest.mark.parametrize("read", MANY.values(), ids=MANY)


@each_read
def test_rows_that_were_left_out_are_asked_for_again(
    rows: TaskTable,
    aws: Calls,
    naps: list[float],
    read: Callable[[TaskTable, Iterable[str]], Collection[str]],
) -> None:
    """An answer holds 16 MB at most; the rest is in UnprocessedKeys."""
    tasks = {other(n): a_task(task_id=other(n)) for n in range(10)}
    for task in tasks.values():
        rows.create(task)
    aws.instead["batch_get_item"] = giving(at_most=4)
    aws.forget()
    assert set(read(rows, tasks)) == set(tasks)
    first, *more = asked = [call.arguments["RequestItems"][TABLE] for call in aws.made]
    assert [len(request["Keys"]) for request in asked] == [10, 6, 2]
    assert all({**request, "Keys": ...} == {**first, "Keys": ...} for request in more)
    assert first["ConsistentRead"] is True
    assert naps == sorted(naps)


@each_read
def test_after_enough_attempts_to_read_dynamodb_is_busy(
    rows: TaskTable,
    aws: Calls,
    naps: list[float],
    read: Callable[[TaskTable, Iterable[str]], Collection[str]],
) -> None:
    """Or a task would seem to have expired that is there."""
    rows.create(a_task())
    aws.instead["batch_get_item"] = giving(at_most=0)
    aws.forget()
    with pytest.raises(Busy):
        read(rows, [ID])
    assert len(aws.made) == MAX_READ_ATTEMPTS
    assert naps[0] == 0
    assert all(later > nap for nap, later in pairwise(naps))


def test_whether_tasks_are_open_is_read_consistently(rows: TaskTable, aws: Calls) -> None:
    """Of all principals, and without what is large in a row.

    Race: a place is taken, and its task written; a read that lags would give the place back.
    """
    rows.create(a_task())
    rows.create(a_task(task_id=other(1), principal="bob", status=Status.INPUT_REQUIRED))
    aws.forget()
    assert rows.are_open([ID, other(1), other(2)], NOW) == {ID: True, other(1): True}
    (call,) = aws.made
    assert call.operation == "batch_get_item"
    request = call.arguments["RequestItems"][TABLE]
    assert request["ConsistentRead"] is True
    assert "result" not in request["ExpressionAttributeNames"].values()
    rows.complete(ID, RESULT, NOW)
    assert rows.are_open([ID, other(1)], NOW) == {ID: False, other(1): True}


# report


@pytest.mark.parametrize("status", [Status.WORKING, Status.INPUT_REQUIRED])
def test_a_report_sets_the_message(rows: TaskTable, status: Status) -> None:
    rows.create(a_task())
    if status is Status.INPUT_REQUIRED:
        rows.ask(ID, an_ask(), NOW)
    rows.report(ID, "half-way", NOW + 5)
    task = rows.get(ID, NOW + 5)
    assert (task.status, task.status_message) == (status, "half-way")
    assert task.last_updated_at == NOW + 5


def test_a_report_does_not_disturb_an_answer_under_way(rows: TaskTable) -> None:
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    seen = rows.get(ID, NOW)
    rows.report(ID, "still here", NOW + 1)
    assert rows.answer(seen, {ask.id: {key_of(ask): YES}}, NOW + 2).status is Status.WORKING


# ask


def test_an_ask_waits_for_the_client(rows: TaskTable) -> None:
    ask = an_ask("token", "first", "second")
    rows.create(a_task())
    rows.ask(ID, ask, NOW + 5)
    task = rows.get(ID, NOW + 5)
    assert task.status is Status.INPUT_REQUIRED
    assert task.asks == {ask.id: ask}
    assert task.outstanding == ask.questions
    assert task.last_updated_at == NOW + 5


def test_parallel_branches_ask_at_once(rows: TaskTable) -> None:
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    rows.ask(ID, second, NOW + 1)
    task = rows.get(ID, NOW + 1)
    assert task.asks == {first.id: first, second.id: second}
    assert set(task.outstanding) == {key_of(first), key_of(second)}


@pytest.mark.parametrize("kind", Kind)
def test_a_client_is_asked_for_what_it_declared(rows: TaskTable, kind: Kind) -> None:
    rows.create(a_task(accepts=frozenset({kind})))
    rows.ask(ID, open_ask("token", {"it": QUESTIONS[kind]}), NOW + 1)
    assert list(rows.get(ID, NOW + 1).outstanding.values()) == [QUESTIONS[kind]]


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("others", [False, True])
def test_a_client_is_asked_for_nothing_else(rows: TaskTable, kind: Kind, others: bool) -> None:
    """mrtr.mdx, "Server Requirements": nor for one such thing among others that it did declare."""
    rows.create(a_task(accepts=frozenset(Kind) - {kind}))
    before = raw_rows()
    asked = {str(k): q for k, q in QUESTIONS.items() if others or k is kind}
    with pytest.raises(ClientCannotAnswer):
        rows.ask(ID, open_ask("token", asked), NOW + 1)
    assert raw_rows() == before


def test_an_ask_delivered_twice_keeps_its_answers(rows: TaskTable) -> None:
    """Lambda and Step Functions deliver at least once; the first may be half answered by then."""
    ask = an_ask("token", "first", "second")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask, "first"): YES}}, NOW + 1)
    before = raw_rows()
    rows.ask(ID, ask, NOW + 2)
    assert raw_rows() == before
    assert rows.get(ID, NOW).asks[ask.id].answers == {key_of(ask, "first"): YES}


def test_a_delivered_ask_is_not_opened_again(rows: TaskTable) -> None:
    """tasks.md, "Task Update Requests": a key is never reused after its answer was delivered."""
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask): YES}}, NOW + 1)
    rows.mark_delivered(ID, ask.id, NOW + 2)
    before = raw_rows()
    rows.ask(ID, ask, NOW + 3)
    assert raw_rows() == before
    assert rows.get(ID, NOW + 3).status is Status.WORKING


def test_a_name_may_be_any_text(rows: TaskTable) -> None:
    """Names end up in attribute paths, where dots and reserved words mean something else."""
    names = ("a.b", "status", "#x", ":y", "ключ", "with space", "[0]")
    ask = an_ask("token", *names)
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    answered = rows.answer(
        rows.get(ID, NOW), {ask.id: {key_of(ask, name): YES for name in names}}, NOW
    )
    assert answered.status is Status.WORKING
    assert answered.asks[ask.id].output() == dict.fromkeys(names, YES)


# answer


def test_the_last_answer_sets_the_task_to_work(rows: TaskTable) -> None:
    ask = an_ask("token", "first", "second")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    partly = rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask, "first"): YES}}, NOW + 1)
    assert partly.status is Status.INPUT_REQUIRED
    assert set(partly.outstanding) == {key_of(ask, "second")}

    fully = rows.answer(partly, {ask.id: {key_of(ask, "second"): NO}}, NOW + 2)
    assert fully.status is Status.WORKING
    assert fully.asks[ask.id].output() == {"first": YES, "second": NO}
    assert fully == rows.get(ID, NOW + 2)


def test_answers_to_several_asks_are_one_write(rows: TaskTable, aws: Calls) -> None:
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    rows.ask(ID, second, NOW)
    seen = rows.get(ID, NOW)
    aws.forget()
    answered = rows.answer(
        seen, {first.id: {key_of(first): YES}, second.id: {key_of(second): NO}}, NOW + 1
    )
    assert answered.status is Status.WORKING
    assert aws.operations == ["update_item"]


def test_answering_one_of_two_asks_leaves_the_other_open(rows: TaskTable) -> None:
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    rows.ask(ID, second, NOW)
    answered = rows.answer(rows.get(ID, NOW), {first.id: {key_of(first): YES}}, NOW + 1)
    assert answered.status is Status.INPUT_REQUIRED
    assert set(answered.outstanding) == {key_of(second)}


def test_two_clients_answer_different_keys_at_once(rows: TaskTable) -> None:
    """Each believes the other's key to be open; unchecked, the task would wait for nothing."""
    ask = an_ask("token", "first", "second")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    one, other = rows.get(ID, NOW), rows.get(ID, NOW)
    rows.answer(one, {ask.id: {key_of(ask, "first"): YES}}, NOW + 1)
    with pytest.raises(Conflict) as caught:
        rows.answer(other, {ask.id: {key_of(ask, "second"): YES}}, NOW + 1)
    assert set(caught.value.task.outstanding) == {key_of(ask, "second")}
    again = rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask, "second"): YES}}, NOW + 2)
    assert again.status is Status.WORKING


def test_two_clients_answer_the_same_key_at_once(rows: TaskTable) -> None:
    """The first answer stands: the waiting state may have it already."""
    ask = an_ask("token", "first", "second")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    one, other = rows.get(ID, NOW), rows.get(ID, NOW)
    rows.answer(one, {ask.id: {key_of(ask, "first"): YES}}, NOW + 1)
    with pytest.raises(Conflict):
        rows.answer(other, {ask.id: {key_of(ask, "first"): NO}}, NOW + 1)
    assert rows.get(ID, NOW).asks[ask.id].answers == {key_of(ask, "first"): YES}


def test_a_question_asked_between_read_and_answer(rows: TaskTable) -> None:
    """Unchecked, the task would work on with a question open that nobody sees."""
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    seen = rows.get(ID, NOW)
    rows.ask(ID, second, NOW + 1)
    with pytest.raises(Conflict):
        rows.answer(seen, {first.id: {key_of(first): YES}}, NOW + 2)
    assert rows.get(ID, NOW).status is Status.INPUT_REQUIRED
    assert len(rows.get(ID, NOW).outstanding) == 2


def test_only_its_principal_answers_a_task(rows: TaskTable) -> None:
    """The row says whose the task is, whatever the code before the write believes."""
    ask = an_ask()
    answers = {ask.id: {key_of(ask): YES}}
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    seen, before = rows.get(ID, NOW), raw_rows()
    with pytest.raises(UnknownTask):
        rows.answer(replace(seen, principal="mallory"), answers, NOW + 1)
    assert raw_rows() == before
    rows.complete(ID, RESULT, NOW + 1)
    with pytest.raises(UnknownTask):
        rows.answer(replace(seen, principal="mallory"), answers, NOW + 2)


# close


def test_a_question_that_nothing_waits_for_any_more_is_closed(rows: TaskTable) -> None:
    """The state ran over its time, and the workflow went on without the answer."""
    ask = an_ask("a secret token")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    closed = rows.close_ask(rows.get(ID, NOW), ask.id, NOW + 1)
    assert closed == rows.get(ID, NOW + 1)
    assert (closed.status, closed.asks, closed.last_updated_at) == (Status.WORKING, {}, NOW + 1)
    (row,) = raw_rows()
    assert row["asks"] == {"M": {ask.id: {"M": {"delivered": {"BOOL": True}}}}}
    assert "secret" not in str(row)


def test_closing_one_of_two_asks_leaves_the_other_open(rows: TaskTable) -> None:
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    rows.ask(ID, second, NOW)
    closed = rows.close_ask(rows.get(ID, NOW), first.id, NOW + 1)
    assert (closed.status, closed.asks) == (Status.INPUT_REQUIRED, {second.id: second})
    assert rows.close_ask(closed, second.id, NOW + 2).status is Status.WORKING


def test_a_closed_ask_is_not_opened_again(rows: TaskTable) -> None:
    """Step Functions or Lambda delivers it a second time, late."""
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    rows.close_ask(rows.get(ID, NOW), ask.id, NOW + 1)
    rows.ask(ID, ask, NOW + 2)
    assert rows.get(ID, NOW + 2).status is Status.WORKING


def test_an_answer_that_comes_before_the_close_stands(rows: TaskTable) -> None:
    """Its token may be used at this moment: what was accepted is not thrown away."""
    ask = an_ask("token", "first", "second")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    seen = rows.get(ID, NOW)
    rows.answer(seen, {ask.id: {key_of(ask, "first"): YES}}, NOW + 1)
    before = raw_rows()
    with pytest.raises(Conflict):
        rows.close_ask(seen, ask.id, NOW + 2)
    assert raw_rows() == before


def test_a_question_asked_between_read_and_close(rows: TaskTable) -> None:
    """Unchecked, the task would work on with a question open that nobody sees."""
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    seen = rows.get(ID, NOW)
    rows.ask(ID, second, NOW + 1)
    with pytest.raises(Conflict):
        rows.close_ask(seen, first.id, NOW + 2)
    assert rows.get(ID, NOW).status is Status.INPUT_REQUIRED


def test_what_works_has_nothing_to_close(rows: TaskTable) -> None:
    """The ask was answered, and its revision is what the one who closes believes it to be."""
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask): YES}}, NOW + 1)
    with pytest.raises(Conflict):
        rows.close_ask(rows.get(ID, NOW), ask.id, NOW + 2)
    assert rows.get(ID, NOW).asks[ask.id].answers == {key_of(ask): YES}


# delivered


def test_a_delivered_ask_leaves_a_tombstone_only(rows: TaskTable) -> None:
    """Neither the token nor what the user wrote stays in the table."""
    ask = an_ask("a secret token")
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    answer = {"action": "accept", "content": {"sure": True, "note": "a private note"}}
    rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask): answer}}, NOW + 1)
    rows.mark_delivered(ID, ask.id, NOW + 2)
    (row,) = raw_rows()
    assert row["asks"] == {"M": {ask.id: {"M": {"delivered": {"BOOL": True}}}}}
    assert "secret" not in str(row)
    assert "private" not in str(row)
    assert rows.get(ID, NOW + 2).asks == {}


def test_an_ask_is_delivered_while_another_waits(rows: TaskTable) -> None:
    first, second = an_ask("token 1"), an_ask("token 2")
    rows.create(a_task())
    rows.ask(ID, first, NOW)
    rows.ask(ID, second, NOW)
    rows.answer(rows.get(ID, NOW), {first.id: {key_of(first): YES}}, NOW + 1)
    rows.mark_delivered(ID, first.id, NOW + 2)
    task = rows.get(ID, NOW + 2)
    assert task.status is Status.INPUT_REQUIRED
    assert task.asks == {second.id: second}


def test_an_ask_that_never_was_leaves_no_tombstone(rows: TaskTable) -> None:
    rows.create(a_task())
    before = raw_rows()
    rows.mark_delivered(ID, "0123456789ab", NOW + 1)
    assert raw_rows() == before


def test_a_delivery_is_no_news_to_the_client(rows: TaskTable) -> None:
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    rows.answer(rows.get(ID, NOW), {ask.id: {key_of(ask): YES}}, NOW + 1)
    before = rows.get(ID, NOW + 2)
    rows.mark_delivered(ID, ask.id, NOW + 2)
    after = rows.get(ID, NOW + 2)
    assert after.asks != before.asks
    assert (after.last_updated_at, after.revision) == (NOW + 1, before.revision)


# revisions


def test_each_write_that_clients_see_is_a_revision(rows: TaskTable) -> None:
    """What follows a task tells by it what is missing, so there may be no gaps."""
    ask = an_ask("token", "first", "second")
    first, second = key_of(ask, "first"), key_of(ask, "second")
    seen = []
    rows.create(a_task())
    writes: list[Callable[[], object]] = [
        lambda: rows.report(ID, "half-way", NOW),
        lambda: rows.ask(ID, ask, NOW),
        lambda: rows.report(ID, "still here", NOW),
        lambda: rows.answer(rows.get(ID, NOW), {ask.id: {first: YES}}, NOW),
        lambda: rows.answer(rows.get(ID, NOW), {ask.id: {second: YES}}, NOW),
        lambda: rows.complete(ID, RESULT, NOW),
    ]
    for write in [lambda: None, *writes]:
        write()
        seen.append(rows.get(ID, NOW).revision)
    assert seen == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("ended", TERMINAL)
def test_an_end_is_a_revision(rows: TaskTable, ended: Status) -> None:
    rows.create(a_task())
    end(rows, ended)
    assert rows.get(ID, NOW).revision == 2


def test_what_is_written_has_the_revision_that_is_returned(rows: TaskTable) -> None:
    rows.create(a_task())
    assert rows.cancel(ID, NOW + 1, "alice").revision == 2
    (row,) = raw_rows()
    assert revision_of(row) == 2


@each_write
def test_a_write_that_is_refused_is_no_revision(
    rows: TaskTable, write: Callable[[TaskTable, Task, int], object]
) -> None:
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW)
    seen = rows.get(ID, NOW)
    end(rows, Status.COMPLETED)
    with suppress(TaskEnded):
        write(rows, seen, NOW + 2)
    assert rows.get(ID, NOW).revision == 3


# clocks


@each_write
def test_times_do_not_go_back_when_clocks_differ(
    rows: TaskTable, write: Callable[[TaskTable, Task, int], object]
) -> None:
    """The writer before had a clock that is a second ahead; the next change comes after its own."""
    rows.create(a_task())
    rows.ask(ID, an_ask(), NOW + 1000)
    seen = rows.get(ID, NOW)
    write(rows, seen, NOW)
    assert rows.get(ID, NOW).last_updated_at == NOW + 1000


def test_an_earlier_clock_costs_one_more_call(rows: TaskTable, aws: Calls) -> None:
    rows.create(a_task())
    rows.report(ID, "ahead", NOW + 1000)
    aws.forget()
    rows.report(ID, "behind", NOW)
    assert aws.operations == ["update_item", "update_item"]
    assert rows.get(ID, NOW).status_message == "behind"


def test_an_earlier_clock_hides_no_other_reason(rows: TaskTable) -> None:
    """Questions that changed since they were read are a conflict, whatever the time is."""
    ask = an_ask()
    rows.create(a_task())
    rows.ask(ID, ask, NOW)
    seen = rows.get(ID, NOW)
    rows.ask(ID, an_ask("another"), NOW + 1000)
    with pytest.raises(Conflict):
        rows.answer(seen, {ask.id: {key_of(ask): YES}}, NOW)


# ends


@pytest.mark.parametrize("status", TERMINAL)
@pytest.mark.parametrize("asking", [False, True])
def test_a_task_ends_from_either_state(rows: TaskTable, status: Status, asking: bool) -> None:
    rows.create(a_task())
    if asking:
        rows.ask(ID, an_ask("a secret token"), NOW)
    end(rows, status, NOW + 5)
    task = rows.get(ID, NOW + 5)
    assert task.status is status
    assert task.last_updated_at == NOW + 5
    assert task.result == (RESULT if status is Status.COMPLETED else None)
    assert task.error == (ERROR if status is Status.FAILED else None)
    assert task.status_message == ("broken" if status is Status.FAILED else None)


@pytest.mark.parametrize("status", TERMINAL)
def test_a_task_that_ended_keeps_no_token_answer_or_argument(
    rows: TaskTable, status: Status
) -> None:
    rows.create(a_task(input='{"argument":"private"}'))
    rows.ask(ID, an_ask("a secret token"), NOW)
    end(rows, status)
    (row,) = raw_rows()
    assert "asks" not in row
    assert "input" not in row
    assert "secret" not in str(row)
    assert "private" not in str(row)


@pytest.mark.parametrize("status", TERMINAL)
def test_the_progress_of_a_task_goes_with_its_end(rows: TaskTable, status: Status) -> None:
    """ "half-way" would be a lie about a task that is over; a failure says why."""
    rows.create(a_task())
    rows.report(ID, "half-way", NOW)
    end(rows, status)
    message = "broken" if status is Status.FAILED else None
    assert rows.get(ID, NOW).status_message == message


def test_cancel_returns_the_task_as_it_was_written(rows: TaskTable) -> None:
    rows.create(a_task())
    task = rows.cancel(ID, NOW + 1, "alice")
    assert task == rows.get(ID, NOW + 1)
    assert task.status is Status.CANCELLED


def test_only_its_principal_cancels_a_task(rows: TaskTable) -> None:
    """To everybody else it does not exist, whether it works or has ended."""
    rows.create(a_task())
    before = raw_rows()
    with pytest.raises(UnknownTask):
        rows.cancel(ID, NOW + 1, "mallory")
    assert raw_rows() == before
    rows.complete(ID, RESULT, NOW + 1)
    with pytest.raises(UnknownTask):
        rows.cancel(ID, NOW + 2, "mallory")


def test_numbers_in_results_and_answers_survive(rows: TaskTable) -> None:
    """DynamoDB's own numbers would become Decimal, and refuse floats."""
    result = {"content": [], "structuredContent": {"half": 0.5, "big": 10**30, "nothing": None}}
    rows.create(a_task())
    rows.complete(ID, result, NOW)
    assert rows.get(ID, NOW).result == result


def test_a_large_result_is_elsewhere(rows: TaskTable) -> None:
    stored = PayloadPointer(f"count/{ID}/{'0' * 32}", 0, 5_000_000)
    rows.create(a_task())
    task = rows.complete(ID, stored, NOW + 1)
    assert task == rows.get(ID, NOW + 1)
    assert (task.status, task.result, task.result_payload) == (Status.COMPLETED, None, stored)


def test_a_result_larger_than_a_row_is_refused_by_dynamodb(rows: TaskTable) -> None:
    """400 KB an item: whoever completes a task keeps it elsewhere (see test_finish)."""
    rows.create(a_task())
    with pytest.raises(ClientError, match="ValidationException"):
        rows.complete(ID, {"content": [{"type": "text", "text": "x" * 450_000}]}, NOW)
    assert rows.get(ID, NOW).status is Status.WORKING


# expire


@pytest.mark.parametrize("asking", [False, True])
def test_a_task_whose_time_passed_is_ended(rows: TaskTable, asking: bool) -> None:
    """It is gone for its clients; what still runs for it is to be stopped."""
    rows.create(a_task(input='{"argument":"private"}'))
    if asking:
        rows.ask(ID, an_ask("a secret token"), NOW)
    task = rows.expire(ID, ERROR, NOW + HOUR)
    assert task == rows.find(ID)
    assert (task.status, task.error, task.status_message) == (
        Status.FAILED,
        ERROR,
        ERROR["message"],
    )
    assert "secret" not in str(raw_rows())
    assert "private" not in str(raw_rows())
    with pytest.raises(UnknownTask):
        rows.get(ID, NOW + HOUR)


def test_no_task_is_ended_before_its_time(rows: TaskTable) -> None:
    rows.create(a_task())
    before = raw_rows()
    with pytest.raises(Conflict):
        rows.expire(ID, ERROR, NOW + HOUR - 1)
    assert raw_rows() == before


@pytest.mark.parametrize("status", TERMINAL)
def test_an_end_that_came_before_the_expiry_stands(rows: TaskTable, status: Status) -> None:
    rows.create(a_task())
    end(rows, status)
    before = raw_rows()
    with pytest.raises(TaskEnded) as caught:
        rows.expire(ID, ERROR, NOW + HOUR)
    assert caught.value.task.status is status
    assert raw_rows() == before


def test_an_expiry_never_makes_a_row(rows: TaskTable) -> None:
    with pytest.raises(UnknownTask):
        rows.expire(ID, ERROR, NOW + HOUR)
    assert raw_rows() == []


# peek


def test_an_expired_task_is_seen_by_whoever_has_to_end_it(rows: TaskTable) -> None:
    rows.create(a_task())
    task = rows.find(ID)
    assert task == a_task()
    assert task is not None
    assert task.expired(NOW + HOUR)


def test_there_is_nothing_to_see_of_a_row_that_is_gone(rows: TaskTable) -> None:
    """The index still shows what DynamoDB removed a moment ago."""
    assert rows.find(ID) is None


def test_a_peek_is_strongly_consistent(rows: TaskTable, aws: Calls) -> None:
    """The rows have the say, and not the index, which lags."""
    rows.create(a_task())
    aws.forget()
    rows.find(ID)
    (call,) = aws.made
    assert (call.operation, call.arguments["ConsistentRead"]) == ("get_item", True)


# any order of events

OPERATIONS: Final[dict[str, Callable[[TaskTable, Task], object]]] = {
    "report": lambda rows, seen: rows.report(ID, "working", NOW),
    "ask 1": lambda rows, seen: rows.ask(ID, an_ask("token 1", "a", "b"), NOW),
    "ask 2": lambda rows, seen: rows.ask(ID, an_ask("token 2", "a"), NOW),
    "answer one": lambda rows, seen: _answer(rows, seen, 1),
    "answer all": lambda rows, seen: _answer(rows, seen, 9),
    "mark_delivered": lambda rows, seen: _deliver(rows),
    "close_ask": lambda rows, seen: _close(rows, seen),
    "complete": lambda rows, seen: rows.complete(ID, RESULT, NOW),
    "cancel": lambda rows, seen: rows.cancel(ID, NOW, "alice"),
    "redeliver": lambda rows, seen: _ask_again(rows, seen),
}


def _deliver(rows: TaskTable) -> None:
    for ask in rows.get(ID, NOW).asks.values():
        if not ask.outstanding:
            rows.mark_delivered(ID, ask.id, NOW)


def _close(rows: TaskTable, seen: Task) -> None:
    for ask in seen.asks.values():
        if ask.outstanding:
            rows.close_ask(seen, ask.id, NOW)


def _ask_again(rows: TaskTable, seen: Task) -> None:
    for ask in seen.asks.values():
        rows.ask(ID, ask, NOW)


def _answer(rows: TaskTable, seen: Task, at_most: int) -> None:
    chosen = list(seen.outstanding)[:at_most]
    answers = {
        ask.id: {key: YES for key in ask.outstanding if key in chosen} for ask in seen.asks.values()
    }
    answers = {ask_id: given for ask_id, given in answers.items() if given}
    if answers:
        rows.answer(seen, answers, NOW)


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 3)), max_size=12),
)
def test_whatever_happens_a_task_asks_exactly_while_something_is_open(
    rows: TaskTable, events: list[tuple[str, int]]
) -> None:
    """input_required if and only if a question is open; terminal for good; answered once.

    Every event acts on the task as it was up to three events ago, as concurrent handlers do.
    """
    real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": ID}})
    rows.create(a_task())
    history = [rows.get(ID, NOW)]
    answered: dict[str, dict[str, Any]] = {}
    for name, age in events:
        with suppress(TaskEnded, Conflict):
            OPERATIONS[name](rows, history[max(0, len(history) - 1 - age)])
        task, before = rows.get(ID, NOW), history[-1]
        if before.status.terminal:
            assert task == before
        elif not task.status.terminal:
            assert (task.status is Status.INPUT_REQUIRED) == bool(task.outstanding)
        assert task.status.terminal or task.reconcile_at is not None, "nobody would look after it"
        assert not answered.keys() & task.outstanding.keys(), "an answered key was asked again"
        for ask in task.asks.values():
            answered |= ask.answers
        history.append(task)
