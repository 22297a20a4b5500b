"""Write conditional updates to the tasks table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from .conditional_update import ConditionalUpdate, refusal, update_request
from .errors import Conflict
from .task import Task
from .task_item import task_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CONFLICT: Final = "TransactionConflictException"
"""A transaction writes the row: its task gets subtasks. botocore does not repeat the call."""
MAX_CONFLICTS: Final = 5


class RowWriter:
    """The one way to change a task's row."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def _update(self, task_id: str, update: ConditionalUpdate, now: int) -> Task:
        """Write an update; returns the task as written. Raises what `refusal` returns."""
        return task_of(self._write(task_id, update, now)["Attributes"])

    def _write(self, task_id: str, update: ConditionalUpdate, now: int) -> Mapping[str, Any]:
        """Write an update; returns DynamoDB's response. Raises what `refusal` returns."""
        written_at, conflicts = now, 0
        while True:
            request = update_request(self._table, task_id, update, now, written_at)
            try:
                return self._client.update_item(**request)
            except ClientError as error:
                if error.response["Error"]["Code"] == CONFLICT and conflicts < MAX_CONFLICTS:
                    conflicts += 1
                    time.sleep(0.02 * 2**conflicts)
                    continue
                refused = refusal(task_id, existing_item(error), update, written_at)
                if not (update.visible and isinstance(refused, Conflict)):
                    raise refused from None
                if refused.task.last_updated_at <= written_at:
                    raise refused from None
                # The row was last written by a clock that is ahead, which may be all that the
                # condition failed on: the write is repeated with the row's own time.
                written_at = refused.task.last_updated_at
