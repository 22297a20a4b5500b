"""The items of a caller in the table of mailboxes: its live mailboxes, and what was delivered.

pk              sk                   attributes                        what it is
caller#<hash>   mailboxes            live, tat                         see `live_mailboxes`
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
from .live_mailboxes import (
    CallerMailboxes,
    LiveMailbox,
    add_mailbox_request,
    as_map,
    caller_mailboxes_of,
    tasks_hash,
)
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
        new = LiveMailbox(
            secrets.token_hex(8),
            subscriber.client,
            tasks_hash(task_ids),
            until + GRACE_MS,
            secrets.token_hex(3),
        )
        found = self._read(caller)
        for attempt in range(MAX_ATTEMPTS):
            if limits.rate_limit:
                limits.rate_limit.check(found.tat, now)
            mailbox = self._take_over(caller, found, new, task_ids, now)
            if mailbox is None:
                number = found.number_for(new, limits.max_open, now, attempt)
                mailbox = Mailbox(caller, number, new)
            existing = self._add(mailbox, found, limits.rate_limit, now)
            if existing is None or _has(existing, mailbox):
                replaced = found.live(now).get(mailbox.number)
                return mailbox, replaced if replaced and replaced.id != mailbox.id else None
            found = existing
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
        self._update(mailbox, "REMOVE #live.#number")

    def put_back(self, mailbox: Mailbox, now: int) -> None:
        """Release a mailbox that was taken over and not used, as it was."""
        self._set_released(mailbox, min(now + REUSABLE_MS, mailbox.follows_until))

    def live_ids(self, caller: str, now: int) -> set[str]:
        """The ids of a caller's live mailboxes."""
        return {mailbox.id for mailbox in self._read(caller).live(now).values()}

    def _take_over(
        self,
        caller: str,
        found: CallerMailboxes,
        new: LiveMailbox,
        task_ids: Collection[str],
        now: int,
    ) -> Mailbox | None:
        """The released mailbox of a client that shares most with these tasks, if there is one."""
        live = found.live(now)
        released = {n: m for n, m in live.items() if m.released and m.client == new.client}
        if not released:
            return None
        candidates = []
        for item in query(self._client, self._table, caller, RELEASED):
            number = int(item["sk"].removeprefix(RELEASED))
            delivered = json.loads(item["delivered"])
            shared = [delivered[task_id] for task_id in task_ids if task_id in delivered]
            if number in released and released[number].id == item["mailbox"] and shared:
                taken = replace(new, id=item["mailbox"])
                mailbox = Mailbox(caller, number, taken, item["followsUntil"], delivered, True)
                # Most tasks, then the latest revisions: an older mailbox would repeat changes.
                candidates.append((len(shared), sum(shared), number, mailbox))
        return max(candidates)[-1] if candidates else None

    def _read(self, caller: str) -> CallerMailboxes:
        # Consistent: `deliver` has seen a `task#` item that was written after this one.
        response: Mapping[str, Any] = self._client.get_item(
            TableName=self._table, Key=attributes(pk=caller, sk=LIVE), ConsistentRead=True
        )
        return caller_mailboxes_of(response.get("Item", {}))

    def _add(
        self, mailbox: Mailbox, found: CallerMailboxes, rate_limit: RateLimit | None, now: int
    ) -> CallerMailboxes | None:
        """Add a mailbox to its caller's; None when it was added, else what the caller has."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=attributes(pk=mailbox.caller, sk=LIVE),
                **add_mailbox_request(mailbox.number, mailbox.live, found, rate_limit, now),
            )
        except ClientError as error:
            return caller_mailboxes_of(existing_item(error))
        return None

    def _set_released(self, mailbox: Mailbox, until: int) -> None:
        released = as_map(replace(mailbox.live, until=until, released=True))
        self._update(mailbox, "SET #live.#number = :released", {":released": released})

    def _update(
        self, mailbox: Mailbox, update: str, values: Mapping[str, Any] | None = None
    ) -> None:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=attributes(pk=mailbox.caller, sk=LIVE),
                UpdateExpression=update,
                # Race: the mailbox's time was up, or it was replaced or taken over meanwhile. Its
                # number is another subscription's.
                ConditionExpression="#live.#number.#token = :token",
                ExpressionAttributeNames={
                    "#live": "live",
                    "#number": str(mailbox.number),
                    "#token": "token",
                },
                ExpressionAttributeValues=attributes(
                    **{":token": mailbox.live.token}, **(values or {})
                ),
            )
        except ClientError as error:
            existing_item(error)


def _has(found: CallerMailboxes, mailbox: Mailbox) -> bool:
    """Whether the subscription has its mailbox: by an attempt whose answer was lost."""
    added = found.mailboxes.get(mailbox.number)
    return added is not None and added.token == mailbox.live.token
