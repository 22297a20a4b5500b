"""Sessions as items of a DynamoDB table.

    pk              sk        attributes
    session#<key>   session   ended, level, resumes, expiresAt

A session has an item only when there is something to remember: most have none. `expiresAt`, in
seconds, is the table's time-to-live attribute. No item outlives the session's id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import from_attribute, to_attribute

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SESSION: Final = "session"
"""The sort key of a session's own item."""

ITEM_KEPT_SECONDS: Final = 3600
"""How much longer than the session's id its item is kept: clocks differ."""


class SessionEnded(Exception):
    """The client has ended the session."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is remembered of a session."""

    level: str | None = None
    """The least severe log messages that the client wants (`logging/setLevel`)."""
    resumes: bool = False
    """Whether the client has resumed an event stream."""


class SessionTable:
    """The operations on sessions, each one call to DynamoDB."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, key: str) -> SessionState:
        """What is remembered of a session, by one consistent read. Raises SessionEnded."""
        response = self._client.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        item = {name: from_attribute(value) for name, value in response.get("Item", {}).items()}
        if item.get("ended"):
            raise SessionEnded
        return SessionState(item.get("level"), item.get("resumes", False))

    def end(self, key: str, expires_at: int) -> None:
        """End a session. `expires_at` is when its id expires, in milliseconds since the epoch.

        Raises SessionEnded for one that has ended.
        """
        self._set(key, expires_at, "ended", True)

    def set_level(self, key: str, expires_at: int, level: str) -> None:
        """Remember a session's log level. Raises SessionEnded."""
        self._set(key, expires_at, "level", level)

    def mark_resumes(self, key: str, expires_at: int) -> None:
        """Remember that a session's client resumes streams. Raises SessionEnded."""
        self._set(key, expires_at, "resumes", True)

    def _set(self, key: str, expires_at: int, name: str, value: str | bool) -> None:
        try:
            # Race: the client ends its session while another of its requests writes.
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression="SET #name = :value, #expiresAt = :expiresAt",
                ConditionExpression="attribute_not_exists(#ended)",
                ExpressionAttributeNames={
                    "#name": name,
                    "#expiresAt": "expiresAt",
                    "#ended": "ended",
                },
                ExpressionAttributeValues={
                    ":value": to_attribute(value),
                    ":expiresAt": to_attribute(expires_at // 1000 + ITEM_KEPT_SECONDS),
                },
            )
        except ClientError as error:
            existing_item(error)
            raise SessionEnded from None


def _key(key: str) -> dict[str, Any]:
    return {"pk": {"S": f"session#{key}"}, "sk": {"S": SESSION}}
