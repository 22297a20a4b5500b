"""The live mailboxes of one caller, and which of them a new subscription gets. Pure.

    pk              sk         live                                               tat
    caller#<hash>   mailboxes  {<number>: {id, client, tasks, until, released}}   see RateLimit

`deliver` puts changes into live mailboxes only, and one item names all that a caller has. So their
number is bounded, whatever the caller's clients call themselves; and one write begins, ends or
replaces a mailbox, however many tasks it is for. A task belongs to one caller, so the bound is also
that of the mailboxes that receive one task's changes. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..aws.dynamodb_values import from_attribute
from ..tasks.quotas import QuotaExceeded

HASH_LENGTH: Final = 12
"""Hexadecimal digits of a client's and of the tasks' hash, which tell the mailboxes of one caller
apart. An item with ten mailboxes is one write unit with them: 1 KB."""

MAX_LIVE: Final = 500
"""Live mailboxes of a caller without a limit: its item stays below 400 KB."""


@dataclass(frozen=True, slots=True)
class LiveMailbox:
    """A mailbox that receives changes."""

    id: str
    client: str
    """A hash of the client, by which its next subscription is recognized."""
    tasks: str
    """A hash of the ids that the subscription names."""
    until: int
    """When it stops receiving."""
    released: bool = False
    """Its subscription has ended. It waits for the next one of the same client."""


@dataclass(frozen=True, slots=True)
class CallerMailboxes:
    """What one caller has."""

    live: Mapping[int, LiveMailbox] = field(default_factory=dict)
    tat: int = 0
    """See RateLimit."""
    written_by: str | None = None
    """A random text, another one for each write; None when there is no item."""

    def released_by(self, client: str) -> dict[int, LiveMailbox]:
        """The mailboxes that wait for a client's next subscription, by number."""
        return {n: m for n, m in self.live.items() if m.released and m.client == client}

    def number_for(self, client: str, tasks: str, max_live: int) -> int:
        """The number of a new mailbox; the mailbox that has it is replaced.

        At the limit, a released mailbox gives way, the oldest first; and then an open one that
        names the same tasks for the same client, whose connection is probably lost. The open
        subscription of another client never does. Raises QuotaExceeded.
        """
        if len(self.live) < (max_live or MAX_LIVE):
            return min(set(range(len(self.live) + 1)) - self.live.keys())
        released = [n for n, m in self.live.items() if m.released]
        same = [n for n, m in self.live.items() if (m.client, m.tasks) == (client, tasks)]
        if not released and not same:
            raise QuotaExceeded
        return min(released or same, key=lambda number: self.live[number].until)


def caller_mailboxes_of(item: Mapping[str, Any], now: int) -> CallerMailboxes:
    """A caller's item in DynamoDB's notation, without the mailboxes whose time is up."""
    if not item:
        return CallerMailboxes()
    live = {int(n): LiveMailbox(**m) for n, m in from_attribute(item["live"]).items()}
    return CallerMailboxes(
        {number: mailbox for number, mailbox in live.items() if mailbox.until > now},
        from_attribute(item["tat"]),
        from_attribute(item["writtenBy"]),
    )


def as_map(mailbox: LiveMailbox) -> dict[str, Any]:
    """A mailbox as the item keeps it."""
    return {name: value for name, value in asdict(mailbox).items() if value is not False}


def tasks_hash(task_ids: Iterable[str]) -> str:
    """A hash of the tasks that a subscription names, in whatever order."""
    return hashlib.sha256("\n".join(sorted(set(task_ids))).encode()).hexdigest()[:HASH_LENGTH]
