"""The items of a caller in the table of mailboxes: its live mailboxes, and what was delivered.

pk              sk                   attributes                        what it is
caller#<hash>   mailboxes            live, tat, writtenBy              see `live_mailboxes`
caller#<hash>   released#<number>    mailbox, delivered, followsUntil  what the client of a
                                                                       released mailbox was sent
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ..aws.conditional_check import existing_item
from ..tasks.caller_key import caller_key
from ..tasks.errors import Busy
from ..tasks.principals import role_of
from ..tasks.rate_limit import RateLimit
from .live_mailboxes import CallerMailboxes, LiveMailbox, as_map, caller_mailboxes_of, tasks_hash
from .mailbox import GRACE_MS, REUSABLE_MS, Mailbox, Subscriber
from .mailbox_items import attributes, expires_at, query

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_ATTEMPTS: Final = 12
"""How often a write is tried while other subscriptions of the same caller begin and end."""

LIVE: Final = "mailboxes"
RELEASED: Final = "released#"
"""Sort keys of a caller's items."""


@dataclass(frozen=True, slots=True)
class SubscriptionLimits:
    """The limits of one caller."""

    max_open: int = 0
    """Live mailboxes; 0 for as many as an item holds."""
    rate_limit: RateLimit | None = None


class MailboxQuota:
    """How many live mailboxes each caller has, and how fast it may subscribe.

    With `per_role`, the sessions of a role are one caller.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, per_role: bool = False) -> None:
        self._client = client
        self._table = table
        self._per_role = per_role

    def acquire(
        self,
        subscriber: Subscriber,
        task_ids: Collection[str],
        until: int,
        limits: SubscriptionLimits,
        now: int,
    ) -> tuple[Mailbox, LiveMailbox | None]:
        """A live mailbox for a subscription until a time, and the one that it has replaced.

        It is the released mailbox of the same client that shares most with these tasks; or else a
        new one. Raises QuotaExceeded, RateLimited, and Busy when other subscriptions were faster
        each time.
        """
        principal = subscriber.principal
        counted = role_of(principal) if self._per_role else principal
        caller = caller_key("caller", counted)["pk"]["S"]
        new_id, write = secrets.token_hex(8), secrets.token_hex(8)
        tasks = tasks_hash(task_ids)
        new = LiveMailbox(new_id, subscriber.client, tasks, until + GRACE_MS)
        item = self._read(caller)
        for _ in range(MAX_ATTEMPTS):
            found = caller_mailboxes_of(item, now)
            tat = limits.rate_limit.admit(found.tat, now) if limits.rate_limit else found.tat
            mailbox = self._take_over(caller, found, new, task_ids)
            if mailbox is None:
                number = found.number_for(new.client, new.tasks, limits.max_open)
                mailbox = Mailbox(caller, number, new)
            live = {**found.live, mailbox.number: mailbox.live}
            existing = self._write(caller, CallerMailboxes(live, tat, write), found.written_by)
            # An attempt whose answer was lost has written it, too.
            if existing is None or existing.get("writtenBy") == {"S": write}:
                replaced = found.live.get(mailbox.number)
                return mailbox, replaced if replaced and replaced.id != mailbox.id else None
            item = existing
        raise Busy("other subscriptions of the same caller were faster each time")

    def release(self, mailbox: Mailbox, now: int) -> None:
        """Let a mailbox receive for a while, for the next subscription of the same client.

        A mailbox that was replaced meanwhile stays replaced, and one whose time is up stays closed:
        it may have missed a change.
        """
        if now >= mailbox.live.until:
            return
        until = min(now + REUSABLE_MS, mailbox.follows_until)
        # First, because whoever finds the mailbox released reads this.
        try:
            self._client.put_item(
                TableName=self._table,
                Item=attributes(
                    pk=mailbox.caller,
                    sk=f"{RELEASED}{mailbox.number}",
                    mailbox=mailbox.id,
                    delivered=json.dumps(mailbox.delivered),
                    followsUntil=mailbox.follows_until,
                    expiresAt=expires_at(until),
                ),
            )
        except (BotoCoreError, ClientError):
            self.close(mailbox)
            raise
        self._set_released(mailbox, until)

    def close(self, mailbox: Mailbox) -> None:
        """Let a mailbox receive no more."""
        self._update(mailbox, "SET #writtenBy = :write REMOVE #live.#number")

    def put_back(self, mailbox: Mailbox, now: int) -> None:
        """Release a mailbox that was taken over and not used, as it was."""
        self._set_released(mailbox, min(now + REUSABLE_MS, mailbox.follows_until))

    def live_ids(self, caller: str, now: int) -> set[str]:
        """The ids of a caller's live mailboxes."""
        return {
            mailbox.id for mailbox in caller_mailboxes_of(self._read(caller), now).live.values()
        }

    def _take_over(
        self,
        caller: str,
        found: CallerMailboxes,
        new: LiveMailbox,
        task_ids: Collection[str],
    ) -> Mailbox | None:
        """The released mailbox of a client that shares most with these tasks, if there is one."""
        released = found.released_by(new.client)
        if not released:
            return None
        candidates = []
        for item in query(self._client, self._table, caller, RELEASED):
            number = int(item["sk"].removeprefix(RELEASED))
            delivered = json.loads(item["delivered"])
            shared = [delivered[task_id] for task_id in task_ids if task_id in delivered]
            if number in released and released[number].id == item["mailbox"] and shared:
                live = replace(new, id=item["mailbox"])
                taken = Mailbox(caller, number, live, item["followsUntil"], delivered, True)
                # Most tasks, then the latest revisions: an older mailbox would repeat changes.
                candidates.append((len(shared), sum(shared), number, taken))
        return max(candidates)[-1] if candidates else None

    def _read(self, caller: str) -> Mapping[str, Any]:
        # Consistent: `deliver` has seen a `task#` item that was written after this one.
        response: Mapping[str, Any] = self._client.get_item(
            TableName=self._table, Key=attributes(pk=caller, sk=LIVE), ConsistentRead=True
        )
        item: Mapping[str, Any] = response.get("Item", {})
        return item

    def _write(
        self, caller: str, mailboxes: CallerMailboxes, seen: str | None
    ) -> Mapping[str, Any] | None:
        """Write a caller's item; None when it was written, else what is there instead."""
        latest = max([mailboxes.tat, *(live.until for live in mailboxes.live.values())])
        values = {
            ":live": {str(number): as_map(live) for number, live in mailboxes.live.items()},
            ":tat": mailboxes.tat,
            ":write": mailboxes.written_by,
            ":expires": expires_at(latest + REUSABLE_MS),
        }
        # Race: two subscriptions take the last number, or the same released mailbox, at once; or
        # another ends meanwhile. Whoever has not seen the last write reads again.
        condition = "attribute_not_exists(#writtenBy)"
        if seen is not None:
            condition, values[":seen"] = "#writtenBy = :seen", seen
        try:
            self._client.update_item(
                TableName=self._table,
                Key=attributes(pk=caller, sk=LIVE),
                UpdateExpression="SET #live = :live, #tat = :tat, #writtenBy = :write, "
                "#expiresAt = :expires",
                ConditionExpression=condition,
                ExpressionAttributeNames=_names("live", "tat", "writtenBy", "expiresAt"),
                ExpressionAttributeValues=attributes(**values),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return existing_item(error)
        return None

    def _set_released(self, mailbox: Mailbox, until: int) -> None:
        released = as_map(replace(mailbox.live, until=until, released=True))
        self._update(mailbox, "SET #live.#number = :released, #writtenBy = :write", released)

    def _update(
        self, mailbox: Mailbox, update: str, released: dict[str, Any] | None = None
    ) -> None:
        values: dict[str, Any] = {":id": mailbox.id, ":write": secrets.token_hex(8)}
        if released is not None:
            values[":released"] = released
        try:
            self._client.update_item(
                TableName=self._table,
                Key=attributes(pk=mailbox.caller, sk=LIVE),
                UpdateExpression=update,
                # Race: the mailbox's time was up, or it was replaced. Its number may be another's.
                ConditionExpression="#live.#number.#id = :id",
                ExpressionAttributeNames={
                    **_names("live", "id", "writtenBy"),
                    "#number": str(mailbox.number),
                },
                ExpressionAttributeValues=attributes(**values),
            )
        except ClientError as error:
            existing_item(error)


def _names(*attribute_names: str) -> dict[str, str]:
    return {f"#{name}": name for name in attribute_names}
