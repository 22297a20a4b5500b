"""The mailboxes of subscriptions: what is kept for each of them, in a DynamoDB table of its own.

    pk             sk                   attributes                what it is
    <topic>        <number>             caller, mailbox,          a mailbox that gets the changes of
                                        receivesUntil             a topic as long as it is live
    mailbox#<id>   <task>#<revision>    detail, arrivedAt         an entry: a change to be delivered
    mailbox#<id>   ~replaced                                      the subscription has to end
    caller#<hash>  ...                  see `mailbox_quota`       which mailboxes are live

A topic is a task (`task#<id>`), a resource, a list, or a session. A subscription reads only its
mailbox, however many topics it is for. A caller's mailboxes are numbered, so a topic has no more
items than callers may have mailboxes. Items live for minutes.
DynamoDB removes them some time after `expiresAt` (seconds), so readers check the other times
(milliseconds) themselves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..tasks.errors import Busy
from .changes import read_change, task_topic
from .live_mailboxes import LiveMailbox
from .mailbox import REUSABLE_MS, AnyChange, Mailbox, MailboxEntry, Subscriber
from .mailbox_items import attributes, expires_at, put, query
from .mailbox_quota import MailboxQuota, SubscriptionLimits
from .server_changes import server_change

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_BATCH_WRITES: Final = 25
"""Of one call (DynamoDB API reference, "BatchWriteItem")."""

MAX_WRITE_ATTEMPTS: Final = 6
"""How many calls in a row may leave some of their writes undone."""

EXTRA_RECEIVE_MS: Final = 60_000
"""How much longer than necessary a mailbox's `task#` items are good. A client subscribes again and
again, and not every one of its subscriptions has to write all of them again. A mailbox that is not
live gets nothing, however long its items are good."""

REPLACED: Final = "~replaced"
"""The sort key of what ends a subscription. It comes after every entry."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A mailbox that gets a task's changes."""

    mailbox_id: str
    until: int
    """Milliseconds since the epoch."""


