"""What each caller has open, so that it cannot have too much: tasks that are not over, and listens.

    pk              open                          tat
    tasks#<hash>    {<task id>: <taken at>}       when the caller will have used up what it may
    listens#<hash>  {<listen id>: <until>}

One item of a table holds all that one caller has open of a kind: the limit is checked and a place
is taken by one conditional write, and a place that is taken twice is one place.

Whoever ends a task gives nothing back. When no place is left, the tasks' own rows are asked which
of them are over. So a place cannot leak, however a task ends, and whatever is lost on the way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import from_attribute, to_attribute
from .errors import Busy
from .task_table import MAX_BATCH_ROWS, TaskTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ATTEMPTS: Final = 12
"""How often a place is tried for while others of the same caller come and go."""

GRACE_MS: Final = 60_000
"""How long a place may be taken before its task is there."""

LOOK_EVERY_MS: Final = 2_000
"""When no task was over, how long until the rows are asked again."""

FORGET_MS: Final = 400 * 24 * 3600 * 1000
"""How long a caller's item is kept after its last use; longer than any task lives."""

Over = Callable[[Mapping[str, int]], Collection[str]]
"""Which of what is open, by id, is not open any more."""


class QuotaExceeded(Exception):
    """The caller has as many open as it may."""


class RateLimited(Exception):
    """The caller opens more in a short time than it may."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(f"{retry_after_ms} ms too early")
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many a minute: all of them at once, or evenly (the generic cell rate algorithm)."""

    per_minute: int

    @property
    def interval_ms(self) -> int:
        """The time that one of them uses up."""
        return max(1, 60_000 // self.per_minute)

    @property
    def ahead_ms(self) -> int:
        """How far ahead of the clock a caller may be, and still begin one."""
        return self.interval_ms * (self.per_minute - 1)


@dataclass(frozen=True, slots=True)
class _Item:
    open: dict[str, int]
    tat: int
    looked_at: int


class CallerQuotas:
    """The places of all callers."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def acquire_task(
        self,
        principal: str,
        task_id: str,
        task_table: TaskTable,
        most: int,
        pace: RateLimit | None,
        now: int,
    ) -> None:
        """Take a place for a task that is about to be written; 0 for `most` is no limit.

        Raises NoPlace, TooFast, and Busy when others of the same caller were always faster.
        """
        if most or pace:
            key = _key("tasks", principal)
            self._take(
                key, task_id, now, most, pace, now, lambda open_: _ended(open_, task_table, now)
            )

    def release_task(self, principal: str, task_id: str) -> None:
        """Give the place back of a task that could not be written."""
        self._drop(_key("tasks", principal), [task_id])

    def acquire_listen(
        self, principal: str, listen_id: str, until: int, most: int, now: int
    ) -> None:
        """Take a place for a listen, which is given back by `give_listen`, or by the time.

        Raises NoPlace, and Busy.
        """
        if most:
            key = _key("listens", principal)
            self._take(key, listen_id, until, most, None, now, lambda open_: _past(open_, now))

    def release_listen(self, principal: str, listen_id: str) -> None:
        """Give a listen's place back; one that was not taken is none."""
        self._drop(_key("listens", principal), [listen_id])

    def _take(
        self,
        key: dict[str, Any],
        place: str,
        value: int,
        most: int,
        pace: RateLimit | None,
        now: int,
        over: Over,
    ) -> None:
        exists, ahead = True, False
        for _ in range(ATTEMPTS):
            old = self._write(key, place, value, most, pace, now, exists=exists, ahead=ahead)
            if old is None:
                return
            exists = bool(old)
            if not exists:
                continue
            item = _item(old)
            if place in item.open:
                return  # by an attempt whose answer was lost
            if pace and item.tat > now + pace.ahead_ms:
                raise RateLimited(item.tat - now - pace.ahead_ms)
            ahead = item.tat > now
            if most and len(item.open) >= most:
                self._make_room(key, item, now, over)
        raise Busy("too many at once of one caller")

    def _write(
        self,
        key: dict[str, Any],
        place: str,
        value: int,
        most: int,
        pace: RateLimit | None,
        now: int,
        *,
        exists: bool,
        ahead: bool,
    ) -> dict[str, Any] | None:
        """Take the place if the item is as believed; else return it as it is."""
        names = {"#open": "open", "#expiresAt": "expiresAt"}
        values: dict[str, Any] = {":value": value, ":expires": (now + FORGET_MS) // 1000}
        sets = ["#expiresAt = :expires"]
        # Races: two calls take the last place, or go ahead of the clock at the same moment. Each
        # write counts what is there and adds to it at once, so one of them fails.
        if exists:
            conditions = ["attribute_exists(#open)"]
            if most:
                sets.append("#open.#place = :value")
                names["#place"] = place
                conditions.append("size(#open) < :most")
                values[":most"] = most
            else:
                # Nobody counts them: the last is enough to know a repeated write by.
                sets.append("#open = :open")
                values[":open"] = {place: value}
                del values[":value"]
        else:
            # Race: two calls are a caller's first. The second must not overwrite the first's place.
            conditions = ["attribute_not_exists(#open)"]
            sets.append("#open = :open")
            values[":open"] = {place: value}
            del values[":value"]
        if pace:
            names["#tat"] = "tat"
            if not exists or not ahead:
                sets.append("#tat = :next")
                values[":next"] = now + pace.interval_ms
                if exists:
                    conditions.append("(attribute_not_exists(#tat) OR #tat <= :now)")
                    values[":now"] = now
            else:
                sets.append("#tat = #tat + :interval")
                conditions.append("#tat > :now AND #tat <= :latest")
                values |= {
                    ":interval": pace.interval_ms,
                    ":now": now,
                    ":latest": now + pace.ahead_ms,
                }
        try:
            self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression="SET " + ", ".join(sets),
                ConditionExpression=" AND ".join(conditions),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={n: to_attribute(v) for n, v in values.items()},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return existing_item(error)
        return None

    def _make_room(self, key: dict[str, Any], item: _Item, now: int, over: Over) -> None:
        """Give back what is over. Raises NoPlace when nothing is."""
        if item.looked_at > now - LOOK_EVERY_MS:
            raise QuotaExceeded
        gone = over(item.open)
        if gone:
            self._drop(key, gone)
            return
        # A caller that goes on trying costs one write and no reads until it is time to look again.
        # Race: the item expired since it was read. An item that says no more than this would be of
        # no use to anybody, and stay for good.
        try:
            self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression="SET #lookedAt = :now",
                ConditionExpression="attribute_exists(#open)",
                ExpressionAttributeNames={"#lookedAt": "lookedAt", "#open": "open"},
                ExpressionAttributeValues={":now": to_attribute(now)},
            )
        except ClientError as error:
            existing_item(error)
        raise QuotaExceeded

    def _drop(self, key: dict[str, Any], quotas: Collection[str]) -> None:
        names = {"#open": "open"} | {f"#p{n}": place for n, place in enumerate(quotas)}
        try:
            self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression="REMOVE " + ", ".join(f"#open.#p{n}" for n in range(len(quotas))),
                # Race: the item expired since it was read. A path into nothing is an error, and
                # without the condition the update would make an item that holds nothing.
                ConditionExpression="attribute_exists(#open)",
                ExpressionAttributeNames=names,
            )
        except ClientError as error:
            existing_item(error)


