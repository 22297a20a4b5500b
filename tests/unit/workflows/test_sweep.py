"""The sweeper: all that is due is looked at, a bounded part of it per run, and nothing else."""

from __future__ import annotations

import io
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.reconcile_schedule import (
    EXPIRED_MS,
    FIRST_RECONCILE_MS,
    MAX_RECONCILE_INTERVAL_MS,
    SHARDS,
    STOP_AGAIN_MS,
    shard_of,
)
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_item import SCHEMA_VERSION, item_of
from mcp_tasks.workflows import sweep as module
from mcp_tasks.workflows.end_task import TaskEnds
from mcp_tasks.workflows.executions import execution_arn
from mcp_tasks.workflows.sweep import MAX_TASKS_PER_SHARD, sweep
from tests.unit.support import rows_of_version_3 as before
from tests.unit.support.aws import Died, raw_rows, real, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.reconciling import MACHINE, World
from tests.unit.support.stack import LOGGER

DUE: Final = NOW + FIRST_RECONCILE_MS


@pytest.fixture
def world(moto: None, no_account: None, catalogue: Catalogue) -> World:
    return World(catalogue)


def task_id(n: int) -> str:
    return f"c1-{n:032x}"


def of_shard(shard: str, count: int) -> list[str]:
    """The ids of some tasks of one shard."""
    found = (task_id(n) for n in range(10_000) if shard_of(task_id(n)) == shard)
    return [next(found) for _ in range(count)]


def written(world: World, ids: list[str]) -> None:
    """Tasks that were never started; the first has been due for longest."""
    for n, one in enumerate(ids):
        world.rows.create(a_task(task_id=one, created_at=NOW - len(ids) + n))
    world.calls.forget()


def run(world: World, now: int = DUE, seconds: float = 60) -> dict[str, int]:
    """One run of the sweeper."""
    return dict(sweep(world.rows, world.reconciler, lambda: now, seconds).counts)


def started(world: World) -> set[str]:
    """The tasks whose executions began."""
    return {arn.rpartition(":")[2] for arn in world.states.executions}


# cheap


def test_when_no_task_has_to_be_reconciled_a_run_is_one_query_for_each_shard(world: World) -> None:
    """And no client of Step Functions or S3: making one costs more than all of it."""
    world.started()
    world.rows.complete(ID, {"content": []}, NOW)
    world.rows.create(a_task(task_id=task_id(1), created_at=DUE))
    world.calls.forget()
    assert run(world) == {}
    assert world.calls.operations == ["query"] * SHARDS
    shards = {c.arguments["ExpressionAttributeValues"][":shard"]["S"] for c in world.calls.made}
    assert shards == {str(n) for n in range(SHARDS)}
    assert world.calls.clients == []


def test_a_task_that_runs_costs_a_read_a_write_and_a_describe(world: World) -> None:
    world.started()
    world.calls.forget()
    assert run(world) == {"running": 1}
    looks = Counter(world.calls.operations) - Counter({"query": SHARDS})
    assert looks == {"get_item": 1, "update_item": 1, "describe_execution": 1}


# complete


def test_a_run_does_what_there_is_to_do_and_counts_it(world: World) -> None:
    """One task of each kind."""
    now = DUE + STOP_AGAIN_MS
    world.rows.create(a_task(task_id=task_id(1)))
    for n in range(2, 7):
        world.rows.create(a_task(task_id=task_id(n)))
        world.states.run(MACHINE, task_id(n))
    world.states.end(execution_arn(MACHINE, task_id(2)), {"content": []})
    world.rows.cancel(task_id(3), NOW, "alice")
    world.rows.create(a_task(task_id=task_id(7), created_at=NOW - HOUR - EXPIRED_MS))
    world.rows.report(task_id(4), "half-way", now)
    world.rows.create(a_task(task_id=task_id(8), created_at=now))
    assert run(world, now) == {
        "started": 1,
        "ended": 1,
        "stopped": 1,
        "skipped": 1,
        "running": 2,
        "expired": 1,
    }
    assert run(world, now) == {}, "and all of it is done, or put off"


def test_all_tasks_of_all_shards_are_reconciled(world: World) -> None:
    """More than a query finds."""
    ids = of_shard("0", MAX_TASKS_PER_SHARD - 5) + [task_id(n) for n in range(30_000, 30_020)]
    written(world, ids)
    assert run(world) == {"started": len(ids)}
    assert started(world) == set(ids)


# bounded, and resumable


@pytest.fixture
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TASKS_PER_SHARD", 4)


