"""The journal in DynamoDB: the first result of an operation is the only one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.durable.journal import Journal, JournalUnavailable
from mcp_tasks.durable.journal_table import JournalExpired, JournalTable
from mcp_tasks.durable.record import Failure, Kind, Operation, Record, State
from mcp_tasks.payloads.s3_store import PayloadStore
from tests.unit.support.aws import (
    JOURNAL,
    Calls,
    create_journal,
    create_payloads,
    items_of,
    refusing,
)
from tests.unit.support.example_task import ID, NOW

PARTITION = f"count#{ID}"
STEP = Operation(Kind.STEP, "look_up", "a", "0123")
EXPIRES = NOW // 1000


@pytest.fixture
def table(aws: Calls) -> JournalTable:
    return JournalTable(aws.client("dynamodb"), create_journal())


def record(number: int = 1, state: State = State.DONE, **more: Any) -> Record:
    return Record(f"{number:06}", STEP, state, written_at=NOW, **more)


def test_a_record_is_read_as_it_was_written(table: JournalTable) -> None:
    written = [
        record(1, value={"a": [1, None, "x"]}, attempts=2, undo="close"),
        record(2, State.WAITING, due_at=NOW + 5),
        record(3, State.FAILED, failure=Failure("ValueError", "no")),
        Record("000004", Operation(Kind.SLEEP, "for"), State.STARTED, written_at=NOW),
    ]
    for each in reversed(written):
        table.write(PARTITION, each, None, EXPIRES)
    assert table.read(PARTITION) == written
    assert table.read("other") == []


def test_only_records_of_a_prefix_are_read(table: JournalTable) -> None:
    for lane in ("01", "02"):
        table.write(PARTITION, replace(record(), id=f"{lane}#000001"), None, EXPIRES)
    assert [each.id for each in table.read(PARTITION, "02#")] == ["02#000001"]


def test_the_first_result_of_a_step_stands(table: JournalTable) -> None:
    table.write(PARTITION, record(value=1), None, EXPIRES)
    assert table.write(PARTITION, record(value=2), None, EXPIRES).value == 1
    assert table.read(PARTITION)[0].value == 1


def test_of_two_runs_that_saw_the_same_record_one_goes_on(table: JournalTable) -> None:
    seen = table.write(PARTITION, record(state=State.WAITING, attempts=1), None, EXPIRES)
    first = record(state=State.WAITING, attempts=2)
    assert table.write(PARTITION, first, seen, EXPIRES) is first
    assert table.write(PARTITION, record(value=2, attempts=2), seen, EXPIRES) == first


def test_of_two_runs_of_one_attempt_the_first_result_stands(table: JournalTable) -> None:
    seen = table.write(PARTITION, record(state=State.STARTED), None, EXPIRES)
    done = record(value=1)
    assert table.write(PARTITION, done, seen, EXPIRES) is done
    assert table.write(PARTITION, record(value=2), seen, EXPIRES) == done


def test_nothing_is_written_back_to_an_expired_journal(table: JournalTable) -> None:
    with pytest.raises(JournalExpired):
        table.write(PARTITION, record(), record(state=State.STARTED), EXPIRES)
    assert table.read(PARTITION) == []


def journal(calls: Calls, tool: str = "count") -> Journal:
    table = JournalTable(calls.client("dynamodb"), create_journal())
    payloads = PayloadStore(lambda: calls.client("s3"), create_payloads())
    return Journal(table, payloads, tool, ID, 60_000, lambda: NOW)


def test_a_journal_is_kept_for_a_day_longer_than_its_task(aws: Calls) -> None:
    journal(aws).open({})
    assert [row["expiresAt"]["N"] for row in items_of(JOURNAL)] == [
        str((NOW + 60_000) // 1000 + 24 * 3600)
    ]


def test_a_step_is_one_write_and_a_run_one_read(aws: Calls) -> None:
    kept = journal(aws)
    kept.open({})
    kept.open({})
    kept.write(record(value="x" * 100))
    assert aws.operations == ["query", "put_item", "put_item"]


def test_a_large_value_is_kept_in_s3(aws: Calls) -> None:
    kept = journal(aws)
    written = kept.write(record(value="x" * 9_000))
    assert written.payload is not None
    assert written.value is None
    assert kept.value(written) == "x" * 9_000
    assert len(items_of(JOURNAL)[0]["payload"]["M"]) == 3


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException"])
def test_an_error_of_aws_ends_the_run_and_no_tool_catches_it(aws: Calls, code: str) -> None:
    aws.instead["put_item"] = refusing("dynamodb", code)
    with pytest.raises(JournalUnavailable, match=code) as unavailable:
        journal(aws).write(record())
    assert not isinstance(unavailable.value, Exception)
    assert isinstance(unavailable.value.error, ClientError)
