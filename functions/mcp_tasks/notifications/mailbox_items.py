"""Items of the table of mailboxes in DynamoDB's notation. Its keys are `pk` and `sk`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..aws.dynamodb_values import from_attribute, to_attribute

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def attributes(**values: Any) -> dict[str, Any]:
    """Values, under their names, in DynamoDB's notation."""
    return {name: to_attribute(value) for name, value in values.items()}


def put(**values: Any) -> dict[str, Any]:
    """One write of a BatchWriteItem: an item with these attributes."""
    return {"PutRequest": {"Item": attributes(**values)}}


def expires_at(ms: int) -> int:
    """When DynamoDB may remove an item that is needed until `ms`, in seconds since the epoch."""
    return ms // 1000 + 60


def query(
    client: DynamoDBClient, table: str, pk: str, beginning: str = "", *, consistent: bool = True
) -> Iterator[dict[str, Any]]:
    """Every item of a partition whose sort key begins so, as values."""
    condition, values = "pk = :pk", {":pk": pk}
    if beginning:
        condition, values[":beginning"] = "pk = :pk AND begins_with(sk, :beginning)", beginning
    more: dict[str, Any] = {}
    while True:
        response: Mapping[str, Any] = client.query(
            TableName=table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=attributes(**values),
            ConsistentRead=consistent,
            **more,
        )
        for item in response["Items"]:
            yield {name: from_attribute(value) for name, value in item.items()}
        if "LastEvaluatedKey" not in response:
            return
        more = {"ExclusiveStartKey": response["LastEvaluatedKey"]}
