"""Callers' quotas and rate limit, against moto's DynamoDB, whose conditional writes are real.

tests/campaigns/conditions/table.py names, for each condition of each write, the test here that
fails without it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.tasks.batch_read import MAX_BATCH_ROWS
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.errors import Busy
from mcp_tasks.tasks.quota_item import ITEM_KEPT_MS
from mcp_tasks.tasks.quotas import (
    MAX_ATTEMPTS,
    RECHECK_AFTER_MS,
    TASK_CREATION_MS,
    CallerQuotas,
    QuotaExceeded,
)
from mcp_tasks.tasks.rate_limit import RateLimit, RateLimited
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import CALLERS, TABLE, Calls, create_callers, real, refusing
from tests.unit.support.example_task import HOUR, NOW, a_task

MAX_OPEN: Final = 3
MINUTE: Final = 60_000
THREE: Final = RateLimit(3)


def task_id(n: int) -> str:
    """The id of a task."""
    return f"c1-{n:032x}"


class Callers:
    """Quotas, and the tasks that are counted."""

    def __init__(self, aws: Calls, rows: TaskTable) -> None:
        self.aws = aws
        self.rows = rows
        self.quotas = CallerQuotas(aws.client("dynamodb"), CALLERS)

    def take(
        self,
        n: int,
        max_open: int = MAX_OPEN,
        rate_limit: RateLimit | None = None,
        now: int = NOW,
        principal: str = "alice",
    ) -> None:
        """Acquire an entry for a task."""
        self.quotas.acquire_task(principal, task_id(n), self.rows, max_open, rate_limit, now)

    def open_task(self, n: int, max_open: int = MAX_OPEN, now: int = NOW, **changes: Any) -> None:
        """Acquire an entry for a task, and write the task."""
        self.take(n, max_open, now=now)
        times = {"created_at": now, "last_updated_at": now}
        self.rows.create(a_task(task_id=task_id(n), **{**times, **changes}))

    def other(self) -> Callers:
        """Another instance of the function, which nothing is noted of and nothing happens to."""
        return Callers(Calls(), TaskTable(real("dynamodb"), TABLE))

    def before(self, action: Callable[[], object], nth: int = 0, expression: str = "SET") -> None:
        """Let something happen just before the nth write of a kind arrives at DynamoDB."""
        writes = count()

        def update(**arguments: Any) -> Any:
            if arguments["UpdateExpression"].startswith(expression) and next(writes) == nth:
                action()
            return real("dynamodb").update_item(**arguments)

        self.aws.instead["update_item"] = update

    def item(self, kind: str = "tasks", principal: str = "alice") -> dict[str, Any] | None:
        """What the table holds of a caller."""
        item: dict[str, Any] | None = (
            real("dynamodb").get_item(TableName=CALLERS, Key=key(kind, principal)).get("Item")
        )
        return item

    def open(self, kind: str = "tasks", principal: str = "alice") -> set[str]:
        """The ids of the entries."""
        item = self.item(kind, principal)
        return set(item["open"]["M"]) if item else set()

    def tat(self) -> int:
        """When alice will have used up what she may create."""
        item = self.item()
        assert item is not None
        return int(item["tat"]["N"])

    def put(self, open_: dict[str, int], kind: str = "tasks", **more: int) -> None:
        """Replace what alice has open."""
        entries = {"M": {entry: {"N": str(value)} for entry, value in open_.items()}}
        numbers = {name: {"N": str(value)} for name, value in more.items()}
        item = {**key(kind, "alice"), "open": entries, **numbers}
        real("dynamodb").put_item(TableName=CALLERS, Item=item)

    def delete(self, kind: str = "tasks") -> None:
        """Remove alice's item, as its time-to-live does."""
        real("dynamodb").delete_item(TableName=CALLERS, Key=key(kind, "alice"))

    def reads(self) -> int:
        """How often the rows were read for ended tasks."""
        return self.aws.operations.count("batch_get_item")


