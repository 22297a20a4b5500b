"""A task as an item of the table, and back; items of the version before; and those of others."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.aws.dynamodb_values import to_attribute
from mcp_tasks.payloads.pointer import PayloadPointer
from mcp_tasks.tasks.questions import FormQuestion, Kind, open_ask
from mcp_tasks.tasks.reconcile_schedule import FIRST_RECONCILE_MS, UNKNOWN_SILENCE_MS, shard_of
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_item import (
    ITEM_KEPT_MS,
    SCHEMA_VERSION,
    UnreadableRow,
    ask_attributes,
    item_of,
    revision_of,
    task_of,
)
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support import rows_of_version_3 as before
from tests.unit.support.aws import Calls, raw_rows
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

PAYLOAD: Final = PayloadPointer(f"count/{ID}/{'0' * 32}", 0, 5_000_000)


# this version


@given(
    kinds=st.frozensets(st.sampled_from(Kind)),
    created=st.integers(0, 4_000_000_000_000),
    ttl=st.integers(1, 400 * 24 * HOUR),
    silence=st.integers(1, HOUR),
    given=st.text(),
)
def test_a_new_task_is_read_back_as_it_was_written(
    kinds: frozenset[Kind], created: int, ttl: int, silence: int, given: str
) -> None:
    task = a_task(
        accepts=kinds,
        created_at=created,
        last_updated_at=created,
        ttl_ms=ttl,
        silence_ms=silence,
        input=json.dumps({"text": given}),
    )
    assert task_of(item_of(task)) == task


def test_a_new_item_is_in_the_index() -> None:
    """Under the index's own names and types (`infra/table.py`)."""
    item = item_of(a_task(reconcile_at=None))
    assert item["reconcileShard"] == {"S": shard_of(ID)}
    assert item["reconcileAt"] == {"N": str(NOW + FIRST_RECONCILE_MS)}


def test_an_item_outlives_its_task_by_a_day() -> None:
    """DynamoDB's time to live is in whole seconds. What still runs for the task is found by it."""
    item = item_of(a_task(ttl_ms=1_500))
    assert item["expiresAtMs"] == {"N": str(NOW + 1_500)}
    kept = int(item["expiresAt"]["N"]) * 1000 - (NOW + 1_500)
    assert ITEM_KEPT_MS - 1000 < kept <= ITEM_KEPT_MS == 24 * HOUR


def ended(**changes: Any) -> dict[str, Any]:
    """An item without what goes with a task's end, and with `changes`."""
    item = item_of(a_task())
    for name in ("asks", "input", "reconcileAt", "reconcileShard"):
        del item[name]
    return item | {name: to_attribute(value) for name, value in changes.items()}


def test_a_result_is_in_the_item_or_elsewhere() -> None:
    whole = task_of(ended(status="completed", result='{"content": []}'))
    assert (whole.result, whole.result_payload) == ({"content": []}, None)
    stored = task_of(ended(status="completed", resultPayload=asdict(PAYLOAD)))
    assert (stored.result, stored.result_payload) == (None, PAYLOAD)


def test_a_task_that_is_over_need_not_be_in_the_index() -> None:
    task = task_of(ended(status="failed", error='{"code": -32603, "message": "no"}'))
    assert task == replace(
        a_task(),
        status=Status.FAILED,
        input=None,
        error={"code": -32603, "message": "no"},
        reconcile_at=None,
    )


def test_an_ask_that_was_delivered_is_none_any_more() -> None:
    ask = open_ask("token", {"sure": FormQuestion("Sure?", {})})
    item = item_of(a_task())
    item["asks"] = to_attribute({ask.id: ask_attributes(ask), "gone": {"delivered": True}})
    assert task_of(item).asks == {ask.id: ask}


# the version before


def of_version_3(**changes: Any) -> Task:
    """The example as a reader finds it in a row of version 3: not due, its silence unknown."""
    return a_task(**{"reconcile_at": None, "silence_ms": UNKNOWN_SILENCE_MS, **changes})


def test_an_item_of_version_3_is_read() -> None:
    assert task_of(before.WORKING) == of_version_3()


def test_an_item_of_version_3_is_read_with_what_it_asks() -> None:
    task = task_of(before.ASKING)
    (ask,) = task.asks.values()
    assert (ask.id, ask.token, set(ask.outstanding)) == (before.ASK, before.TOKEN, {before.KEY})
    assert task == of_version_3(
        status=Status.INPUT_REQUIRED,
        last_updated_at=NOW + 3,
        status_message="half-way",
        asks=task.asks,
        input_revision=3,
        revision=5,
    )


def test_an_item_of_version_3_is_read_with_its_result() -> None:
    assert task_of(before.COMPLETED) == of_version_3(
        status=Status.COMPLETED,
        last_updated_at=NOW + 4,
        input=None,
        result={"content": []},
        revision=2,
    )


def test_a_version_only_adds_to_the_one_before() -> None:
    """Functions of version 3 read what this one writes, while one replaces the other."""
    item = item_of(a_task())
    assert item.keys() - before.WORKING.keys() == {
        *("reconcileAt", "reconcileShard", "silenceMs", "sequential", "principalKey"),
    }
    same = before.WORKING.keys() - {"schemaVersion", "expiresAt"}
    assert {name: item[name] for name in same} == {name: before.WORKING[name] for name in same}


# other versions


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION, SCHEMA_VERSION + 1])
def test_the_versions_beside_this_one_are_read(version: int) -> None:
    """A task may wait for weeks, and a deployment goes from one version to the next, or back."""
    item = item_of(a_task()) | {"schemaVersion": {"N": str(version)}, "unheardOf": {"S": "new"}}
    assert task_of(item) == task_of(item_of(a_task()))


@pytest.mark.parametrize("version", [0, 1, 2, 6, 40])
def test_an_item_of_another_version_is_refused(version: int) -> None:
    """Loudly: half a task read wrongly would be written back."""
    item = item_of(a_task()) | {"schemaVersion": {"N": str(version)}}
    with pytest.raises(UnreadableRow, match=f"version {version}$"):
        task_of(item)


def test_an_item_of_another_version_is_left_as_it_is(rows: TaskTable, aws: Calls) -> None:
    before.put(item_of(a_task()) | {"schemaVersion": {"N": "6"}})
    found = raw_rows()
    with pytest.raises(UnreadableRow):
        rows.find(ID)
    with pytest.raises(UnreadableRow):
        rows.get(ID, NOW)
    assert raw_rows() == found


def test_an_items_revision_is_read_by_itself() -> None:
    assert revision_of(before.ASKING) == 5
