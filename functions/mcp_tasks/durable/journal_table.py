"""The journals of all tasks, as items of one DynamoDB table.

    pk                       sk            item
    <tool>#<task id>         000000        the tool's first durable operation
    <tool>#<task id>         000003        the third operation
    <tool>#<task id>         undo#000003   what undoes it
    <tool>#<task id>#000004  07#000123     of a map, which is the fourth: item 123, run by lane 7

A worker's role may name the partitions of its own tool only (`dynamodb:LeadingKeys`). The table has
no stream: nobody but the tool's next run reads what is written here. `expiresAt`, in seconds, is
the table's time-to-live attribute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import from_attribute, to_attribute
from ..payloads.pointer import PayloadPointer
from .record import Failure, Kind, Operation, Record, State

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef


class JournalExpired(LookupError):
    """An item of the journal is not there any more: the task has expired."""


class JournalTable:
    """The operations on journals, each one call to DynamoDB, or one for each MB that is read."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, partition: str, prefix: str = "") -> list[Record]:
        """The records of a partition whose ids begin with `prefix`, in the order of their ids."""
        values: dict[str, Any] = {":pk": {"S": partition}}
        query: QueryInputTypeDef = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
        }
        if prefix:
            query["KeyConditionExpression"] = "pk = :pk AND begins_with(sk, :prefix)"
            values[":prefix"] = {"S": prefix}
        found: list[Record] = []
        while True:
            response = self._client.query(**query)
            found += map(record_of, response["Items"])
            if "LastEvaluatedKey" not in response:
                return found
            query["ExclusiveStartKey"] = response["LastEvaluatedKey"]

    def write(self, partition: str, record: Record, seen: Record | None, expires_at: int) -> Record:
        """Write a record in the place of the one that was `seen` there, or where there was none.

        Returns what is in the table then: another run's record, if that was faster. Raises
        JournalExpired when the one that was seen is gone.
        """
        condition, values = "attribute_not_exists(pk)", {}
        if seen is not None:
            condition = "#state = :state AND #attempts = :attempts"
            values = {":state": seen.state.value, ":attempts": seen.attempts}
        names = {"#state": "state", "#attempts": "attempts"} if seen is not None else {}
        expressions: dict[str, Any] = {"ConditionExpression": condition}
        if names:
            expressions["ExpressionAttributeNames"] = names
            expressions["ExpressionAttributeValues"] = {
                name: to_attribute(value) for name, value in values.items()
            }
        try:
            # Race: two runs of a tool come to the same operation, because the first one was taken
            # for dead, or was not ended by its time limit. The first result is the only one: both
            # go on with it. Without the condition, a tool that has gone on with one value would
            # find another the next time.
            self._client.put_item(
                TableName=self._table,
                Item=item_of(partition, record, expires_at),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **expressions,
            )
        except ClientError as error:
            found = existing_item(error)
            if not found:
                raise JournalExpired(record.id) from None
            return record_of(found)
        return record


def item_of(partition: str, record: Record, expires_at: int) -> dict[str, Any]:
    """A record as an item, in DynamoDB's notation."""
    failure = record.failure
    attributes: dict[str, str | int | Mapping[str, Any] | None] = {
        "pk": partition,
        "sk": record.id,
        "kind": record.operation.kind.value,
        "name": record.operation.name,
        "key": record.operation.key,
        "arguments": record.operation.arguments or None,
        "state": record.state.value,
        "attempts": record.attempts,
        "value": None if record.value is None else json.dumps(record.value),
        "payload": None if record.payload is None else asdict(record.payload),
        "failure": None if failure is None else {"name": failure.name, "message": failure.message},
        # Not in the failure, of which an earlier version of this code takes nothing else.
        "reference": None if failure is None else failure.reference,
        "dueAt": record.due_at,
        "undo": record.undo,
        "writtenAt": record.written_at,
        "expiresAt": expires_at,
    }
    return {name: to_attribute(value) for name, value in attributes.items() if value is not None}


def record_of(item: Mapping[str, Any]) -> Record:
    """An item, in DynamoDB's notation, as a record."""
    row = {name: from_attribute(value) for name, value in item.items()}
    payload, failure = row.get("payload"), row.get("failure")
    return Record(
        id=row["sk"],
        operation=Operation(
            Kind(row["kind"]), row["name"], row.get("key"), row.get("arguments", "")
        ),
        state=State(row["state"]),
        value=json.loads(row["value"]) if "value" in row else None,
        payload=None if payload is None else PayloadPointer(**payload),
        failure=None if failure is None else Failure(**failure, reference=row.get("reference")),
        attempts=row["attempts"],
        due_at=row.get("dueAt"),
        undo=row.get("undo"),
        written_at=row["writtenAt"],
    )