def key(kind: str, principal: str) -> dict[str, Any]:
    return caller_key(kind, principal)


def ids(*numbers: int) -> set[str]:
    return set(map(task_id, numbers))


@pytest.fixture
def callers(aws: Calls, rows: TaskTable) -> Callers:
    create_callers()
    return Callers(aws, rows)


# how many


def test_no_more_tasks_than_the_quota(callers: Callers) -> None:
    for n in range(MAX_OPEN):
        callers.open_task(n)
    with pytest.raises(QuotaExceeded):
        callers.take(MAX_OPEN)
    assert callers.open() == ids(0, 1, 2)


def test_callers_do_not_share_a_quota(callers: Callers) -> None:
    callers.open_task(0, max_open=1)
    callers.take(1, max_open=1, principal="bob")
    assert callers.open() == ids(0)
    assert callers.open(principal="bob") == ids(1)


def test_two_add_the_last_entry_at_once(callers: Callers) -> None:
    """Each finds the quota not used up; one of them gets the last entry."""
    callers.open_task(0)
    callers.open_task(1)
    callers.before(lambda: callers.other().open_task(2))
    with pytest.raises(QuotaExceeded):
        callers.take(3)
    assert callers.open() == ids(0, 1, 2)


def test_two_add_a_callers_first_entry_at_once(callers: Callers) -> None:
    """Each finds that there is no item yet; the second must not overwrite the first's entry."""
    callers.before(lambda: callers.other().take(0, rate_limit=THREE), nth=1)
    callers.take(1, rate_limit=THREE)
    assert callers.open() == ids(0, 1)
    assert callers.tat() == NOW + 2 * THREE.interval_ms


def test_a_first_entry_is_two_writes_and_every_other_is_one(callers: Callers) -> None:
    callers.aws.forget()
    callers.take(0)
    assert callers.aws.operations == ["update_item"] * 2
    callers.aws.forget()
    callers.take(1)
    assert callers.aws.operations == ["update_item"]


@pytest.mark.parametrize(
    ("max_open", "rate_limit"),
    [(1, None), (MAX_OPEN, THREE), (1, RateLimit(1)), (0, RateLimit(1))],
    ids=str,
)
def test_an_entry_that_is_added_twice_is_one_entry(
    callers: Callers, max_open: int, rate_limit: RateLimit | None
) -> None:
    """botocore repeats a write whose answer was lost."""

    def twice(**arguments: Any) -> Any:
        real("dynamodb").update_item(**arguments)
        return real("dynamodb").update_item(**arguments)

    callers.aws.instead["update_item"] = twice
    callers.take(0, max_open, rate_limit)
    assert callers.open() == ids(0)
    assert rate_limit is None or callers.tat() == NOW + rate_limit.interval_ms


def test_without_limits_nothing_is_written(callers: Callers) -> None:
    callers.aws.forget()
    callers.take(0, max_open=0)
    assert callers.aws.made == []


def test_a_callers_first_entry_without_a_limit_of_tasks(callers: Callers) -> None:
    for n in range(3):
        callers.take(n, max_open=0, rate_limit=THREE)
    with pytest.raises(RateLimited):
        callers.take(3, max_open=0, rate_limit=THREE)
    assert callers.reads() == 0


def test_after_enough_attempts_others_were_always_faster(callers: Callers) -> None:
    """Whoever takes what becomes free at each attempt."""

    def refuse(**arguments: Any) -> Any:
        item = {**arguments["Key"], "open": {"M": {}}}
        answer: Any = {"Error": {"Code": "ConditionalCheckFailedException"}, "Item": item}
        raise ClientError(answer, "UpdateItem")

    callers.aws.instead["update_item"] = refuse
    callers.aws.forget()
    with pytest.raises(Busy):
        callers.take(0)
    assert callers.aws.operations == ["update_item"] * MAX_ATTEMPTS


