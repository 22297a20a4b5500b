"""Idempotency keys: which task a client's key stands for.

    pk                                  what it is
    key#<hash of principal and key>     the task, what was called with it, and until when

A key is written before its task is, so that of all requests with one key only one makes a task. It
is good for as long as the task lives (IETF draft, "The Idempotency-Key HTTP Header Field"). It is
free a little later, when the task has expired by every clock: earlier, a new task could do the work
of one that others are still told of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import from_attribute, to_attribute
from .caller_key import caller_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

FREE_AFTER_MS: Final = 300_000
"""How much later than its task expires a key is free. Clocks may be two minutes apart; the start of
the task, or an answer that names it, may be under way for a minute and a half."""

LINGER_MS: Final = 24 * 3600 * 1000
"""How much later than it expires DynamoDB may remove a key."""


class IdempotencyKeyReused(Exception):
    """The key stands for another call already."""


@dataclass(frozen=True, slots=True)
class KeyedTask:
    """What a key stands for. Times are milliseconds."""

    task_id: str
    call: str
    """A hash of the tool and its arguments."""
    created_at: int
    expires_at: int
    """When the task expires; the key is free `FREE_AFTER_MS` later."""


class IdempotencyKeys:
    """The keys of all callers."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def find(self, principal: str, key: str, call: str, now: int) -> KeyedTask | None:
        """What the key stands for, if it is taken; that may just have expired. Raises KeyReused."""
        response = self._client.get_item(
            TableName=self._table, Key=_key(principal, key), ConsistentRead=True
        )
        item = response.get("Item")
        return None if item is None else _found(item, call, now)

    def claim(self, principal: str, key: str, wanted: KeyedTask, now: int) -> KeyedTask:
        """Let the key stand for a new task, unless it stands for one already; returns which.

        Raises KeyReused when that one was another call's.
        """
        item = {
            **_key(principal, key),
            "taskId": to_attribute(wanted.task_id),
            "call": to_attribute(wanted.call),
            "createdAt": to_attribute(wanted.created_at),
            "expiresAtMs": to_attribute(wanted.expires_at),
            "expiresAt": to_attribute((wanted.expires_at + LINGER_MS) // 1000),
        }
        try:
            # Race: requests with one key come at the same moment; one of them makes the task, and
            # the others get it. By a clock that is behind, others may still be told of a task that
            # has expired by this one: its key is free later, though DynamoDB may keep it for days.
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(pk) OR expiresAtMs <= :expired",
                ExpressionAttributeValues={":expired": to_attribute(now - FREE_AFTER_MS)},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return _found(existing_item(error), wanted.call, now) or wanted
        return wanted

    def release(self, principal: str, key: str, task_id: str) -> None:
        """Free a key whose task could not be made, so that the call can be repeated with it."""
        try:
            # Race: the key expired, and stands for a newer task by now.
            self._client.delete_item(
                TableName=self._table,
                Key=_key(principal, key),
                ConditionExpression="taskId = :task",
                ExpressionAttributeValues={":task": to_attribute(task_id)},
            )
        except ClientError as error:
            existing_item(error)


def _key(principal: str, key: str) -> dict[str, Any]:
    return caller_key("key", principal, key)


def _found(item: dict[str, Any], call: str, now: int) -> KeyedTask | None:
    row = {name: from_attribute(value) for name, value in item.items()}
    if row["expiresAtMs"] <= now - FREE_AFTER_MS:
        return None
    if row["call"] != call:
        raise IdempotencyKeyReused
    return KeyedTask(row["taskId"], row["call"], row["createdAt"], row["expiresAtMs"])
