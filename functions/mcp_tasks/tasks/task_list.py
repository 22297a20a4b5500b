"""Which tasks a caller has, newest first: a sparse index of the tasks table.

    principalKey (hash)   createdAt (sort)   taskId
    <hash of principal>   milliseconds       the table's key

The index has nothing but keys, which never change: a task costs one more write when it is created,
and one when DynamoDB removes it. The rows themselves are read from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..aws.dynamodb_values import from_attribute, to_attribute
from .caller_key import digest

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INDEX: Final = "byPrincipal"
PRINCIPAL_KEY: Final = "principalKey"
CREATED_AT: Final = "createdAt"


@dataclass(frozen=True, slots=True)
class TaskPage:
    """The ids of some of a caller's tasks."""

    task_ids: list[str]
    next_key: dict[str, Any] | None
    """Where the next page begins; None after the last."""


class TaskList:
    """Lists callers' tasks. With what was written a moment ago, the index may be behind."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def page(self, principal: str, size: int, start: Mapping[str, Any] | None) -> TaskPage:
        """A page of at most `size` ids, newest first, from the beginning or from a `next_key`."""
        key = principal_key(principal)
        more: dict[str, Any] = {}
        if start is not None:
            values = {**start, PRINCIPAL_KEY: key}
            more["ExclusiveStartKey"] = {n: to_attribute(v) for n, v in values.items()}
        response: Mapping[str, Any] = self._client.query(
            TableName=self._table,
            IndexName=INDEX,
            KeyConditionExpression="#key = :key",
            ExpressionAttributeNames={"#key": PRINCIPAL_KEY},
            ExpressionAttributeValues={":key": to_attribute(key)},
            ScanIndexForward=False,
            Limit=size,
            **more,
        )
        last = response.get("LastEvaluatedKey")
        return TaskPage(
            [item["taskId"]["S"] for item in response["Items"]],
            None
            if last is None
            else {name: from_attribute(last[name]) for name in ("taskId", CREATED_AT)},
        )


def principal_key(principal: str) -> str:
    """The hash under which the index has a principal: of fixed length, and not readable."""
    return digest(principal)