@pytest.mark.usefixtures("few_looks")
def test_a_run_reconciles_so_many_tasks_of_a_shard_and_the_next_goes_on(world: World) -> None:
    ids = of_shard("0", 10)
    written(world, ids)
    assert run(world) == {"started": 4}
    assert started(world) == {*ids[:2], *ids[-2:]}, "those that are due for longest, and the latest"
    assert run(world) == {"started": 4}
    assert run(world) == {"started": 2}
    assert run(world) == {}


@pytest.mark.usefixtures("few_looks")
def test_a_task_that_was_never_started_does_not_wait_for_all_that_only_wait(world: World) -> None:
    """More tasks than looks are due, in every minute, and have been for longer."""
    waiting = of_shard("0", 40)[:-1]
    for n, one in enumerate(waiting):
        world.rows.create(a_task(task_id=one, created_at=NOW - HOUR // 2 + n))
        world.states.run(MACHINE, one)
    lost = of_shard("0", 40)[-1]
    written(world, [lost])
    assert run(world) == {"running": 3, "started": 1}
    assert lost in started(world)


def test_two_thirds_of_what_step_functions_answers_are_asked_at_most() -> None:
    """Step Functions developer guide, "Quotas": 15 DescribeExecution a second, elsewhere 10, for
    all of an account and region."""
    assert MAX_TASKS_PER_SHARD * SHARDS / 60 <= 10 * 0.8


@pytest.mark.usefixtures("few_looks")
@pytest.mark.parametrize("code", ["ThrottlingException", "TooManyRequestsException"])
def test_when_aws_throttles_a_shards_run_ends(world: World, code: str) -> None:
    """Each call more would take the room from those who need it, and put off a look in vain."""
    ids = of_shard("0", 3)
    written(world, ids)
    describe = world.calls.instead["describe_execution"]
    world.calls.instead["describe_execution"] = refusing("stepfunctions", code)
    assert run(world) == {"error": 1}
    world.calls.instead["describe_execution"] = describe
    assert run(world) == {"started": 2}


def test_when_no_execution_can_be_started_a_shards_run_ends(world: World) -> None:
    written(world, of_shard("0", 3))
    world.calls.instead["start_execution"] = refusing("stepfunctions", "ExecutionLimitExceeded")
    assert run(world) == {"not started": 1}


# late


def test_a_run_returns_how_late_the_earliest_task_was(world: World) -> None:
    """Of all shards; nothing that is due is not late."""
    assert sweep(world.rows, world.reconciler, lambda: DUE, 60).late_ms == 0
    written(world, [task_id(n) for n in range(20)])
    swept = sweep(world.rows, world.reconciler, lambda: DUE + HOUR, 60)
    assert swept.late_ms == HOUR + 20
    assert sweep(world.rows, world.reconciler, lambda: DUE + HOUR, 60).late_ms == 0


def test_a_run_ends_when_its_time_is_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it did not get to is due as before."""
    ids = of_shard("0", 5)
    written(world, ids)
    ticks = iter(range(100))
    with monkeypatch.context() as patch:
        patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        assert run(world, seconds=4) == {"started": 3, "out of time": 1}
    assert started(world) == set(ids[:3])
    assert run(world) == {"started": 2}


def test_a_run_without_time_reconciles_nothing(world: World) -> None:
    written(world, [ID])
    assert run(world, seconds=0) == {"out of time": 1}
    assert started(world) == set()


def test_a_run_that_dies_leaves_the_rest_to_the_next(world: World) -> None:
    """In one shard; the others' threads are those of the same function."""
    ids = of_shard("0", 4)
    written(world, ids)
    start = world.calls.instead["start_execution"]

    def die_at_the_second(**arguments: Any) -> Any:
        if arguments["name"] == ids[1]:
            raise Died
        return start(**arguments)

    world.calls.instead["start_execution"] = die_at_the_second
    with pytest.raises(Died):
        run(world)
    world.calls.instead["start_execution"] = start
    assert started(world) == {ids[0]}
    assert run(world) == {"started": 2}
    assert run(world, DUE + HOUR // 4) == {"started": 1, "running": 3}


# two at once


def test_two_runs_at_once_reconcile_each_task_once(world: World) -> None:
    """The schedule delivers twice, or a run takes longer than a minute."""
    ids = [task_id(n) for n in range(40)]
    written(world, ids)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: run(world), range(2))
    total = Counter(one) + Counter(other)
    assert total["started"] == 40
    assert total.keys() <= {"started", "skipped"}
    assert world.calls.operations.count("start_execution") == 40


def test_one_large_end_is_read_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds eight at once, and a result may fill a good part of a function's memory."""
    ids = [task_id(n) for n in range(40)]
    for one in ids:
        world.rows.create(a_task(task_id=one))
        world.states.run(MACHINE, one)
        world.states.end(execution_arn(MACHINE, one), {"content": []})
    reading, most = 0, 0

    def end(_: TaskEnds, task: Task, *given: Any) -> tuple[Task, bool]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        time.sleep(0.001)  # others come to it
        reading -= 1
        return task, True

    monkeypatch.setattr(TaskEnds, "end", end)
    assert run(world) == {"ended": 40}
    assert most == 1


# what goes wrong


@pytest.fixture
def poisoned(world: World) -> str:
    """A task whose execution cannot be described, for whatever reason; it has been due longest."""
    poison, *others = of_shard("0", 4)
    written(world, [poison, *others])
    describe = world.calls.instead["describe_execution"]

    def fail_for_one(executionArn: str) -> Any:
        if executionArn.endswith(poison):
            raise KeyError("hunter2")
        return describe(executionArn=executionArn)

    world.calls.instead["describe_execution"] = fail_for_one
    return poison


def test_a_task_whose_reconciling_fails_keeps_no_other_waiting(world: World, poisoned: str) -> None:
    assert run(world) == {"error": 1, "started": 3}
    assert poisoned not in started(world)


def test_a_task_whose_reconciling_failed_is_reconciled_again(world: World, poisoned: str) -> None:
    """Later: not in every run."""
    run(world)
    assert run(world) == {}
    assert run(world, DUE + HOUR // 4) == {"error": 1, "running": 3}


def test_what_failed_is_logged_without_what_it_said(
    world: World, poisoned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = io.StringIO()
    monkeypatch.setattr(LOGGER.registered_handler, "stream", text)
    run(world)
    assert "hunter2" not in text.getvalue()
    (line,) = [line for line in text.getvalue().splitlines() if '"ERROR"' in line]
    assert '"error":"KeyError"' in line
    assert poisoned in line


@pytest.mark.usefixtures("few_looks")
def test_rows_that_cannot_be_read_keep_no_other_waiting(world: World) -> None:
    """They were due for longer, and are put off like what can be read; nothing else of them is."""
    *unreadable, readable = of_shard("0", 6)
    for n, one in enumerate(unreadable):
        row = item_of(a_task(task_id=one, created_at=NOW - HOUR + n))
        before.put(row | {"schemaVersion": {"N": str(SCHEMA_VERSION + 2)}})
    left = {row["taskId"]["S"]: row for row in raw_rows()}
    written(world, [readable])
    found = run(world)
    assert found == {"error": 3, "started": 1}
    assert run(world) == {"error": 2}
    assert run(world) == {}
    for row in raw_rows():
        if row["taskId"]["S"] in left:
            reconcile_at = {"N": str(DUE + MAX_RECONCILE_INTERVAL_MS)}
            assert row == left[row["taskId"]["S"]] | {"reconcileAt": reconcile_at}


def test_a_row_that_is_gone_by_now_is_skipped(world: World) -> None:
    """The index lags behind the rows."""
    written(world, [ID])
    world.calls.instead["get_item"] = lambda **arguments: {}
    assert run(world) == {"skipped": 1}


def test_a_shard_that_cannot_be_read_keeps_no_other_waiting(world: World) -> None:
    """The run fails, so that somebody hears of it; but after the others' work."""
    ids = [task_id(n) for n in range(20)]
    written(world, ids)
    refuse = refusing("dynamodb", "ProvisionedThroughputExceededException")

    def fail_for_one(**arguments: Any) -> Any:
        shard = arguments["ExpressionAttributeValues"][":shard"]["S"]
        return (refuse if shard == "0" else real("dynamodb").query)(**arguments)

    world.calls.instead["query"] = fail_for_one
    with pytest.raises(ClientError, match="ProvisionedThroughput"):
        run(world)
    assert started(world) == {one for one in ids if shard_of(one) != "0"}


def test_a_claim_that_fails_leaves_the_task_in_the_index(world: World) -> None:
    written(world, [ID])
    world.calls.instead["update_item"] = refusing("dynamodb", "ThrottlingException")
    assert run(world) == {"error": 1}
    del world.calls.instead["update_item"]
    assert run(world) == {"started": 1}


def test_a_throttled_start_is_no_error(world: World) -> None:
    """It is tried again, as often as it takes; and started once there is room."""
    written(world, [ID])
    start = world.calls.instead["start_execution"]
    world.calls.instead["start_execution"] = refusing("stepfunctions", "ExecutionLimitExceeded")
    assert run(world) == {"not started": 1}
    assert run(world, DUE + HOUR // 4) == {"not started": 1}
    world.calls.instead["start_execution"] = start
    assert run(world, DUE + HOUR // 2) == {"started": 1}
    assert world.row.status is Status.WORKING