class Mailboxes:
    """The table of mailboxes. With `per_role`, the sessions of a role are one caller."""

    def __init__(self, client: DynamoDBClient, table: str, *, per_role: bool = False) -> None:
        self._client = client
        self._table = table
        self._quota = MailboxQuota(client, table, per_role=per_role)

    def open(
        self,
        subscriber: Subscriber,
        task_ids: Collection[str],
        until: int,
        limits: SubscriptionLimits,
        now: int,
    ) -> Mailbox:
        """A live mailbox for a subscription to some tasks, until a time.

        It is one that the same client released a moment ago and that has any of these tasks, with
        the changes since then; or else a new one. Raises QuotaExceeded, RateLimited, and Busy when
        other subscriptions were faster each time.
        """
        mailbox, replaced = self._quota.acquire(subscriber, task_ids, until, limits, now)
        if replaced is not None and not replaced.released:
            self._end_subscription(replaced)
        return mailbox

    def follow(self, mailbox: Mailbox, followed: Collection[str], until: int) -> None:
        """Let a mailbox receive every change of these tasks and topics from now on, until a time.

        The tasks are those of the mailbox's caller. Raises Busy, and ClientError.
        """
        added = [name for name in followed if name not in mailbox.delivered]
        if mailbox.follows_until < until + REUSABLE_MS:
            mailbox.follows_until = until + REUSABLE_MS + EXTRA_RECEIVE_MS
            added = list(followed)
        self._write(
            put(
                pk=name if "#" in name else task_topic(name),
                sk=str(mailbox.number),
                caller=mailbox.caller,
                mailbox=mailbox.id,
                receivesUntil=mailbox.follows_until,
                expiresAt=expires_at(mailbox.follows_until),
            )
            for name in added
        )

    def add_topic(self, followed: str, added: str, now: int) -> bool:
        """Let the live mailboxes that follow a topic follow another one; whether there are any.

        Raises Busy, and ClientError.
        """
        items = self._items_of(followed, now)
        self._write(
            put(**{**item, "pk": added, "expiresAt": expires_at(item["receivesUntil"])})
            for item in items
        )
        return bool(items)

    def remove_topic(self, followed: str, removed: str, now: int) -> None:
        """Let the mailboxes that follow a topic follow another one no longer."""
        keys = [attributes(pk=removed, sk=item["sk"]) for item in self._items_of(followed, now)]
        self._write({"DeleteRequest": {"Key": key}} for key in keys)

    def _items_of(self, topic: str, now: int) -> list[dict[str, Any]]:
        """The items of the live mailboxes that follow a topic."""
        live = {receiver.mailbox_id for receiver in self.receivers([topic], now)}
        items = query(self._client, self._table, topic) if live else ()
        return [item for item in items if item.get("mailbox") in live]

    def release(self, mailbox: Mailbox, now: int) -> None:
        """Keep a mailbox, which goes on receiving, for the next subscription of the same client."""
        self._quota.release(mailbox, now)

    def close(self, mailbox: Mailbox) -> None:
        """Let a mailbox receive no more: there is no next subscription to these tasks."""
        self._quota.close(mailbox)

    def give_up(self, mailbox: Mailbox, now: int) -> None:
        """End a subscription that has failed. What it took over is left for the next one."""
        if mailbox.as_released:
            self._quota.put_back(mailbox, now)
        else:
            self._quota.close(mailbox)

    def receivers(self, topics: Iterable[str], now: int) -> list[Receiver]:
        """The live mailboxes that follow one of these topics."""
        # Race: a subscription opens its mailbox, and then reads the task's item. An eventually
        # consistent read here might miss the mailbox, and the subscription a change after its read.
        items = [
            item
            for topic in topics
            for item in query(self._client, self._table, topic)
            if item["receivesUntil"] > now
        ]
        callers = {item["caller"] for item in items if "caller" in item}
        live = {caller: self._quota.live_ids(caller, now) for caller in callers}
        # Version 0.2 wrote items without a caller, whose sort key is the mailbox.
        found = [
            Receiver(item.get("mailbox", item["sk"]), item["receivesUntil"])
            for item in items
            if "caller" not in item or item["mailbox"] in live[item["caller"]]
        ]
        return list({receiver.mailbox_id: receiver for receiver in found}.values())

    def put_entries(
        self, change: AnyChange, detail: str, receivers: Collection[Receiver], now: int
    ) -> list[Receiver]:
        """Put a change into mailboxes, by one call; returns those that DynamoDB did not take.

        There may be MAX_BATCH_WRITES receivers. A change that is delivered twice has one entry.
        """
        entries = {
            f"mailbox#{receiver.mailbox_id}": put(
                pk=f"mailbox#{receiver.mailbox_id}",
                sk=change.entry_key,
                detail=detail,
                arrivedAt=now,
                expiresAt=expires_at(receiver.until),
            )
            for receiver in receivers
        }
        left = self._batch(entries.values())
        refused = {request["PutRequest"]["Item"]["pk"]["S"] for request in left}
        return [each for each in receivers if f"mailbox#{each.mailbox_id}" in refused]

    def entries(self, mailbox: Mailbox) -> list[MailboxEntry]:
        """The entries of a mailbox, and in `mailbox` whether it was replaced.

        The read is eventually consistent: it may miss a new entry, and return a removed one.
        """
        items = query(self._client, self._table, f"mailbox#{mailbox.id}", consistent=False)
        found = []
        for item in items:
            if item["sk"] == REPLACED:
                mailbox.replaced = True
            else:
                change = _change(json.loads(item["detail"]))
                found.append(MailboxEntry(item["sk"], change, item["arrivedAt"]))
        return found

    def remove(self, mailbox: Mailbox, keys: Iterable[str]) -> None:
        """Remove entries. Raises Busy, and ClientError."""
        mailbox.as_released = False
        pk = f"mailbox#{mailbox.id}"
        self._write({"DeleteRequest": {"Key": attributes(pk=pk, sk=key)}} for key in keys)

    def _end_subscription(self, replaced: LiveMailbox) -> None:
        """Let the subscription of an open mailbox end."""
        self._client.put_item(
            TableName=self._table,
            Item=attributes(
                pk=f"mailbox#{replaced.id}", sk=REPLACED, expiresAt=expires_at(replaced.until)
            ),
        )

    def _write(self, requests: Iterable[dict[str, Any]]) -> None:
        """Write all requests, in as few calls as possible. Raises Busy, and ClientError."""
        left = list(requests)
        attempt = 0
        while left:
            if attempt == MAX_WRITE_ATTEMPTS:
                raise Busy(f"DynamoDB did not take {len(left)} writes")
            time.sleep(attempt and 0.02 * 2**attempt)
            refused = self._batch(left[:MAX_BATCH_WRITES])
            attempt = attempt + 1 if refused else 0
            left = [*refused, *left[MAX_BATCH_WRITES:]]

    def _batch(self, requests: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Write a batch; returns what DynamoDB had no capacity for."""
        batch: Any = {self._table: list(requests)}
        response: Mapping[str, Any] = self._client.batch_write_item(RequestItems=batch)
        refused: list[dict[str, Any]] = response.get("UnprocessedItems", {}).get(self._table, [])
        return refused


def _change(detail: dict[str, Any]) -> AnyChange:
    return server_change(detail) if "method" in detail else read_change(detail)
