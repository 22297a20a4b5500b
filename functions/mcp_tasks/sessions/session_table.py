"""Sessions as items of a DynamoDB table.

    pk              sk        attributes
    session#<key>   session   ended, level, resumes, listenedAt, listVersions, tasks, task#<id>,
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

MAX_TASKS: Final = 100
"""How many tasks of a session are remembered."""

_URI, _TASK = "uri#", "task#"
"""What the names of attributes begin with: resources' URIs, and when tasks expire."""


class SessionEnded(Exception):
    """The client has ended the session."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is remembered of a session."""

    level: str | None = None
    """The least severe log messages that the client wants (`logging/setLevel`)."""
    resumes: bool = False
    """Whether the client has resumed an event stream."""
    uris: tuple[str, ...] = ()
    """The resources that the client has subscribed to."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """The tasks that the client has asked for and that may still change: when they expire, by id,
    in milliseconds since the epoch."""
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
            tasks={n.removeprefix(_TASK): v for n, v in item.items() if n.startswith(_TASK)},
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

    def add_task(self, key: str, expires_at: int, task_id: str, until: int) -> bool:
        """Remember a task that expires at `until`; whether there was room. Raises SessionEnded."""
        return self._add(key, expires_at, "tasks", MAX_TASKS, f"{_TASK}{task_id}", until)

    def remove_task(self, key: str, task_id: str) -> None:
        """Remember a task no longer."""
        self._remove(key, "tasks", f"{_TASK}{task_id}")

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

    def subscribe(self, key: str, expires_at: int, uri: str) -> bool:
        """Subscribe to a resource; whether there was room. Raises SessionEnded."""
        return self._add(key, expires_at, "uris", MAX_URIS, _attribute_of(uri), uri)

    def unsubscribe(self, key: str, uri: str) -> None:
        """Unsubscribe from a resource; from one that it is not subscribed to as well."""
        self._remove(key, "uris", _attribute_of(uri))

    def _add(
        self, key: str, expires_at: int, count: str, most: int, name: str, value: str | int
    ) -> bool:
        """Add an attribute to those that `count` counts, unless there are so many."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression="SET #name = :value, #expiresAt = :expiresAt ADD #count :one",
                # Races: the client ends its session, adds the same twice, or several at once, of
                # which the last is one too many.
                ConditionExpression="attribute_not_exists(#ended) AND attribute_not_exists(#name) "
                "AND (attribute_not_exists(#count) OR #count < :most)",
                ExpressionAttributeNames={
                    "#name": name,
                    "#count": count,
                    "#ended": "ended",
                    "#expiresAt": "expiresAt",
                },
                ExpressionAttributeValues={
                    ":value": to_attribute(value),
                    ":one": to_attribute(1),
                    ":most": to_attribute(most),
                    ":expiresAt": to_attribute(expires_at // 1000 + ITEM_KEPT_SECONDS),
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            item = existing_item(error)
            if "ended" in item:
                raise SessionEnded from None
            return name in item
        return True

    def _remove(self, key: str, count: str, name: str) -> None:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression="REMOVE #name ADD #count :less",
                # Race: it is removed twice, and would be counted down twice.
                ConditionExpression="attribute_exists(#name)",
                ExpressionAttributeNames={"#name": name, "#count": count},
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
