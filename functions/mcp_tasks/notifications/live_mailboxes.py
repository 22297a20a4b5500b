"""The live mailboxes of one caller, and which of them a new subscription gets. Pure.

    pk              sk         live                                                         tat
    caller#<hash>   mailboxes  {<number>: {id, client, tasks, until, released, token}}      see
                                                                                            RateLimit

`deliver` puts changes into live mailboxes only, and one item names all that a caller has. Their
numbers are below the caller's limit, so there are no more, whatever the caller's clients call
themselves; and one write begins, ends or replaces a mailbox, however many tasks it is for. A task
belongs to one caller, so the limit is also that of the mailboxes that receive one task's changes.
Times are milliseconds since the epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..aws.dynamodb_values import from_attribute
from ..tasks.quotas import QuotaExceeded
from ..tasks.rate_limit import RateLimit
from .mailbox_items import attributes

HASH_LENGTH: Final = 8
"""Hexadecimal digits of a client's and of the tasks' hash, which tell the mailboxes of one caller
apart. An item with ten mailboxes is one write unit with them: 1 KB."""

ITEM_KEPT_MS: Final = 24 * 3600 * 1000
"""How long a caller's item is kept after its last subscription began; longer than any lasts."""

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
    token: str
    """Random hexadecimal digits of the subscription that has it, or had it last."""
    released: bool = False
    """Its subscription has ended. It waits for the next one of the same client."""


@dataclass(frozen=True, slots=True)
class CallerMailboxes:
    """What one caller has."""

    exists: bool = False
    """Whether there is an item of the caller."""
    mailboxes: Mapping[int, LiveMailbox] = field(default_factory=dict)
    """By number, those included whose time is up."""
    tat: int = 0
    """See RateLimit."""

    def live(self, now: int) -> dict[int, LiveMailbox]:
        """Those whose time is not up."""
        return {n: mailbox for n, mailbox in self.mailboxes.items() if mailbox.until > now}

    def number_for(self, new: LiveMailbox, max_live: int, now: int, attempt: int) -> int:
        """The number of a new mailbox; the mailbox that has it is replaced.

        At the limit, a released mailbox gives way, the oldest first; and then an open one that
        names the same tasks for the same client, whose connection is probably lost. The open
        subscription of another client never does. Raises QuotaExceeded.
        """
        live = self.live(now)
        # The token chooses, so that two that begin at once seldom choose the same.
        choice = int(new.token, 16)
        if free := sorted(set(range(max_live or MAX_LIVE)) - live.keys()):
            return free[choice % len(free)]
        released = [n for n, m in live.items() if m.released]
        same = [n for n, m in live.items() if (m.client, m.tasks) == (new.client, new.tasks)]
        if not released and not same:
            raise QuotaExceeded
        oldest = sorted(released or same, key=lambda number: live[number].until)[: attempt + 1]
        return oldest[choice % len(oldest)]


@dataclass(slots=True)
class _Update:
    """The parts of an UpdateItem's expressions."""

    values: dict[str, Any]
    sets: list[str] = field(default_factory=lambda: ["#expiresAt = :expires"])
    conditions: list[str] = field(default_factory=list)
    names: dict[str, str] = field(
        default_factory=lambda: {"#live": "live", "#expiresAt": "expiresAt"}
    )


def caller_mailboxes_of(item: Mapping[str, Any]) -> CallerMailboxes:
    """A caller's item, in DynamoDB's notation; empty when there is none."""
    if not item:
        return CallerMailboxes()
    mailboxes = from_attribute(item["live"])
    tat = from_attribute(item["tat"]) if "tat" in item else 0
    return CallerMailboxes(True, {int(n): LiveMailbox(**m) for n, m in mailboxes.items()}, tat)


def as_map(mailbox: LiveMailbox) -> dict[str, Any]:
    """A mailbox as the item keeps it."""
    return {name: value for name, value in asdict(mailbox).items() if value is not False}


def add_mailbox_request(
    number: int,
    mailbox: LiveMailbox,
    found: CallerMailboxes,
    rate_limit: RateLimit | None,
    now: int,
) -> dict[str, Any]:
    """The UpdateItem arguments that give a number to a mailbox, and count a subscription."""
    update = _Update(values={":expires": (now + ITEM_KEPT_MS) // 1000})
    _add(number, mailbox, found, update)
    if rate_limit is not None:
        _advance(rate_limit, found.tat, now, update)
    return {
        "UpdateExpression": "SET " + ", ".join(update.sets),
        "ConditionExpression": " AND ".join(update.conditions),
        "ExpressionAttributeNames": update.names,
        "ExpressionAttributeValues": attributes(**update.values),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _add(number: int, mailbox: LiveMailbox, found: CallerMailboxes, update: _Update) -> None:
    if not found.exists:
        # Race: two subscriptions are a caller's first. The second must not overwrite the first's.
        update.conditions.append("attribute_not_exists(#live)")
        update.sets.append("#live = :live")
        update.values[":live"] = {str(number): as_map(mailbox)}
        return
    update.sets.append("#live.#number = :mailbox")
    update.names["#number"] = str(number)
    update.values[":mailbox"] = as_map(mailbox)
    if number in found.mailboxes:
        # Race: two take the same released mailbox, or one replaces it meanwhile.
        update.conditions.append("#live.#number.#token = :seen")
        update.names["#token"] = "token"
        update.values[":seen"] = found.mailboxes[number].token
    else:
        # Races: the item expired since it was read; and two take the same number.
        update.conditions += ["attribute_exists(#live)", "attribute_not_exists(#live.#number)"]


def _advance(rate_limit: RateLimit, tat: int, now: int, update: _Update) -> None:
    update.names["#tat"] = "tat"
    if tat > now:
        # Race: two use up the last of a minute.
        update.conditions.append("#tat <= :latest")
        update.sets.append("#tat = #tat + :interval")
        update.values[":latest"] = now + rate_limit.max_ahead_ms
        update.values[":interval"] = rate_limit.interval_ms
    else:
        # Race: another goes ahead of the clock at the same moment.
        update.conditions.append("(attribute_not_exists(#tat) OR #tat <= :now)")
        update.sets.append("#tat = :next")
        update.values |= {":now": now, ":next": now + rate_limit.interval_ms}


def tasks_hash(task_ids: Iterable[str]) -> str:
    """A hash of the tasks that a subscription names, in whatever order."""
    return hashlib.sha256("\n".join(sorted(set(task_ids))).encode()).hexdigest()[:HASH_LENGTH]
