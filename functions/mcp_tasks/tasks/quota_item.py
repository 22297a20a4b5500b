"""A caller's quota item, and the conditional update that adds an entry to it. Pure.

    pk             open                                tat            checkedAt
    tasks#<hash>   {<task id>: <time of the entry>}    see RateLimit  see CallerQuotas
    calls#<hash>   {<call id>: <until when>}

One item holds all that one caller has open of a kind. So one write checks the limit and adds the
entry, and an entry that is added twice is one entry. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..aws.dynamodb_values import from_attribute, to_attribute
from .rate_limit import RateLimit

ITEM_KEPT_MS: Final = 400 * 24 * 3600 * 1000
"""How long a caller's item is kept after its last use; longer than any task lives."""


@dataclass(frozen=True, slots=True)
class QuotaItem:
    """A caller's quota item as it was read."""

    open: dict[str, int]
    tat: int
    checked_at: int


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to add to a caller's quota item."""

    entry_id: str
    value: int
    max_open: int
    """How many entries the item may have; 0 for no limit."""
    rate_limit: RateLimit | None
    now: int


@dataclass(frozen=True, slots=True)
class _Update:
    """The parts of an UpdateItem's expressions."""

    sets: list[str]
    conditions: list[str]
    names: dict[str, str]
    values: dict[str, Any]


def quota_item_of(item: Mapping[str, Any]) -> QuotaItem:
    """An item in DynamoDB's notation as a QuotaItem."""
    row = {name: from_attribute(value) for name, value in item.items()}
    return QuotaItem(row["open"], row.get("tat", 0), row.get("checkedAt", 0))


def add_entry_request(entry: NewEntry, *, exists: bool, ahead: bool) -> dict[str, Any]:
    """The UpdateItem arguments that add an entry.

    `exists` and `ahead` say what the item is believed to be: whether there is one, and whether its
    `tat` is ahead of the clock. The condition fails when that is wrong.
    """
    update = _Update(
        ["#expiresAt = :expires"],
        [],
        {"#open": "open", "#expiresAt": "expiresAt"},
        {":expires": (entry.now + ITEM_KEPT_MS) // 1000},
    )
    # Races: two calls add the last entry, or go ahead of the clock at the same moment. Each write
    # counts the entries and adds its own at once, so one of them fails.
    _count(entry, update, exists)
    if entry.rate_limit is not None:
        _advance(entry.rate_limit, entry.now, update, exists=exists, ahead=ahead)
    return {
        "UpdateExpression": "SET " + ", ".join(update.sets),
        "ConditionExpression": " AND ".join(update.conditions),
        "ExpressionAttributeNames": update.names,
        "ExpressionAttributeValues": {n: to_attribute(v) for n, v in update.values.items()},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _count(entry: NewEntry, update: _Update, exists: bool) -> None:
    if exists and entry.max_open:
        update.conditions.extend(("attribute_exists(#open)", "size(#open) < :max"))
        update.sets.append("#open.#entry = :value")
        update.names["#entry"] = entry.entry_id
        update.values.update({":value": entry.value, ":max": entry.max_open})
        return
    # Race: two calls are a caller's first. The second must not overwrite the first's entry.
    #
    # Without a limit nobody counts the entries: the last one is enough to recognise a write that is
    # repeated after a lost answer.
    update.conditions.append(f"attribute_{'exists' if exists else 'not_exists'}(#open)")
    update.sets.append("#open = :open")
    update.values[":open"] = {entry.entry_id: entry.value}


def _advance(limit: RateLimit, now: int, update: _Update, *, exists: bool, ahead: bool) -> None:
    update.names["#tat"] = "tat"
    if exists and ahead:
        update.sets.append("#tat = #tat + :interval")
        update.conditions.append("#tat > :now AND #tat <= :latest")
        update.values.update(
            {":interval": limit.interval_ms, ":now": now, ":latest": now + limit.max_ahead_ms}
        )
        return
    update.sets.append("#tat = :next")
    update.values[":next"] = now + limit.interval_ms
    if exists:
        update.conditions.append("(attribute_not_exists(#tat) OR #tat <= :now)")
        update.values[":now"] = now
