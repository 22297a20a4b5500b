"""What is remembered of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from mcp_tasks.sessions.session_table import (
    ITEM_KEPT_SECONDS,
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
    ],
    ids=["end", "set_level", "mark_resumes"],
)
def test_nothing_is_written_to_a_session_that_has_ended(
    table: SessionTable, write: Callable[[SessionTable], None]
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
