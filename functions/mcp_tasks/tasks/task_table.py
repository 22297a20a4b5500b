"""Tasks as rows of one DynamoDB table. The row is the source of truth; executions follow it.

Every write is conditional: `row_updates` has what is written and on which condition. Reads are
strongly consistent, so a task can be read by the time that its creator receives it (tasks.md, "Task
Creation"). Expiry is checked by every read and in every condition, because DynamoDB deletes expired
rows hours or days late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..payloads.pointer import PayloadPointer
from . import last_step, row_updates
from .batch_read import read_batch
from .errors import ClientCannotAnswer, Conflict, TaskEnded, UnknownTask
from .questions import Ask, kinds
from .reconcile_index import ReconcileIndex
from .row_updates import Answers
from .row_writer import RowWriter
from .state import Status
from .subtask import NO_RELATIVES, Relatives
from .subtask_rows import SubtaskRows
from .task import Task
from .task_item import ITEM_KEPT_MS, item_of, task_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class TaskTable(RowWriter):
    """The operations on tasks, each one call to DynamoDB.

    Ends take what a task's `relatives` are: a row does not end before the task's subtasks.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        super().__init__(client, table)
        self.reconcile_index = ReconcileIndex(client, table)
        self.subtasks = SubtaskRows(client, table)

    def create(self, task: Task) -> None:
        """Write a new task. Raises Conflict when another task has its id."""
        try:
            # Race: a create repeated after a lost answer must not reset a task that already runs.
            self._client.put_item(
                TableName=self._table,
                Item=item_of(task),
                ConditionExpression="attribute_not_exists(taskId)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            found = task_of(existing_item(error))
            if not found.is_same_creation(task):
                raise Conflict(found) from None

    def discard(self, task_id: str, now: int) -> bool:
        """Let a task that has ended expire, by everybody's clock, without its arguments and its
        result; whether there was one. The item is kept for a while, as of every expired task."""
        try:
            # Race: the task expired, and its client has begun another one with the same id.
            self._client.update_item(
                TableName=self._table,
                Key={"taskId": {"S": task_id}},
                UpdateExpression="SET ttlMs = :longAgo - createdAt, expiresAtMs = :longAgo, "
                "expiresAt = :expiresAt REMOVE #input, #result, #error",
                ConditionExpression="#status IN (:completed, :failed, :cancelled)",
                ExpressionAttributeNames={
                    "#status": "status",
                    "#input": "input",
                    "#result": "result",
                    "#error": "error",
                },
                ExpressionAttributeValues={
                    ":longAgo": {"N": "0"},
                    ":expiresAt": {"N": str((now + ITEM_KEPT_MS) // 1000)},
                    **{f":{s.value}": {"S": s.value} for s in Status if s.terminal},
                },
            )
        except ClientError as error:
            existing_item(error)
            return False
        return True

    def get(self, task_id: str, now: int, principal: str | None = None) -> Task:
        """Read a task; for `principal`, or for the server itself when None. Raises UnknownTask."""
        item = self._get_item(task_id)
        # Checked before the row is parsed: else the time that an answer takes would tell another
        # principal's task from none.
        if item is None or (principal is not None and _principal(item) != principal):
            raise UnknownTask(task_id)
        task = task_of(item)
        if task.expired(now):
            raise UnknownTask(task_id)
        return task

    def find(self, task_id: str) -> Task | None:
        """Read a task, also an expired one; None when there is no row."""
        item = self._get_item(task_id)
        return None if item is None else task_of(item)

    def get_many(self, task_ids: Iterable[str], now: int, principal: str) -> dict[str, Task]:
        """Read up to MAX_BATCH_ROWS tasks, by id, without those that `principal` may not see.

        Raises Busy when DynamoDB keeps leaving rows out of its answers.
        """
        items = read_batch(self._client, self._table, task_ids)
        found = (task_of(item) for item in items if _principal(item) == principal)
        return {task.task_id: task for task in found if not task.expired(now)}

    def are_open(self, task_ids: Iterable[str], now: int) -> dict[str, bool]:
        """Whether each of up to MAX_BATCH_ROWS tasks counts in its caller's quota, by id.

        A task without a row is left out. Raises Busy.
        """
        names = {f"#{name}": name for name in last_step.ATTRIBUTES}
        options = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        return {
            item["taskId"]["S"]: last_step.open_at(item, now)
            for item in read_batch(self._client, self._table, task_ids, options)
        }

    def is_running(self, task_id: str, now: int) -> bool:
        """Whether a task goes on; a worker may read no more than that of a row."""
        names = {f"#{name}": name for name in row_updates.READ_BY_WORKER}
        item = self._client.get_item(
            TableName=self._table,
            Key={"taskId": {"S": task_id}},
            ConsistentRead=True,
            ProjectionExpression=", ".join(names),
            ExpressionAttributeNames=names,
        ).get("Item")
        if item is None or int(item["expiresAtMs"]["N"]) <= now:
            return False
        return not Status(item["status"]["S"]).terminal

    def report(self, task_id: str, message: str, now: int) -> None:
        """Set the status message. Raises UnknownTask, and TaskEnded."""
        self._write(task_id, row_updates.report(message), now)

    def store_tool_error(self, task_id: str, message: str, now: int) -> None:
        """Keep a failing step's message for the caller, in case that it ends the execution.

        Raises UnknownTask, and TaskEnded.
        """
        self._write(task_id, row_updates.store_tool_error(message), now)

    def set_undo(self, task_id: str, undo: bool, now: int) -> None:
        """Note whether anything that the task did is to be undone when it is cancelled or fails.

        Raises UnknownTask, and TaskEnded.
        """
        self._write(task_id, row_updates.set_undo(undo), now)

    def ask(self, task_id: str, ask: Ask, now: int) -> None:
        """Open an ask: store its questions and its token, and wait for the client.

        An ask that is there already, answered or not, is left alone: it was delivered twice.
        Raises UnknownTask, TaskEnded, and ClientCannotAnswer.
        """
        try:
            self._update(task_id, row_updates.ask(ask), now)
        except Conflict as conflict:
            if not conflict.task.accepts.issuperset(kinds(ask.questions.values())):
                raise ClientCannotAnswer(conflict.task) from None

    def answer(self, task: Task, answers: Answers, now: int) -> Task:
        """Store answers to questions that were outstanding in `task`.

        The answers are those of the task's principal. The task works again when no question is
        left. Returns the task as written. Raises Conflict when the task's questions changed since
        it was read, TaskEnded, and UnknownTask.
        """
        return self._update(task.task_id, row_updates.answer(task, answers), now)

    def close_ask(self, task: Task, ask_id: str, now: int) -> Task:
        """Close an ask that no state waits for any more; the client need not answer it.

        Raises Conflict when the task's questions changed since it was read, TaskEnded, and
        UnknownTask.
        """
        return self._update(task.task_id, row_updates.close_ask(task, ask_id), now)

    def mark_delivered(self, task_id: str, ask_id: str, now: int) -> None:
        """Remove an ask's token, questions and answers, once its state has received the answers.

        A tombstone stays, so that a late second delivery of the ask cannot open it again.
        """
        with suppress(TaskEnded, UnknownTask, Conflict):
            self._update(task_id, row_updates.mark_delivered(ask_id), now)

    def complete(
        self,
        task_id: str,
        result: dict[str, Any] | PayloadPointer,
        now: int,
        *,
        relatives: Relatives = NO_RELATIVES,
        step_may_run: bool = False,
    ) -> Task:
        """End the task with the result of its tool call; its execution has ended.

        A large result is a pointer. Returns the task as written. Raises TaskEnded when another end
        came first, Conflict when it has other subtasks by now, and UnknownTask.
        """
        update = row_updates.complete(result, relatives, step_may_run=step_may_run)
        return self._update(task_id, update, now)

    def fail(
        self,
        task_id: str,
        error: dict[str, Any],
        now: int,
        *,
        relatives: Relatives = NO_RELATIVES,
        may_run: bool = False,
        step_may_run: bool = False,
    ) -> Task:
        """End the task with a JSON-RPC error, whose message becomes the status message. Its
        execution has ended, unless it `may_run`.

        Returns the task as written. Raises TaskEnded when another end came first, Conflict when it
        has other subtasks or something to undo by now, and UnknownTask.
        """
        update = row_updates.fail(error, relatives, may_run=may_run, step_may_run=step_may_run)
        return self._update(task_id, update, now)

    def start_successor(self, task: Task, now: int) -> Task:
        """Let the task go on in another execution. Returns the task as written.

        Raises Conflict when it does so already, TaskEnded, and UnknownTask.
        """
        return self._update(task.task_id, row_updates.start_successor(task), now)

    def undone(self, task: Task, message: str | None, now: int) -> bool:
        """Note that what a cancelled or failed task did is undone, but for what `message` says.

        Returns False when that was noted before.
        """
        try:
            self._update(task.task_id, row_updates.undone(task, message), now)
        except (TaskEnded, UnknownTask, Conflict):
            return False
        return True

    def request_cancel(self, task_id: str, now: int, principal: str) -> Task:
        """Note that the task is to be cancelled once its subtasks have ended.

        No more of them can begin. Returns the task as written. Raises TaskEnded, and UnknownTask.
        """
        return self._update(task_id, row_updates.request_cancel(principal), now)

    def cancel(
        self, task_id: str, now: int, principal: str, relatives: Relatives = NO_RELATIVES
    ) -> Task:
        """End the task because its client cancelled it; its execution may still run.

        Returns the task as written. Raises TaskEnded when another end came first, Conflict when it
        has other subtasks by now, and UnknownTask.
        """
        return self._update(task_id, row_updates.cancel(principal, relatives), now)

    def expire(
        self,
        task_id: str,
        error: dict[str, Any],
        now: int,
        relatives: Relatives = NO_RELATIVES,
    ) -> Task:
        """End a task whose time to live has passed; its execution may still run.

        Returns the task as written. Raises TaskEnded when it had ended, Conflict when it has other
        subtasks by now, and UnknownTask when there is no row.
        """
        return self._update(task_id, row_updates.expire(error, relatives), now)

    def _get_item(self, task_id: str) -> dict[str, Any] | None:
        response = self._client.get_item(
            TableName=self._table, Key={"taskId": {"S": task_id}}, ConsistentRead=True
        )
        return response.get("Item")


def _principal(item: Mapping[str, Any]) -> str | None:
    """Whose row it is; nobody's, when the row is no task."""
    principal: str | None = item.get("principal", {}).get("S")
    return principal
