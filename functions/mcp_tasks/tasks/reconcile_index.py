"""The sparse index of the tasks that have to be reconciled, and the writes of its attributes.

The index has the partition key `reconcileShard` and the sort key `reconcileAt`. A row is in it as
long as its execution may run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import to_attribute
from .conditional_update import status_in, status_values
from .reconcile_schedule import INDEX, MAX_RECONCILE_INTERVAL_MS, shard_of
from .state import Status, sources
from .task import Task

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef

_NAMES: Final = {"#reconcileAt": "reconcileAt", "#reconcileShard": "reconcileShard"}
_TERMINAL: Final = tuple(state for state in Status if state.terminal)


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """An entry of the index: a task, and when it was to be reconciled."""

    task_id: str
    reconcile_at: int


class ReconcileIndex:
    """The index of one tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def tasks_to_reconcile(
        self, shard: str, now: int, page_size: int, *, latest_first: bool = False
    ) -> Iterator[ScheduledTask]:
        """The tasks of a shard whose reconcileAt has passed, the earliest first, or the latest.

        A query reads `page_size` of them. The index lags behind the rows: the rows decide.
        """
        query: QueryInputTypeDef = {
            "TableName": self._table,
            "IndexName": INDEX,
            "KeyConditionExpression": "reconcileShard = :shard AND reconcileAt <= :now",
            "ExpressionAttributeValues": {":shard": {"S": shard}, ":now": {"N": str(now)}},
            "Limit": page_size,
            "ScanIndexForward": not latest_first,
        }
        while True:
            response = self._client.query(**query)
            for item in response["Items"]:
                yield ScheduledTask(item["taskId"]["S"], int(item["reconcileAt"]["N"]))
            if "LastEvaluatedKey" not in response:
                return
            query["ExclusiveStartKey"] = response["LastEvaluatedKey"]

    def claim(self, task: Task, now: int) -> bool:
        """Set when to reconcile a task the next time, before it is reconciled now.

        Returns False when another function has claimed it.
        """
        values: dict[str, Any] = {
            ":next": task.next_reconcile_at(now),
            ":shard": shard_of(task.task_id),
        }
        names = dict(_NAMES)
        # Races: two sweeps, or a sweep and a poll, find the same task; one of them reconciles it,
        # and a task whose reconciling fails again and again does not keep the others waiting. Or
        # its execution has ended meanwhile: the task must not come back into the index. Or the row
        # was removed: the write would make a row that holds nothing.
        if task.reconcile_at is None:  # a row of version 3, which is reconciled while it runs
            names["#status"] = "status"
            values |= status_values(*sources(Status.WORKING))
            condition = (
                f"attribute_not_exists(#reconcileAt) AND {status_in(*sources(Status.WORKING))}"
            )
        else:
            values[":seen"] = task.reconcile_at
            condition = "#reconcileAt = :seen"
        return self._update(
            task.task_id,
            "SET #reconcileAt = :next, #reconcileShard = :shard",
            condition=condition,
            names=names,
            values=values,
        )

    def claim_for_repeat(self, task: Task, delay_ms: int, now: int) -> bool:
        """Claim a task for a request that is repeated, whose first attempt may have died.

        `delay_ms` is the delay to its reconcile that the last write of the row has set. It is
        longer once the task was claimed: a client that repeats a request again and again makes one
        call to Step Functions, and not as many as it sends requests.
        """
        if task.reconcile_at is None or task.reconcile_at > task.last_updated_at + delay_ms:
            return False
        return self.claim(task, now)

    def postpone(self, entry: ScheduledTask, now: int) -> None:
        """Reconcile a row that this code cannot read only after the longest interval."""
        self._update(
            entry.task_id,
            "SET #reconcileAt = :next",
            # Race: code that can read the row has reconciled or ended the task since the query; the
            # time that it set stands.
            condition="#reconcileAt = :seen",
            names={"#reconcileAt": "reconcileAt"},
            values={":next": now + MAX_RECONCILE_INTERVAL_MS, ":seen": entry.reconcile_at},
        )

    def remove(self, task_id: str) -> None:
        """Take a terminal task out of the index: its execution has ended as well."""
        self._update(
            task_id,
            "REMOVE #reconcileAt, #reconcileShard",
            # Race: the row was removed since it was read; the write would make an empty one.
            condition=status_in(*_TERMINAL),
            names={**_NAMES, "#status": "status"},
            values=status_values(*_TERMINAL),
        )

    def _update(
        self,
        task_id: str,
        expression: str,
        *,
        condition: str,
        names: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> bool:
        """One conditional UpdateItem; False when its condition did not hold."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key={"taskId": {"S": task_id}},
                UpdateExpression=expression,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={n: to_attribute(v) for n, v in values.items()},
            )
        except ClientError as error:
            existing_item(error)
            return False
        return True
