"""The mailboxes of subscriptions: what is kept for each of them, in a DynamoDB table of its own.

    pk            sk                  attributes                what it is
    task#<id>     <mailbox>           receivesUntil             a mailbox that gets a task's changes
    mailbox#<id>  <task>#<revision>   detail, arrivedAt         an entry: a change to be delivered
    owner#<hash>  <mailbox>           delivered, receivesUntil, a released mailbox, for the next
                                      reusableUntil             subscription of the same client

A subscription reads only its mailbox, however many tasks it is for. Items live for minutes.
DynamoDB removes them some time after `expiresAt` (seconds), so readers check the other times
(milliseconds) themselves.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..aws.dynamodb_values import from_attribute, to_attribute
from ..tasks.errors import Busy
from .changes import Change, read_change

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_BATCH_WRITES: Final = 25
"""Of one call (DynamoDB API reference, "BatchWriteItem")."""

MAX_WRITE_ATTEMPTS: Final = 6
"""How many calls in a row may leave some of their writes undone."""

REUSABLE_MS: Final = 60_000
"""How long a released mailbox goes on receiving, for the next subscription of its client."""

EXTRA_RECEIVE_MS: Final = 60_000
"""How much longer than necessary a mailbox receives. A client subscribes again and again, and not
every one of its subscriptions has to write all `task#` items again."""


@dataclass(frozen=True, slots=True)
class MailboxEntry:
    """A change in a mailbox, under its sort key."""

    key: str
    change: Change
    arrived_at: int
    """Milliseconds since the epoch."""


@dataclass(slots=True)
class Mailbox:
    """What collects the changes of some tasks for one subscription."""

    id: str
    receives_until: int = 0
    """Milliseconds since the epoch."""
    delivered: dict[str, int] = field(default_factory=dict)
    """The last revision of each task that its client was sent."""


class Mailboxes:
    """The table of mailboxes."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def open(self, owner: str, task_ids: Collection[str], until: int, now: int) -> Mailbox:
        """A mailbox that receives every change of these tasks from now on, until a time.

        It is one that the same owner released a moment ago and that has any of these tasks, with
        the changes since then; or else a new one. `owner` is a hash of the client.
        """
        mailbox = self._take_over(owner, task_ids, now) or Mailbox(secrets.token_hex(16))
        # The other tasks of the mailbox are forgotten, and begin anew in a later subscription.
        mailbox.delivered = {t: mailbox.delivered[t] for t in task_ids if t in mailbox.delivered}
        added = [task_id for task_id in task_ids if task_id not in mailbox.delivered]
        if mailbox.receives_until < until + REUSABLE_MS:
            mailbox.receives_until = until + REUSABLE_MS + EXTRA_RECEIVE_MS
            added = list(task_ids)
        self._write(
            _put(
                pk=f"task#{task_id}",
                sk=mailbox.id,
                receivesUntil=mailbox.receives_until,
                expiresAt=_expires_at(mailbox.receives_until),
            )
            for task_id in added
        )
        return mailbox

    def release(self, owner: str, mailbox: Mailbox, now: int) -> None:
        """Keep a mailbox, which goes on receiving, for the next subscription of the same owner."""
        until = min(now + REUSABLE_MS, mailbox.receives_until)
        self._client.put_item(
            TableName=self._table,
            Item=_attributes(
                pk=f"owner#{owner}",
                sk=mailbox.id,
                delivered=json.dumps(mailbox.delivered),
                reusableUntil=until,
                receivesUntil=mailbox.receives_until,
                expiresAt=_expires_at(until),
            ),
        )

    def deliver(self, change: Change, detail: str, now: int) -> int:
        """Put a change into every mailbox that receives its task's changes; returns their number.

        A change that is delivered twice has one entry. Raises Busy, and ClientError.
        """
        # Race: a subscription opens its mailbox, and then reads the task's item. An eventually
        # consistent read here might miss the mailbox, and the subscription a change after its read.
        receivers = [
            item
            for item in self._query(f"task#{change.task_id}", consistent=True)
            if item["receivesUntil"] > now
        ]
        self._write(
            _put(
                pk=f"mailbox#{item['sk']}",
                sk=_entry_key(change),
                detail=detail,
                arrivedAt=now,
                expiresAt=_expires_at(item["receivesUntil"]),
            )
            for item in receivers
        )
        return len(receivers)

    def entries(self, mailbox: Mailbox) -> list[MailboxEntry]:
        """The entries of a mailbox.

        The read is eventually consistent: it may miss a new entry, and return a removed one.
        """
        return [
            MailboxEntry(item["sk"], read_change(json.loads(item["detail"])), item["arrivedAt"])
            for item in self._query(f"mailbox#{mailbox.id}", consistent=False)
        ]

    def remove(self, mailbox: Mailbox, keys: Iterable[str]) -> None:
        """Remove entries. Raises Busy, and ClientError."""
        pk = f"mailbox#{mailbox.id}"
        self._write({"DeleteRequest": {"Key": _attributes(pk=pk, sk=key)}} for key in keys)

    def _take_over(self, owner: str, task_ids: Collection[str], now: int) -> Mailbox | None:
        """The released mailbox of an owner that shares most with these tasks, if there is one."""
        released = []
        for item in self._query(f"owner#{owner}", consistent=True):
            delivered = json.loads(item["delivered"])
            shared = [delivered[task_id] for task_id in task_ids if task_id in delivered]
            if shared and item["reusableUntil"] > now:
                # Most tasks, then the latest revisions: an older mailbox would repeat changes.
                released.append((len(shared), sum(shared), item["sk"]))
        for *_, mailbox_id in sorted(released, reverse=True):
            # Race: two subscriptions of one client begin at once. Only the one that deletes the
            # item gets the mailbox. With one mailbox, each would get a part of its entries.
            response = self._client.delete_item(
                TableName=self._table,
                Key=_attributes(pk=f"owner#{owner}", sk=mailbox_id),
                ReturnValues="ALL_OLD",
            )
            if "Attributes" in response:
                item = _values(response["Attributes"])
                return Mailbox(item["sk"], item["receivesUntil"], json.loads(item["delivered"]))
        return None

    def _query(self, pk: str, *, consistent: bool) -> Iterator[dict[str, Any]]:
        more: dict[str, Any] = {}
        while True:
            response: Mapping[str, Any] = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": pk}},
                ConsistentRead=consistent,
                **more,
            )
            yield from map(_values, response["Items"])
            if "LastEvaluatedKey" not in response:
                return
            more = {"ExclusiveStartKey": response["LastEvaluatedKey"]}

    def _write(self, requests: Iterable[dict[str, Any]]) -> None:
        """Write all requests, in as few calls as possible. Raises Busy, and ClientError."""
        left = list(requests)
        attempt = 0
        while left:
            if attempt == MAX_WRITE_ATTEMPTS:
                raise Busy(f"DynamoDB did not take {len(left)} writes")
            time.sleep(attempt and 0.02 * 2**attempt)
            batch: Any = {self._table: left[:MAX_BATCH_WRITES]}
            response: Mapping[str, Any] = self._client.batch_write_item(RequestItems=batch)
            refused = response.get("UnprocessedItems", {}).get(self._table, [])
            attempt = attempt + 1 if refused else 0
            left = [*refused, *left[MAX_BATCH_WRITES:]]


def _entry_key(change: Change) -> str:
    return f"{change.task_id}#{change.revision:012}"


def _put(**values: str | int) -> dict[str, Any]:
    return {"PutRequest": {"Item": _attributes(**values)}}


def _attributes(**values: str | int) -> dict[str, Any]:
    return {name: to_attribute(value) for name, value in values.items()}


def _values(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_attribute(value) for name, value in item.items()}


def _expires_at(ms: int) -> int:
    """When DynamoDB may remove an item that is needed until `ms`, in seconds since the epoch."""
    return ms // 1000 + 60
