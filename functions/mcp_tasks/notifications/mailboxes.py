"""What waits for each listen, in a DynamoDB table of its own.

    pk             sk                     what it is
    task#<id>      <mailbox>              a mailbox follows a task, until a time
    mailbox#<id>   <task>#<revision>      a change that waits to be told
    owner#<hash>   <mailbox>              a mailbox that was left, for the same client's next listen

A listen asks for its mailbox alone, however many tasks it follows. Everything here lives for
minutes; DynamoDB removes what is over in its own time, so every reader looks at the times itself.
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

BATCH: Final = 25
"""Writes of one call (DynamoDB API reference, "BatchWriteItem")."""

WRITE_ATTEMPTS: Final = 6
"""How often a batch is repeated for the writes that DynamoDB did not take."""

LINGER_MS: Final = 60_000
"""How long a mailbox that was left goes on collecting, for the next listen of its client."""

SLACK_MS: Final = 60_000
"""How much longer a mailbox follows its tasks than it has to, so that not every listen of a chain
writes all of that again."""


@dataclass(frozen=True, slots=True)
class MailboxEntry:
    """A change in a mailbox."""

    key: str
    change: Change
    arrived_at: int
    """Milliseconds since the epoch."""


@dataclass(slots=True)
class Mailbox:
    """Where the changes of some tasks go until a time, in milliseconds."""

    id: str
    follows_until: int = 0
    told: dict[str, int] = field(default_factory=dict)
    """What its client knows: the last revision of each task that it was told."""


class Mailboxes:
    """The table of mailboxes."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def open(self, owner: str, task_ids: Collection[str], until: int, now: int) -> Mailbox:
        """A mailbox that receives every change of these tasks from now on, until a time.

        One that the same owner left a moment ago for any of these tasks, with what came since; or
        else a new one. `owner` is a hash of who is listening.
        """
        mailbox = self._take_over(owner, task_ids, now) or Mailbox(secrets.token_hex(16))
        # What is not asked for any more is not followed any more, and begins anew if it comes back.
        mailbox.told = {t: mailbox.told[t] for t in task_ids if t in mailbox.told}
        added = [task_id for task_id in task_ids if task_id not in mailbox.told]
        if mailbox.follows_until < until + LINGER_MS:
            mailbox.follows_until = until + LINGER_MS + SLACK_MS
            added = list(task_ids)
        self._write(
            _put(
                pk=f"task#{task_id}",
                sk=mailbox.id,
                until=mailbox.follows_until,
                expiresAt=_seconds(mailbox.follows_until),
            )
            for task_id in added
        )
        return mailbox

    def leave(self, owner: str, mailbox: Mailbox, now: int) -> None:
        """Keep a mailbox for the next listen of the same owner; it goes on receiving meanwhile."""
        until = min(now + LINGER_MS, mailbox.follows_until)
        self._client.put_item(
            TableName=self._table,
            Item=_item(
                pk=f"owner#{owner}",
                sk=mailbox.id,
                told=json.dumps(mailbox.told),
                until=until,
                followsUntil=mailbox.follows_until,
                expiresAt=_seconds(until),
            ),
        )

    def deliver(self, change: Change, detail: str, now: int) -> int:
        """Put a change into the mailboxes that follow its task; returns how many they are.

        A change that is delivered twice is there once. Raises Busy, and ClientError.
        """
        # Consistent: whoever began to follow and then read the task's row would miss the change
        # that came in between.
        followers = [
            row
            for row in self._query(f"task#{change.task_id}", consistent=True)
            if row["until"] > now
        ]
        self._write(
            _put(
                pk=f"mailbox#{row['sk']}",
                sk=_letter_key(change),
                detail=detail,
                arrivedAt=now,
                expiresAt=_seconds(row["until"]),
            )
            for row in followers
        )
        return len(followers)

    def collect(self, mailbox: Mailbox) -> list[MailboxEntry]:
        """What is in a mailbox. A letter may be there still after `remove`, and come late."""
        return [
            MailboxEntry(row["sk"], read_change(json.loads(row["detail"])), row["arrivedAt"])
            for row in self._query(f"mailbox#{mailbox.id}", consistent=False)
        ]

    def remove(self, mailbox: Mailbox, keys: Iterable[str]) -> None:
        """Throw letters away. Raises Busy, and ClientError."""
        self._write(
            {"DeleteRequest": {"Key": _item(pk=f"mailbox#{mailbox.id}", sk=key)}} for key in keys
        )

    def _take_over(self, owner: str, task_ids: Collection[str], now: int) -> Mailbox | None:
        left = []
        for row in self._query(f"owner#{owner}", consistent=True):
            told = json.loads(row["told"])
            shared = [told[task_id] for task_id in task_ids if task_id in told]
            if shared and row["until"] > now:
                # The one that knows most tasks, and most of them: an older one would tell again.
                left.append((len(shared), sum(shared), row["sk"]))
        for *_, mailbox_id in sorted(left, reverse=True):
            # Race: two listens of one client begin at once. Only one deletes the row that is there,
            # and has the mailbox; each would get a part of its letters otherwise.
            response = self._client.delete_item(
                TableName=self._table,
                Key=_item(pk=f"owner#{owner}", sk=mailbox_id),
                ReturnValues="ALL_OLD",
            )
            if "Attributes" in response:
                row = _row(response["Attributes"])
                return Mailbox(row["sk"], row["followsUntil"], json.loads(row["told"]))
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
            yield from map(_row, response["Items"])
            if "LastEvaluatedKey" not in response:
                return
            more = {"ExclusiveStartKey": response["LastEvaluatedKey"]}

    def _write(self, requests: Iterable[dict[str, Any]]) -> None:
        """Write all of it, in as few calls as may be."""
        left = list(requests)
        attempt = 0
        while left:
            if attempt == WRITE_ATTEMPTS:
                raise Busy(f"{len(left)} writes were not taken")
            time.sleep(attempt and 0.02 * 2**attempt)
            batch: Any = {self._table: left[:BATCH]}
            response: Mapping[str, Any] = self._client.batch_write_item(RequestItems=batch)
            refused = response.get("UnprocessedItems", {}).get(self._table, [])
            attempt = attempt + 1 if refused else 0
            left = [*refused, *left[BATCH:]]


def _letter_key(change: Change) -> str:
    return f"{change.task_id}#{change.revision:012}"


def _put(**values: str | int) -> dict[str, Any]:
    return {"PutRequest": {"Item": _item(**values)}}


def _item(**values: str | int) -> dict[str, Any]:
    return {name: to_attribute(value) for name, value in values.items()}


def _row(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_attribute(value) for name, value in item.items()}


def _seconds(ms: int) -> int:
    """When DynamoDB may remove an item."""
    return ms // 1000 + 60
