"""Callers' quotas: how many tasks and calls one caller may have open at once.

What a caller has open are the entries of its quota item (see `quota_item`). A call removes its
entry when it ends. Nothing removes a task's entry when the task ends: only when the quota is
used up are the tasks' rows read, and the entries of ended tasks removed. So no entry can leak,
however a task ends, and whatever is lost on the way. A task that was cancelled has ended when its
last step cannot run any more (`last_step.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import to_attribute
from .batch_read import MAX_BATCH_ROWS
from .caller_key import caller_key
from .errors import Busy
from .principals import role_of
from .quota_item import NewEntry, QuotaItem, add_entry_request, quota_item_of
from .rate_limit import RateLimit
from .task_table import TaskTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_ATTEMPTS: Final = 12
"""How often a write is tried while other calls of the same caller change the item."""

TASK_CREATION_MS: Final = 60_000
"""How long an entry may stand whose task has no row: the task is being created."""

RECHECK_AFTER_MS: Final = 2_000
"""When no task had ended, how long until the tasks' rows are read again."""

FindEnded = Callable[[Mapping[str, int]], Collection[str]]
"""Of the entries of an item, the ids whose task or call has ended."""


class QuotaExceeded(Exception):
    """The caller has as many open as it may."""


class CallerQuotas:
    """The quotas of all callers. With `per_role`, the sessions of a role are one caller."""

    def __init__(self, client: DynamoDBClient, table: str, *, per_role: bool = False) -> None:
        self._client = client
        self._table = table
        self._per_role = per_role

    def acquire_task(
        self,
        principal: str,
        task_id: str,
        task_table: TaskTable,
        max_open: int,
        rate_limit: RateLimit | None,
        now: int,
    ) -> None:
        """Count a task that is about to be written; a limit of 0 or None is no limit.

        Raises QuotaExceeded, RateLimited, and Busy when other calls of the caller were faster each
        time.
        """
        if max_open or rate_limit:
            entry = NewEntry(task_id, now, max_open, rate_limit, now)
            key = self._key("tasks", principal)
            self._add(key, entry, lambda open_: _ended_tasks(open_, task_table, now))

    def release_task(self, principal: str, task_id: str) -> None:
        """Remove the entry of a task that could not be written."""
        self._remove(self._key("tasks", principal), [task_id])

    def acquire_call(
        self, principal: str, call_id: str, until: int, max_open: int, now: int
    ) -> None:
        """Count a call that runs within its request until `release_call`, or until `until`.

        Raises QuotaExceeded, and Busy.
        """
        entry = NewEntry(call_id, until, max_open, None, now)
        self._add(self._key("calls", principal), entry, lambda open_: _past(open_, now))

    def release_call(self, principal: str, call_id: str) -> None:
        """Remove a call's entry, if there is one."""
        self._remove(self._key("calls", principal), [call_id])

    def _key(self, kind: str, principal: str) -> dict[str, Any]:
        return caller_key(kind, role_of(principal) if self._per_role else principal)

    def _add(self, key: dict[str, Any], entry: NewEntry, find_ended: FindEnded) -> None:
        exists, ahead = True, False
        for _ in range(MAX_ATTEMPTS):
            request = add_entry_request(entry, exists=exists, ahead=ahead)
            old = self._write(key, request)
            if old is None:
                return
            exists = bool(old)
            if not exists:
                continue
            item = quota_item_of(old)
            if entry.entry_id in item.open:
                return  # written by an attempt whose answer was lost
            if entry.rate_limit:
                entry.rate_limit.check(item.tat, entry.now)
            ahead = item.tat > entry.now
            if entry.max_open and len(item.open) >= entry.max_open:
                self._remove_ended(key, item, entry.now, find_ended)
        raise Busy("other calls of the same caller were faster each time")

    def _write(self, key: dict[str, Any], request: dict[str, Any]) -> dict[str, Any] | None:
        """Write an entry; None when it was written, else the item that its condition failed on."""
        try:
            self._client.update_item(TableName=self._table, Key=key, **request)
        except ClientError as error:
            return existing_item(error)
        return None

    def _remove_ended(
        self, key: dict[str, Any], item: QuotaItem, now: int, find_ended: FindEnded
    ) -> None:
        """Remove the entries of what has ended. Raises QuotaExceeded when nothing has."""
        if item.checked_at > now - RECHECK_AFTER_MS:
            raise QuotaExceeded
        ended = find_ended(item.open)
        if ended:
            self._remove(key, ended)
            return
        # A caller that goes on trying costs one write, and no reads for RECHECK_AFTER_MS.
        # Race: the item expired since it was read. An item that has nothing but this time would be
        # of no use, and DynamoDB would never delete it.
        try:
            self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression="SET #checkedAt = :now",
                ConditionExpression="attribute_exists(#open)",
                ExpressionAttributeNames={"#checkedAt": "checkedAt", "#open": "open"},
                ExpressionAttributeValues={":now": to_attribute(now)},
            )
        except ClientError as error:
            existing_item(error)
        raise QuotaExceeded

    def _remove(self, key: dict[str, Any], entry_ids: Collection[str]) -> None:
        placeholders = {f"#entry{n}": entry_id for n, entry_id in enumerate(entry_ids)}
        try:
            self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression="REMOVE " + ", ".join(f"#open.{name}" for name in placeholders),
                # Race: the item expired since it was read. A path into a missing map is an error,
                # and without the condition the update would make an item that holds nothing.
                ConditionExpression="attribute_exists(#open)",
                ExpressionAttributeNames={"#open": "open"} | placeholders,
            )
        except ClientError as error:
            existing_item(error)


def _ended_tasks(open_: Mapping[str, int], task_table: TaskTable, now: int) -> list[str]:
    """Of the tasks with an entry, up to MAX_BATCH_ROWS that have ended, the oldest first."""
    oldest_first = sorted(open_, key=lambda task_id: open_[task_id])
    for start in range(0, len(oldest_first), MAX_BATCH_ROWS):
        batch = oldest_first[start : start + MAX_BATCH_ROWS]
        is_open = task_table.are_open(batch, now)
        ended = [t for t in batch if not is_open.get(t, open_[t] > now - TASK_CREATION_MS)]
        if ended:
            return ended
    return []


def _past(open_: Mapping[str, int], now: int) -> list[str]:
    """Of entries that say until when they stand, up to MAX_BATCH_ROWS whose time is over."""
    ended = [entry_id for entry_id, until in open_.items() if until <= now]
    return ended[:MAX_BATCH_ROWS]
