"""Idempotency keys: by a client's key, a repeated call gets the task that the first call created.

    pk                                taskId   call                          createdAt   expiresAtMs
    key#<hash of principal and key>   its id   <hash of tool and arguments>  the task's  the task's

A key is written before its task, so that of several requests with one key only one creates a task.
It is valid until the task expires (IETF draft, "The Idempotency-Key HTTP Header Field"). It can be
claimed anew a little later, when the task has expired by every clock: otherwise a new task could
repeat the work of one that other requests still get.
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
"""How much later than its task's expiry a key can be claimed anew. Clocks may be two minutes apart;
the start of the task, or a response that names it, may be under way for a minute and a half."""

ITEM_KEPT_MS: Final = 24 * 3600 * 1000
"""How much later than its task's expiry DynamoDB may remove a key's item."""


class IdempotencyKeyReused(Exception):
    """The key was used for a call of another tool, or with other arguments."""


@dataclass(frozen=True, slots=True)
class KeyedTask:
    """The task that a key stands for. Times are milliseconds."""

    task_id: str
    call: str
    """A hash of the tool and its arguments."""
    created_at: int
    expires_at: int
    """When the task expires; the key can be claimed anew `FREE_AFTER_MS` later."""


class IdempotencyKeys:
    """The idempotency keys of all callers."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def find(self, principal: str, key: str, call: str, now: int) -> KeyedTask | None:
        """The task that a key stands for, which may have expired a moment ago; None when none.

        Raises IdempotencyKeyReused.
        """
        response = self._client.get_item(
            TableName=self._table, Key=_key(principal, key), ConsistentRead=True
        )
        item = response.get("Item")
        return None if item is None else _found(item, call, now)

    def claim(self, principal: str, key: str, wanted: KeyedTask, now: int) -> KeyedTask:
        """Let a key stand for the task `wanted`, unless it stands for another task already.

        Returns the task that it stands for. Raises IdempotencyKeyReused when that is another
        call's.
        """
        item = {
            **_key(principal, key),
            "taskId": to_attribute(wanted.task_id),
            "call": to_attribute(wanted.call),
            "createdAt": to_attribute(wanted.created_at),
            "expiresAtMs": to_attribute(wanted.expires_at),
            "expiresAt": to_attribute((wanted.expires_at + ITEM_KEPT_MS) // 1000),
        }
        try:
            # Race: requests with one key come at the same moment; one of them creates the task, and
            # the others get it. A function whose clock is behind may still return a task that has
            # expired by this clock, so the key can be claimed FREE_AFTER_MS later; DynamoDB may
            # keep its item for days.
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
        """Delete a key whose task could not be created, so that the call can be repeated."""
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
