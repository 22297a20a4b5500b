"""What is remembered of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from mcp_tasks.sessions.session_table import (
    ITEM_KEPT_SECONDS,
    MAX_TASKS,
    MAX_URIS,
    SessionEnded,
    SessionState,
    SessionTable,
)
from tests.unit.support.aws import Calls, create_sessions, real

KEY: Final = "0" * 32
EXPIRES_AT: Final = 1_800_000_000_000


@pytest.fixture
def table(aws: Calls) -> SessionTable:
    return SessionTable(aws.client("dynamodb"), create_sessions())


def test_of_a_session_without_an_item_nothing_is_remembered(table: SessionTable) -> None:
    assert table.read(KEY) == SessionState()


def test_what_is_remembered_is_read(table: SessionTable) -> None:
    table.set_level(KEY, EXPIRES_AT, "error")
    table.mark_resumes(KEY, EXPIRES_AT)
    assert table.read(KEY) == SessionState("error", resumes=True)
    assert table.read("1" * 32) == SessionState()


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.end(KEY, EXPIRES_AT),
        lambda table: table.set_level(KEY, EXPIRES_AT, "error"),
        lambda table: table.mark_resumes(KEY, EXPIRES_AT),
        lambda table: table.add_task(KEY, EXPIRES_AT, "c1-1", 1),
        lambda table: table.mark_listening(KEY, EXPIRES_AT, 1, {}),
        lambda table: table.subscribe(KEY, EXPIRES_AT, "a://b"),
    ],
    ids=["end", "set_level", "mark_resumes", "add_task", "mark_listening", "subscribe"],
)
def test_nothing_is_written_to_a_session_that_has_ended(
    table: SessionTable, write: Callable[[SessionTable], object]
) -> None:
    table.end(KEY, EXPIRES_AT)
    for attempt in (write, lambda table: table.read(KEY)):
        with pytest.raises(SessionEnded):
            attempt(table)
    (item,) = real("dynamodb").scan(TableName="sessions")["Items"]
    assert set(item) == {"pk", "sk", "ended", "expiresAt"}


def test_an_item_outlives_its_sessions_id(table: SessionTable) -> None:
    table.end(KEY, EXPIRES_AT)
    (item,) = real("dynamodb").scan(TableName="sessions")["Items"]
    assert int(item["expiresAt"]["N"]) == EXPIRES_AT // 1000 + ITEM_KEPT_SECONDS


def test_what_a_session_hears_is_read(table: SessionTable) -> None:
    assert table.add_task(KEY, EXPIRES_AT, "c1-1", 7)
    table.mark_listening(KEY, EXPIRES_AT, 9, {"tools": "1"})
    table.subscribe(KEY, EXPIRES_AT, "a://b")
    state = table.read(KEY)
    assert (state.tasks, state.listened_at) == ({"c1-1": 7}, 9)
    assert (state.list_versions, state.uris) == ({"tools": "1"}, ("a://b",))
    table.unsubscribe(KEY, "a://b")
    table.remove_task(KEY, "c1-1")
    assert (table.read(KEY).uris, table.read(KEY).tasks) == ((), {})


def test_a_session_is_subscribed_to_so_many_resources(table: SessionTable) -> None:
    for number in range(MAX_URIS):
        table.subscribe(KEY, EXPIRES_AT, f"a://{number}")
    assert not table.subscribe(KEY, EXPIRES_AT, "a://more")
    assert len(table.read(KEY).uris) == MAX_URIS


def test_a_session_remembers_so_many_tasks(table: SessionTable) -> None:
    for number in range(MAX_TASKS):
        assert table.add_task(KEY, EXPIRES_AT, f"c1-{number}", 1)
    assert not table.add_task(KEY, EXPIRES_AT, "c1-more", 1)
    assert len(table.read(KEY).tasks) == MAX_TASKS


def test_a_task_counts_once(table: SessionTable) -> None:
    for _ in range(MAX_TASKS):
        table.add_task(KEY, EXPIRES_AT, "c1-0", 1)
    assert table.add_task(KEY, EXPIRES_AT, "c1-1", 1)
    assert set(table.read(KEY).tasks) == {"c1-0", "c1-1"}


def test_a_task_is_removed_once(table: SessionTable) -> None:
    for number in range(MAX_TASKS):
        table.add_task(KEY, EXPIRES_AT, f"c1-{number}", 1)
    for _ in range(3):
        table.remove_task(KEY, "c1-0")
    assert table.add_task(KEY, EXPIRES_AT, "c1-0", 1)
    assert not table.add_task(KEY, EXPIRES_AT, "c1-more", 1)


def test_a_resource_counts_once(table: SessionTable) -> None:
    for _ in range(MAX_URIS):
        table.subscribe(KEY, EXPIRES_AT, "a://0")
    table.subscribe(KEY, EXPIRES_AT, "a://1")
    assert set(table.read(KEY).uris) == {"a://0", "a://1"}


def test_a_resource_is_unsubscribed_from_once(table: SessionTable) -> None:
    for number in range(MAX_URIS):
        table.subscribe(KEY, EXPIRES_AT, f"a://{number}")
    for _ in range(3):
        table.unsubscribe(KEY, "a://0")
    table.subscribe(KEY, EXPIRES_AT, "a://0")
    assert not table.subscribe(KEY, EXPIRES_AT, "a://more")
