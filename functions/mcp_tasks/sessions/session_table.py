"""Sessions as items of a DynamoDB table.

    pk              sk        attributes
    session#<key>   session   ended, level, resumes, activeUntil, listenedAt, listVersions,
                              uris, uri#<hash>, expiresAt

A session has an item only when there is something to remember: most have none. `expiresAt`, in
seconds, is the table's time-to-live attribute. No item outlives the session's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import from_attribute, to_attribute
from ..tasks.caller_key import digest

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SESSION: Final = "session"
"""The sort key of a session's own item."""

ITEM_KEPT_SECONDS: Final = 3600
"""How much longer than the session's id its item is kept: clocks differ."""


MAX_URIS: Final = 50
"""To how many resources a session can be subscribed."""

_URI: Final = "uri#"
"""What the names of the attributes begin with that are resources' URIs."""


class SessionEnded(Exception):
    """The client has ended the session."""


class TooManyUris(Exception):
    """The session is subscribed to MAX_URIS resources."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is remembered of a session."""

    level: str | None = None
    """The least severe log messages that the client wants (`logging/setLevel`)."""
    resumes: bool = False
    """Whether the client has resumed an event stream."""
    uris: tuple[str, ...] = ()
    """The resources that the client has subscribed to."""
    active_until: int = 0
    """Until when a task may change that the client has asked for, in milliseconds since the
    epoch."""
    listened_at: int = 0
    """When the client was last seen on the session's own stream."""
    list_versions: Mapping[str, str] = field(default_factory=dict)
    """The lists that the client knows, as far as it was told."""


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
        return SessionState(
            level=item.get("level"),
            resumes=item.get("resumes", False),
            uris=tuple(value for name, value in item.items() if name.startswith(_URI)),
            active_until=item.get("activeUntil", 0),
            listened_at=item.get("listenedAt", 0),
            list_versions=item.get("listVersions", {}),
        )

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

    def mark_active(self, key: str, expires_at: int, until: int) -> None:
        """Remember that a task may change until then. Raises SessionEnded."""
        self._set(key, expires_at, "activeUntil", until)

    def mark_listening(
        self, key: str, expires_at: int, now: int, versions: Mapping[str, str]
    ) -> None:
        """Remember that the client listens, and which lists it knows. Raises SessionEnded."""
        self._update(
            key,
            expires_at,
            "SET #listenedAt = :now, #listVersions = :versions",
            {"#listenedAt": "listenedAt", "#listVersions": "listVersions"},
            {":now": now, ":versions": dict(versions)},
        )

    def subscribe(self, key: str, expires_at: int, uri: str) -> None:
        """Subscribe to a resource. Raises SessionEnded, and TooManyUris."""
        names = {"#uri": _attribute_of(uri), "#uris": "uris", "#ended": "ended"}
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression="SET #uri = :uri, #expiresAt = :expiresAt ADD #uris :one",
                # Races: the client ends its session, subscribes to the same resource twice, or to
                # several at once, of which the last is one too many.
                ConditionExpression="attribute_not_exists(#ended) AND attribute_not_exists(#uri) "
                "AND (attribute_not_exists(#uris) OR #uris < :max)",
                ExpressionAttributeNames={**names, "#expiresAt": "expiresAt"},
                ExpressionAttributeValues={
                    ":uri": to_attribute(uri),
                    ":one": to_attribute(1),
                    ":max": to_attribute(MAX_URIS),
                    ":expiresAt": to_attribute(expires_at // 1000 + ITEM_KEPT_SECONDS),
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            item = existing_item(error)
            if "ended" in item:
                raise SessionEnded from None
            if names["#uri"] not in item:
                raise TooManyUris from None

    def unsubscribe(self, key: str, uri: str) -> None:
        """Unsubscribe from a resource; from one that it is not subscribed to as well."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression="REMOVE #uri ADD #uris :less",
                # Race: the client unsubscribes twice, and would be counted down twice.
                ConditionExpression="attribute_exists(#uri)",
                ExpressionAttributeNames={"#uri": _attribute_of(uri), "#uris": "uris"},
                ExpressionAttributeValues={":less": to_attribute(-1)},
            )
        except ClientError as error:
            existing_item(error)

    def _set(self, key: str, expires_at: int, name: str, value: str | int) -> None:
        self._update(key, expires_at, "SET #name = :value", {"#name": name}, {":value": value})

    def _update(
        self,
        key: str,
        expires_at: int,
        update: str,
        names: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> None:
        try:
            # Race: the client ends its session while another of its requests writes.
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression=f"{update}, #expiresAt = :expiresAt",
                ConditionExpression="attribute_not_exists(#ended)",
                ExpressionAttributeNames={**names, "#expiresAt": "expiresAt", "#ended": "ended"},
                ExpressionAttributeValues={
                    ":expiresAt": to_attribute(expires_at // 1000 + ITEM_KEPT_SECONDS),
                    **{name: to_attribute(value) for name, value in values.items()},
                },
            )
        except ClientError as error:
            existing_item(error)
            raise SessionEnded from None


def _attribute_of(uri: str) -> str:
    return f"{_URI}{digest(uri)[:32]}"


def _key(key: str) -> dict[str, Any]:
    return {"pk": {"S": f"session#{key}"}, "sk": {"S": SESSION}}
