"""Rows of a restored table go back into the table of the stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from operations.restore_rows import ALL, MISSING, Copied, RestoreError, restore

NOW = 1_800_000_000.5
LATER, EARLIER = {"N": "1800000001"}, {"N": "1800000000"}
TABLE = "notes-TasksTable-1"
COPY = "notes-restored"


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    """An account with a table and what was restored of it."""
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1")
        for name in (TABLE, COPY):
            create(client, name, "taskId")
        yield client


def create(client: Any, name: str, key: str) -> None:
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
    )


def row(task_id: str, **attributes: Any) -> dict[str, Any]:
    return {"taskId": {"S": task_id}, "status": {"S": "working"}, "expiresAt": LATER, **attributes}


def put(client: Any, table: str, *rows: dict[str, Any]) -> None:
    for each in rows:
        client.put_item(TableName=table, Item=each)


def rows(client: Any) -> dict[str, Any]:
    return {each["taskId"]["S"]: each for each in client.scan(TableName=TABLE)["Items"]}


def test_rows_that_are_missing_come_back_as_they_were(dynamodb: Any) -> None:
    """Numbers keep their digits, and binary values their bytes."""
    lost = row("c1-1", seq={"N": "12345678901234567890.123456"}, raw={"B": b"\x00\xff"})
    put(dynamodb, COPY, lost, row("c1-2"), row("c1-3", expiresAt=EARLIER))
    ended = row("c1-2", status={"S": "completed"})
    put(dynamodb, TABLE, ended)
    assert restore(dynamodb, COPY, TABLE, MISSING, NOW) == Copied(1, 1, 1)
    assert rows(dynamodb) == {"c1-1": lost, "c1-2": ended}
    assert restore(dynamodb, COPY, TABLE, MISSING, NOW) == Copied(0, 2, 1)


def test_damaged_rows_are_written_over_when_told(dynamodb: Any) -> None:
    put(dynamodb, COPY, row("c1-1"))
    put(dynamodb, TABLE, row("c1-1", status={"S": "damaged"}), row("c1-9"))
    assert restore(dynamodb, COPY, TABLE, ALL, NOW) == Copied(1, 0, 0)
    assert rows(dynamodb) == {"c1-1": row("c1-1"), "c1-9": row("c1-9")}


def test_a_row_without_expiry_is_copied(dynamodb: Any) -> None:
    kept = row("c1-1")
    kept.pop("expiresAt")
    put(dynamodb, COPY, kept)
    assert restore(dynamodb, COPY, TABLE, MISSING, NOW) == Copied(1, 0, 0)


def test_more_rows_than_a_page_has(dynamodb: Any) -> None:
    """Scan returns 1 MB at most (DynamoDB API reference, "Scan")."""
    text = {"S": "x" * 300_000}
    put(dynamodb, COPY, *(row(f"c1-{n}", text=text) for n in range(8)))
    assert restore(dynamodb, COPY, TABLE, MISSING, NOW).written == 8


def test_a_row_that_is_written_meanwhile_is_kept(dynamodb: Any) -> None:
    """Whoever wrote it knew more than the restored table."""
    put(dynamodb, COPY, row("c1-1"))
    newer = row("c1-1", status={"S": "completed"})

    class Racing:
        """A client whose caller is late by a moment."""

        def __getattr__(self, name: str) -> Any:
            return getattr(dynamodb, name)

        def put_item(self, **given: Any) -> None:
            put(dynamodb, TABLE, newer)
            dynamodb.put_item(**given)

    assert restore(Racing(), COPY, TABLE, MISSING, NOW) == Copied(0, 1, 0)
    assert rows(dynamodb) == {"c1-1": newer}


def test_another_table_s_rows_are_refused(dynamodb: Any) -> None:
    create(dynamodb, "notes-callers", "pk")
    with pytest.raises(RestoreError, match=r"notes-callers and .* have different keys"):
        restore(dynamodb, "notes-callers", TABLE, MISSING, NOW)
    with pytest.raises(RestoreError, match="the account has no table absent in this region"):
        restore(dynamodb, "absent", TABLE, MISSING, NOW)


def test_a_table_that_is_still_being_restored_is_waited_for() -> None:
    class Creating:
        """A client of an account whose restore goes on."""

        def describe_table(self, **_: Any) -> dict[str, Any]:
            return {"Table": {"TableStatus": "CREATING", "KeySchema": []}}

        class exceptions:
            ResourceNotFoundException = KeyError

    with pytest.raises(RestoreError, match=r"is CREATING; wait .* --table-name notes-TasksTable-1"):
        restore(Creating(), COPY, TABLE, MISSING, NOW)