def test_an_error_of_dynamodb_is_not_taken_for_a_refusal(callers: Callers) -> None:
    callers.aws.instead["update_item"] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(ClientError, match="InternalServerError"):
        callers.take(0)
    with pytest.raises(ClientError, match="InternalServerError"):
        callers.quotas.release_call("alice", "call")


def test_an_item_outlives_what_it_holds(callers: Callers) -> None:
    """The time-to-live attribute is in seconds, and moves on with each entry."""
    for n, now in enumerate((NOW, NOW + HOUR)):
        callers.take(n, now=now)
        item = callers.item()
        assert item is not None
        assert item["expiresAt"] == {"N": str((now + ITEM_KEPT_MS) // 1000)}


# how fast


def test_so_many_at_once_and_then_evenly(callers: Callers) -> None:
    for n in range(3):
        callers.take(n, max_open=9, rate_limit=THREE)
    for n, wait in ((3, 20_000), (4, 20_000)):
        now = NOW + 20_000 * (n - 3)
        with pytest.raises(RateLimited) as caught:
            callers.take(n, max_open=9, rate_limit=THREE, now=now)
        assert caught.value.retry_after_ms == wait
        with pytest.raises(RateLimited):
            callers.take(n, max_open=9, rate_limit=THREE, now=now + wait - 1)
        callers.take(n, max_open=9, rate_limit=THREE, now=now + wait)
    assert callers.open() == ids(0, 1, 2, 3, 4)


def test_whoever_was_idle_for_a_minute_may_create_all_at_once_again(callers: Callers) -> None:
    for n in range(6):
        callers.take(n, max_open=9, rate_limit=THREE, now=NOW + MINUTE * (n // 3))
    with pytest.raises(RateLimited):
        callers.take(6, max_open=9, rate_limit=THREE, now=NOW + MINUTE)


def test_one_a_minute_is_one_a_minute(callers: Callers) -> None:
    callers.take(0, rate_limit=RateLimit(1))
    with pytest.raises(RateLimited) as caught:
        callers.take(1, rate_limit=RateLimit(1), now=NOW + 1)
    assert caught.value.retry_after_ms == MINUTE - 1
    callers.take(1, rate_limit=RateLimit(1), now=NOW + MINUTE)


@pytest.mark.parametrize("per_minute", [1, 7, 120, 60_000, 10**6])
def test_a_rate_limit_is_no_slower_than_it_says(per_minute: int) -> None:
    rate_limit = RateLimit(per_minute)
    assert 1 <= rate_limit.interval_ms <= max(1, MINUTE / per_minute)
    assert rate_limit.max_ahead_ms == rate_limit.interval_ms * (per_minute - 1)


def test_two_take_the_last_of_a_minute_at_once(callers: Callers) -> None:
    """Both know that the caller is ahead of the clock; the second would be too far ahead."""
    callers.take(0, max_open=9, rate_limit=THREE)
    callers.take(1, max_open=9, rate_limit=THREE)
    callers.before(lambda: callers.other().take(2, max_open=9, rate_limit=THREE), nth=1)
    with pytest.raises(RateLimited):
        callers.take(3, max_open=9, rate_limit=THREE)
    assert callers.open() == ids(0, 1, 2)
    assert callers.tat() == NOW + MINUTE


def test_two_go_ahead_of_the_clock_at_once(callers: Callers) -> None:
    """Both believe that the caller was idle; the second adds to what the first has used up."""
    callers.put({})
    callers.before(lambda: callers.other().take(0, rate_limit=THREE))
    callers.take(1, rate_limit=THREE)
    assert callers.open() == ids(0, 1)
    assert callers.tat() == NOW + 2 * THREE.interval_ms


def test_a_caller_who_was_ahead_is_new_again(callers: Callers) -> None:
    """The item expired, and another instance made it anew, by a clock that is a minute late."""
    callers.take(0, rate_limit=THREE)
    callers.before(lambda: callers.put({task_id(1): NOW - MINUTE}, tat=NOW - 40_000), nth=1)
    callers.take(2, rate_limit=THREE)
    assert callers.open() == ids(1, 2)
    assert callers.tat() == NOW + THREE.interval_ms


def test_a_rate_limit_begins_for_a_caller_who_had_none(callers: Callers) -> None:
    """A deployment may set the limit later."""
    callers.take(0)
    callers.take(1, rate_limit=THREE)
    assert callers.open() == ids(0, 1)
    assert callers.tat() == NOW + THREE.interval_ms


def test_what_is_refused_uses_nothing_up(callers: Callers) -> None:
    callers.open_task(0, max_open=1)
    callers.take(1, max_open=2, rate_limit=THREE)
    before = callers.tat()
    with pytest.raises(QuotaExceeded):
        callers.take(2, max_open=2, rate_limit=THREE)
    assert callers.tat() == before


# what is over


def end(rows: TaskTable, status: Status, n: int = 0) -> None:
    """End a task."""
    match status:
        case Status.COMPLETED:
            rows.complete(task_id(n), {"content": []}, NOW)
        case Status.FAILED:
            rows.fail(task_id(n), {"code": -32603, "message": "broken"}, NOW)
        case _:
            rows.cancel(task_id(n), NOW, "alice")


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED])
def test_a_task_that_ended_frees_its_entry(callers: Callers, status: Status) -> None:
    for n in range(MAX_OPEN):
        callers.open_task(n)
    end(callers.rows, status, n=1)
    callers.open_task(MAX_OPEN)
    assert callers.open() == ids(0, 2, MAX_OPEN)


def test_a_task_that_was_cancelled_keeps_its_entry_while_its_step_may_run(
    callers: Callers,
) -> None:
    """Or a caller that creates and cancels in turn has more steps running than tasks allowed."""
    callers.open_task(0, max_open=1, silence_ms=15 * MINUTE)
    end(callers.rows, Status.CANCELLED)
    with pytest.raises(QuotaExceeded):
        callers.take(1, max_open=1, now=NOW + 15 * MINUTE - 1)
    callers.take(1, max_open=1, now=NOW + 15 * MINUTE - 1 + RECHECK_AFTER_MS)
    assert callers.open() == ids(1)


def test_a_task_that_expired_frees_its_entry(callers: Callers) -> None:
    """DynamoDB may keep its row for days. Its last step may run on for a while."""
    callers.open_task(0, max_open=1, ttl_ms=5 * MINUTE, silence_ms=MINUTE)
    with pytest.raises(QuotaExceeded):
        callers.take(1, max_open=1, now=NOW + 6 * MINUTE - 1)
    callers.take(1, max_open=1, now=NOW + 6 * MINUTE - 1 + RECHECK_AFTER_MS)
    assert callers.open() == ids(1)


def test_a_task_whose_row_was_deleted_frees_its_entry(callers: Callers) -> None:
    callers.open_task(0, max_open=1)
    real("dynamodb").delete_item(TableName=TABLE, Key={"taskId": {"S": task_id(0)}})
    callers.take(1, max_open=1, now=NOW + HOUR)
    assert callers.open() == ids(1)


def test_an_entry_is_kept_for_a_task_that_is_about_to_be_written(callers: Callers) -> None:
    callers.take(0, max_open=1)
    with pytest.raises(QuotaExceeded):
        callers.take(1, max_open=1, now=NOW + TASK_CREATION_MS - 1)
    assert callers.open() == ids(0)


def test_a_task_that_was_never_written_frees_its_entry(callers: Callers) -> None:
    """The function that added the entry died."""
    callers.take(0, max_open=1)
    callers.take(1, max_open=1, now=NOW + TASK_CREATION_MS)
    assert callers.open() == ids(1)


def test_a_task_that_waits_for_an_answer_keeps_its_entry(callers: Callers) -> None:
    callers.open_task(0, max_open=1, status=Status.INPUT_REQUIRED)
    with pytest.raises(QuotaExceeded):
        callers.take(1, max_open=1, now=NOW + TASK_CREATION_MS)
    assert callers.open() == ids(0)


def test_all_that_is_over_is_given_back_at_once(callers: Callers) -> None:
    for n in range(MAX_OPEN):
        callers.open_task(n)
        end(callers.rows, Status.COMPLETED, n)
    callers.aws.forget()
    callers.take(MAX_OPEN)
    assert callers.open() == ids(MAX_OPEN)
    assert callers.aws.operations == [
        "update_item",
        "batch_get_item",
        "update_item",
        "update_item",
    ]


def test_a_look_that_found_nothing_is_not_repeated_at_once(callers: Callers) -> None:
    """A caller that goes on trying costs one write and no reads."""
    callers.open_task(0, max_open=1)
    callers.aws.forget()
    for later, reads in ((0, 1), (1, 1), (RECHECK_AFTER_MS - 1, 1), (RECHECK_AFTER_MS, 2)):
        with pytest.raises(QuotaExceeded):
            callers.take(1, max_open=1, now=NOW + later)
        assert callers.reads() == reads


def test_a_look_that_found_something_is_repeated_when_that_is_gone(callers: Callers) -> None:
    callers.open_task(0, max_open=1)
    for n in range(3):
        end(callers.rows, Status.COMPLETED, n)
        callers.open_task(n + 1, max_open=1)
    assert callers.open() == ids(3)


def test_two_remove_the_same_entry_at_once(callers: Callers) -> None:
    callers.open_task(0, max_open=2)
    callers.open_task(1, max_open=2)
    end(callers.rows, Status.COMPLETED, 0)
    callers.before(lambda: callers.other().take(2, max_open=2), expression="REMOVE")
    with pytest.raises(QuotaExceeded):
        callers.take(3, max_open=2)
    assert callers.open() == ids(1, 2)


def test_the_item_expires_before_an_entry_is_removed(callers: Callers) -> None:
    """A path into nothing is an error, and an item that holds nothing must not come to be."""
    callers.open_task(0, max_open=1)
    end(callers.rows, Status.COMPLETED)
    callers.before(callers.delete, expression="REMOVE")
    callers.take(1, max_open=1)
    assert callers.open() == ids(1)


def test_the_entry_of_a_task_that_was_not_written_is_removed(callers: Callers) -> None:
    """There is no row that would tell that it is over; it would be free after a minute."""
    callers.take(0)
    callers.take(1)
    callers.quotas.release_task("alice", task_id(0))
    callers.quotas.release_task("alice", task_id(2))
    callers.quotas.release_task("bob", task_id(1))
    assert callers.open() == ids(1)
    assert callers.item(principal="bob") is None


def test_the_item_expires_before_a_look_is_noted(callers: Callers) -> None:
    """A time of no caller would be an item without entries, and without an expiry."""
    callers.open_task(0, max_open=1)
    callers.before(callers.delete, expression="SET #checkedAt")
    with pytest.raises(QuotaExceeded):
        callers.take(1, max_open=1)
    assert callers.item() is None
    callers.take(1, max_open=1, now=NOW + RECHECK_AFTER_MS)


def test_more_are_looked_at_than_one_call_reads(callers: Callers) -> None:
    """The limit may be larger than a batch; the oldest are asked first."""
    max_open = MAX_BATCH_ROWS + 1
    callers.put({task_id(n): NOW + n for n in range(max_open)})
    newest = a_task(task_id=task_id(max_open - 1))
    callers.rows.create(newest)
    end(callers.rows, Status.COMPLETED, max_open - 1)
    callers.aws.forget()
    callers.take(max_open, max_open=max_open, now=NOW + max_open)
    assert callers.open() == ids(*range(max_open - 1), max_open)
    assert callers.reads() == 2


def test_the_oldest_are_asked_first(callers: Callers) -> None:
    max_open = MAX_BATCH_ROWS + 1
    callers.put({task_id(n): NOW - n for n in range(max_open)})
    callers.rows.create(a_task(task_id=task_id(max_open - 1)))
    end(callers.rows, Status.COMPLETED, max_open - 1)
    callers.aws.forget()
    callers.take(max_open, max_open=max_open)
    assert callers.reads() == 1


def test_a_caller_may_have_far_more_open_than_it_may(callers: Callers) -> None:
    """A deployment may lower the limit."""
    callers.put({task_id(n): NOW - TASK_CREATION_MS for n in range(2 * MAX_BATCH_ROWS)})
    callers.take(2 * MAX_BATCH_ROWS, max_open=2)
    assert callers.open() == ids(2 * MAX_BATCH_ROWS)


def test_without_a_limit_of_tasks_an_item_does_not_grow(callers: Callers) -> None:
    """An item holds 400 KB at max_open; then each write is refused, for good."""
    for n in range(10):
        callers.take(n, max_open=0, rate_limit=RateLimit(1), now=NOW + n * HOUR)
    assert len(callers.open()) <= 1


# names


def test_parts_of_a_key_are_not_run_together() -> None:
    """Or a caller could choose a key that is another caller's."""
    parts = [("a", "bc"), ("ab", "c"), ("abc",), ("abc", "")]
    assert len({caller_key("key", *each)["pk"]["S"] for each in parts}) == 4
    assert caller_key("key", "a", "bc") == caller_key("key", "a", "bc")


def test_an_item_is_named_by_a_hash(callers: Callers) -> None:
    """A principal may be longer than a key can be (DynamoDB: 2048 bytes)."""
    long = "https://issuer.example|" + "x" * 4096
    callers.take(0, principal=long)
    assert callers.open(principal=long) == ids(0)


# calls within requests


def run_calls(callers: Callers, *names: str, now: int = NOW, until: int = NOW + MINUTE) -> None:
    for name in names:
        callers.quotas.acquire_call("alice", name, until, 2, now)


def test_no_more_calls_than_the_quota(callers: Callers) -> None:
    run_calls(callers, "a", "b")
    with pytest.raises(QuotaExceeded):
        run_calls(callers, "c")
    callers.quotas.release_call("alice", "a")
    run_calls(callers, "c")
    assert callers.open("calls") == {"b", "c"}


def test_two_calls_are_a_callers_first_at_once(callers: Callers) -> None:
    callers.before(lambda: run_calls(callers.other(), "one"), nth=1)
    run_calls(callers, "other")
    assert callers.open("calls") == {"one", "other"}


def test_a_call_that_is_never_released_is_free_after_its_time(callers: Callers) -> None:
    run_calls(callers, "a", "b")
    run_calls(callers, "c", now=NOW + MINUTE)
    assert callers.open("calls") == {"c"}


def test_calls_and_tasks_do_not_share_a_quota(callers: Callers) -> None:
    run_calls(callers, "a", "b")
    callers.take(0, max_open=2)


def test_very_many_calls_may_have_died(callers: Callers) -> None:
    callers.put({f"{n:016x}": NOW for n in range(2 * MAX_BATCH_ROWS)}, kind="calls")
    callers.aws.forget()
    run_calls(callers, "a")
    assert callers.open("calls") == {"a"}
    removes = [
        call.arguments["UpdateExpression"]
        for call in callers.aws.made
        if call.arguments["UpdateExpression"].startswith("REMOVE")
    ]
    assert [remove.count("#open.") for remove in removes] == [MAX_BATCH_ROWS, MAX_BATCH_ROWS]


def test_a_call_without_an_entry_removes_none(callers: Callers) -> None:
    """The item expired, and one that holds nothing must not come to be."""
    callers.quotas.release_call("alice", "a")
    assert callers.item("calls") is None
    run_calls(callers, "b")
    callers.quotas.release_call("alice", "a")
    assert callers.open("calls") == {"b"}
