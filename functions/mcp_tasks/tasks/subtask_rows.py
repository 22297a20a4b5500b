"""The rows of a task's subtasks: written together with the task's own, and read together."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from . import subtask_updates
from .batch_read import MAX_BATCH_ROWS, read_batch
from .conditional_update import update_request
from .errors import UnknownTask
from .row_writer import RowWriter
from .task import Task
from .task_item import item_of, task_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

MAX_ADDED: Final = 25
"""Subtasks of one transaction. DynamoDB takes 100 items, and 4 MB (API reference,
"TransactWriteItems"); a new row has up to 100 KB of arguments."""

REFUSED: Final = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
"""Reasons of a transaction that was cancelled (API reference, "TransactWriteItems", "Errors")."""


class SubtasksChanged(Exception):
    """The parent's row was changed since it was read; it has to be read again."""


class SubtaskRows(RowWriter):
    """The operations on the subtasks of tasks."""

    def add(self, parent: Task, subtasks: Sequence[Task], now: int) -> None:
        """Write up to MAX_ADDED new subtasks and their ids in the parent's row: all, or none.

        So a task's `childTaskIds` name tasks that can be read, and a subtask has a parent that
        names it (SEP-2268, "Getting Subtasks").

        Raises SubtasksChanged when another write came first.
        """
        update = subtask_updates.add(parent, tuple(each.task_id for each in subtasks))
        written_at = max(now, parent.last_updated_at)
        request = update_request(self._table, parent.task_id, update, now, written_at)
        writes: list[TransactWriteItemTypeDef] = [
            {
                "Update": {
                    "TableName": self._table,
                    "Key": request["Key"],
                    "UpdateExpression": request["UpdateExpression"],
                    "ConditionExpression": request["ConditionExpression"],
                    "ExpressionAttributeNames": request["ExpressionAttributeNames"],
                    "ExpressionAttributeValues": request["ExpressionAttributeValues"],
                }
            }
        ]
        # Race: another function writes the same subtasks, and one of them runs already.
        writes += [
            {
                "Put": {
                    "TableName": self._table,
                    "Item": item_of(subtask),
                    "ConditionExpression": "attribute_not_exists(taskId)",
                }
            }
            for subtask in subtasks
        ]
        try:
            self._client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            raise _refusal(error) from None

    def begin(self, subtask_id: str, token: str, now: int) -> Task:
        """Note the task token of the parent's state that waits for the subtask's end.

        Returns the subtask as written. Raises TaskEnded, and UnknownTask.
        """
        name = hashlib.sha256(token.encode()).hexdigest()[:16]
        return self._update(subtask_id, subtask_updates.begin(name, token), now)

    def parent_told(self, subtask_id: str, now: int, *, to_be_undone: bool) -> None:
        """Note that the parent of an ended subtask knows of its end, and that its execution has
        ended. It is to be reconciled no more, unless something of it is `to_be_undone`."""
        with suppress(UnknownTask):
            self._update(subtask_id, subtask_updates.parent_told(to_be_undone), now)

    def read(self, subtask_ids: Collection[str]) -> Iterator[Task]:
        """The rows of subtasks, those that there are, also expired ones. Raises Busy."""
        ids = list(subtask_ids)
        for start in range(0, len(ids), MAX_BATCH_ROWS):
            batch = ids[start : start + MAX_BATCH_ROWS]
            rows = read_batch(self._client, self._table, batch)
            found = {task.task_id: task for task in map(task_of, rows)}
            yield from (found[each] for each in batch if each in found)


def _refusal(error: ClientError) -> Exception:
    """SubtasksChanged for a transaction that was cancelled for that; else the error itself."""
    response: Any = error.response
    reasons = {str(each.get("Code")) for each in response.get("CancellationReasons", [])} - {"None"}
    return SubtasksChanged() if reasons and reasons <= REFUSED else error