def hashed(*parts: str) -> str:
    """A key of fixed length for what clients choose the length of."""
    digest = hashlib.sha256()
    for part in parts:
        text = part.encode()
        digest.update(b"%d:%b" % (len(text), text))
    return digest.hexdigest()


def _key(kind: str, principal: str) -> dict[str, Any]:
    return {"pk": {"S": f"{kind}#{hashed(principal)}"}}


def _item(item: Mapping[str, Any]) -> _Item:
    row = {name: from_attribute(value) for name, value in item.items()}
    return _Item(row["open"], row.get("tat", 0), row.get("lookedAt", 0))


def _ended(open_: Mapping[str, int], task_table: TaskTable, now: int) -> list[str]:
    """Of the tasks that have a place, up to a hundred that need none, the oldest first."""
    oldest = sorted(open_, key=lambda task_id: open_[task_id])
    for start in range(0, len(oldest), MAX_BATCH_ROWS):
        batch = oldest[start : start + MAX_BATCH_ROWS]
        live = task_table.are_live(batch, now)
        gone = [t for t in batch if not live.get(t, open_[t] > now - GRACE_MS)]
        if gone:
            return gone
    return []


def _past(open_: Mapping[str, int], now: int) -> list[str]:
    return [place for place, until in open_.items() if until <= now][:MAX_BATCH_ROWS]
