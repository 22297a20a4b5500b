"""Tasks as rows of one DynamoDB table. The row is the truth; executions follow it.

Every write is conditional, and the conditions carry the correctness: handlers run concurrently, in
any order, more than once. Reads are strongly consistent, so a task is readable by the time its
creator has been told of it (tasks.md, "Task Creation"). Expiry is checked on read and in every
condition, because DynamoDB deletes expired rows hours or days late.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import to_attribute
from ..payloads.pointer import PayloadPointer
from . import reconcile_schedule as due
from .questions import Ask, kinds
from .state import Status, sources
from .task import Task
from .task_item import ask_attributes, item_of, task_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef, UpdateItemInputTypeDef

BATCH: Final = 100
"""Rows that one call may read."""

READ_ATTEMPTS: Final = 6
"""How often a read is repeated for the rows that DynamoDB left out of its answer."""


class UnknownTask(LookupError):
    """There is no such task, it has expired, or it is somebody else's; callers cannot tell."""


class TaskEnded(Exception):
    """The task is terminal, so the write did not happen; `task` is the row as it was found."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.task_id)
        self.task = task


class ClientCannotAnswer(Exception):
    """The client that made the task did not declare that it can be asked."""


class Conflict(Exception):
    """Somebody else changed what this write had read; `task` is the row as it was found."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.task_id)
        self.task = task


class Busy(Exception):
    """DynamoDB has no room for this call at the moment; what it was to do may be tried again."""


class TaskTable:
    """The operations on tasks, each one call to DynamoDB."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def create(self, task: Task) -> None:
        """Write a new task.

        Raises Conflict when the id is taken by another.
        """
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
            if (found.created_at, found.input) != (task.created_at, task.input):
                raise Conflict(found) from None

    def get(self, task_id: str, now: int, principal: str | None = None) -> Task:
        """Read a task; for `principal`, or for the server itself when None.

        Raises UnknownTask.
        """
        response = self._client.get_item(
            TableName=self._table, Key=_key(task_id), ConsistentRead=True
        )
        item = response.get("Item")
        # Before anything else is done with it: to be told apart by time, somebody else's task would
        # have to differ from none in more than what the call to DynamoDB takes.
        if item is None or (principal is not None and item["principal"]["S"] != principal):
            raise UnknownTask(task_id)
        task = task_of(item)
        if task.expired(now):
            raise UnknownTask(task_id)
        return task

    def peek(self, task_id: str) -> Task | None:
        """Read a task that may have expired; None when there is no such row."""
        response = self._client.get_item(
            TableName=self._table, Key=_key(task_id), ConsistentRead=True
        )
        item = response.get("Item")
        return None if item is None else task_of(item)

    def get_many(self, task_ids: Iterable[str], now: int, principal: str) -> dict[str, Task]:
        """Read up to 100 tasks of `principal` at once, by id; what it may not see is left out.

        Raises Busy when DynamoDB goes on leaving some out of its answers.
        """
        items = self._read(task_ids)
        found = (task_of(item) for item in items if item["principal"]["S"] == principal)
        return {task.task_id: task for task in found if not task.expired(now)}

    def live(self, task_ids: Iterable[str], now: int) -> dict[str, bool]:
        """Whether each of up to 100 tasks is not over yet; what is not there is left out.

        Raises Busy.
        """
        wanted = {
            "ProjectionExpression": "taskId, #status, expiresAtMs",
            "ExpressionAttributeNames": {"#status": "status"},
        }
        return {
            item["taskId"]["S"]: not Status(item["status"]["S"]).terminal
            and int(item["expiresAtMs"]["N"]) > now
            for item in self._read(task_ids, wanted)
        }

    def _read(
        self, task_ids: Iterable[str], options: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Up to 100 rows, those that there are."""
        keys = [_key(task_id) for task_id in task_ids]
        items: list[dict[str, Any]] = []
        for attempt in range(READ_ATTEMPTS):
            if not keys:
                break
            # An answer holds 16 MB at most, and what a busy table gives: the rest is asked again.
            time.sleep(attempt and 0.02 * 2**attempt)
            request: Any = {self._table: {"Keys": keys, "ConsistentRead": True, **(options or {})}}
            response: Mapping[str, Any] = self._client.batch_get_item(RequestItems=request)
            items += response.get("Responses", {}).get(self._table, [])
            keys = response.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
        if keys:
            raise Busy(f"{len(keys)} tasks could not be read")
        return items

    def report(self, task_id: str, message: str, now: int) -> None:
        """Set the status message.

        Raises UnknownTask, or TaskEnded when nobody listens any more.
        """
        # Race: a step outlives its execution's end; a late report must not touch a terminal task.
        self._update(
            task_id,
            now,
            condition=_status_in(Status.WORKING, Status.INPUT_REQUIRED),
            sets={"statusMessage": message},
        )

    def explain(self, task_id: str, message: str, now: int) -> None:
        """Keep what a failing step has to say to the caller, in case that the execution ends by it.

        Raises UnknownTask, or TaskEnded when nobody listens any more.
        """
        # Race: a step outlives its execution's end; nothing is written to a terminal task.
        self._update(
            task_id,
            now,
            condition=_status_in(Status.WORKING, Status.INPUT_REQUIRED),
            sets={"toolError": message},
            touch=False,
        )

    def ask(self, task_id: str, ask: Ask, now: int) -> None:
        """Open an ask: store its questions and its token, and wait for the client.

        An ask that is already there, answered or not, is left alone: its state was delivered twice.
        Raises UnknownTask, TaskEnded, or ClientCannotAnswer.
        """
        wanted = sorted(kinds(ask.questions.values()))
        try:
            # Races: the task was cancelled while the state started (status); Step Functions or
            # Lambda delivered the ask twice, and the first was answered meanwhile (its id).
            self._update(
                task_id,
                now,
                condition=f"{_status_in(*sources(Status.INPUT_REQUIRED))}"
                " AND attribute_not_exists(asks.#ask)"
                + "".join(f" AND attribute_exists(accepts.#{kind})" for kind in wanted),
                sets={"asks.#ask": ask_attributes(ask)},
                names={"#ask": ask.id} | {f"#{kind}": kind.value for kind in wanted},
                status=Status.INPUT_REQUIRED,
                revise_inputs=True,
            )
        except Conflict as conflict:
            if not conflict.task.accepts.issuperset(wanted):
                raise ClientCannotAnswer(task_id) from None

    def answer(
        self,
        task: Task,
        answers: Mapping[str, Mapping[str, dict[str, Any]]],
        now: int,
    ) -> Task:
        """Store answers, by ask id and key, to questions that were outstanding in `task`.

        They are the principal's, whose task it has to be, in the row as in `task`.

        The task works again when no question is left. Returns the task as written.
        Raises Conflict when the task's questions changed since it was read, TaskEnded, UnknownTask.
        """
        left = set(task.outstanding) - {key for given in answers.values() for key in given}
        names: dict[str, str] = {}
        sets: dict[str, Any] = {}
        for a, (ask_id, given) in enumerate(answers.items()):
            names[f"#ask{a}"] = ask_id
            for k, (key, answer) in enumerate(given.items()):
                names[f"#key{a}x{k}"] = key
                sets[f"asks.#ask{a}.answers.#key{a}x{k}"] = json.dumps(answer)
        # Races: two clients answer the same key, or different keys at once, each believing the
        # other's to be open; a question is asked between read and write. Each bumps inputRevision.
        # Without it a key is answered twice, or the task waits with nothing left to answer.
        return self._update(
            task.task_id,
            now,
            condition=f"{_status_in(Status.INPUT_REQUIRED)} AND inputRevision = :seen",
            sets=sets,
            names=names,
            values={":seen": task.input_revision},
            status=Status.INPUT_REQUIRED if left else Status.WORKING,
            principal=task.principal,
            revise_inputs=True,
            # Whoever stores an answer may die before it is sent to the waiting state.
            reconcile_at=now + due.FIRST_MS,
        )

    def close(self, task: Task, ask_id: str, now: int) -> Task:
        """Close an ask that nothing waits for any more; the client need not answer it.

        Raises Conflict when the task's questions changed since it was read, TaskEnded, UnknownTask.
        """
        left = any(ask.outstanding for ask in task.asks.values() if ask.id != ask_id)
        # Races: an answer to it, or to another ask, is stored between read and write; a question
        # is asked. Each bumps inputRevision. Without it an answer that a state waits for is thrown
        # away, or the task works on while something is to be answered.
        return self._update(
            task.task_id,
            now,
            condition=f"{_status_in(Status.INPUT_REQUIRED)} AND inputRevision = :seen",
            sets={"asks.#ask": {"delivered": True}},
            names={"#ask": ask_id},
            values={":seen": task.input_revision},
            status=Status.INPUT_REQUIRED if left else Status.WORKING,
            revise_inputs=True,
        )

    def delivered(self, task_id: str, ask_id: str, now: int) -> None:
        """Forget an ask's token, questions and answers, once its waiting state has the answers.

        A tombstone stays, so that a late second delivery of the ask cannot open it again.
        """
        # Race: the execution may end, or the row expire, as soon as the token is sent; nothing may
        # be written to a terminal row, and an expired one must not be written back to life.
        with suppress(TaskEnded, UnknownTask, Conflict):
            self._update(
                task_id,
                now,
                condition=f"{_status_in(Status.WORKING, Status.INPUT_REQUIRED)}"
                " AND attribute_exists(asks.#ask)",
                sets={"asks.#ask": {"delivered": True}},
                names={"#ask": ask_id},
                touch=False,
            )

    def complete(self, task_id: str, result: dict[str, Any] | PayloadPointer, now: int) -> Task:
        """End the task with the result of its tool call, whose execution is over; a large result is
        elsewhere. Returns the task as it was written.

        Raises TaskEnded when another end came first, and UnknownTask.
        """
        sets: dict[str, Any] = (
            {"resultPayload": asdict(result)}
            if isinstance(result, PayloadPointer)
            else {"result": json.dumps(result)}
        )
        return self._end(task_id, Status.COMPLETED, now, sets)

    def fail(
        self,
        task_id: str,
        error: dict[str, Any],
        message: str,
        now: int,
        *,
        may_run: bool = False,
    ) -> Task:
        """End the task with a JSON-RPC error, and return it as it was written; its execution is
        over, unless it `may_run`.

        Raises TaskEnded when another end came first, and UnknownTask.
        """
        sets = {"error": json.dumps(error), "statusMessage": message}
        return self._end(task_id, Status.FAILED, now, sets, may_run=may_run)

    def cancel(self, task_id: str, now: int, principal: str) -> Task:
        """End the task at the client's wish, and return it as it was written.

        Raises TaskEnded when another end came first, and UnknownTask.
        """
        return self._end(task_id, Status.CANCELLED, now, {}, principal=principal, may_run=True)

    def expire(self, task_id: str, error: dict[str, Any], message: str, now: int) -> Task:
        """End a task whose time to live has passed, and return it as it was written.

        Raises TaskEnded when it was over before, and UnknownTask when there is no row.
        """
        sets = {"error": json.dumps(error), "statusMessage": message}
        return self._end(task_id, Status.FAILED, now, sets, may_run=True, expired=True)

    def _end(
        self,
        task_id: str,
        status: Status,
        now: int,
        sets: dict[str, Any],
        *,
        principal: str | None = None,
        may_run: bool = False,
        expired: bool = False,
    ) -> Task:
        # Races: cancel against complete, events that arrive late or twice, a redriven execution.
        # The first writer wins; whoever comes later is told so and changes nothing.
        return self._update(
            task_id,
            now,
            condition=_status_in(*sources(status)),
            sets=sets,
            status=status,
            # What only a running task needs goes, answers and tokens first of all.
            removes=(
                *("asks", "input", "toolError"),
                *(() if "statusMessage" in sets else ("statusMessage",)),
            ),
            principal=principal,
            # Who ended it for its execution may die before that is stopped.
            reconcile_at=now + due.STOP_AGAIN_MS if may_run else None,
            over=not may_run,
            expired=expired,
        )

    def due_in(
        self, shard: str, now: int, page: int, *, latest: bool = False
    ) -> Iterator[due.DueTask]:
        """The tasks of a shard that are due, those that are so for longest first, or last; one
        query finds so many. The index lags behind the rows a little: they have the say.
        """
        query: QueryInputTypeDef = {
            "TableName": self._table,
            "IndexName": due.INDEX,
            "KeyConditionExpression": "reconcileShard = :shard AND reconcileAt <= :now",
            "ExpressionAttributeValues": {":shard": {"S": shard}, ":now": {"N": str(now)}},
            "Limit": page,
            "ScanIndexForward": not latest,
        }
        while True:
            response = self._client.query(**query)
            for item in response["Items"]:
                yield due.DueTask(item["taskId"]["S"], int(item["reconcileAt"]["N"]))
            if "LastEvaluatedKey" not in response:
                return
            query["ExclusiveStartKey"] = response["LastEvaluatedKey"]

    def claim(self, task: Task, now: int) -> bool:
        """Put the task's next look off, before it is looked at; False when others were faster."""
        names = {"#reconcileAt": "reconcileAt", "#reconcileShard": "reconcileShard"}
        values: dict[str, str | int] = {
            ":next": task.next_look(now),
            ":shard": due.shard_of(task.task_id),
        }
        # Races: two sweeps, or a sweep and a poll, find the same task due; one of them does the
        # work, and a task whose look fails again and again does not keep the others waiting. Or its
        # execution has just been heard to be over: it must not come back into the index. Or the row
        # was removed: the write would make one that holds nothing.
        if (
            task.reconcile_at is None
        ):  # a row of version 3; such a row that is over is not looked at
            names["#status"] = "status"
            values |= {f":{state.value}": state.value for state in sources(Status.WORKING)}
            condition = (
                f"attribute_not_exists(#reconcileAt) AND {_status_in(*sources(Status.WORKING))}"
            )
        else:
            values[":seen"] = task.reconcile_at
            condition = "#reconcileAt = :seen"
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(task.task_id),
                UpdateExpression="SET #reconcileAt = :next, #reconcileShard = :shard",
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={n: to_attribute(v) for n, v in values.items()},
            )
        except ClientError as error:
            existing_item(error)
            return False
        return True

    def put_off(self, entry: due.DueTask, now: int) -> None:
        """Let a row be due again much later that this code cannot read."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(entry.task_id),
                UpdateExpression="SET #reconcileAt = :next",
                # Race: code that reads it has looked at it, or ended it, since it was found: it
                # must be due when that said, or never again.
                ConditionExpression="#reconcileAt = :seen",
                ExpressionAttributeNames={"#reconcileAt": "reconcileAt"},
                ExpressionAttributeValues={
                    ":next": to_attribute(now + due.MOST_MS),
                    ":seen": to_attribute(entry.since),
                },
            )
        except ClientError as error:
            existing_item(error)

    def settled(self, task_id: str) -> None:
        """Note of a task that is over that its execution is, too: nobody has to look again."""
        terminal = [state for state in Status if state.terminal]
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(task_id),
                UpdateExpression="REMOVE #reconcileAt, #reconcileShard",
                # Race: the row was removed since it was read; the write would make an empty one.
                ConditionExpression=_status_in(*terminal),
                ExpressionAttributeNames={
                    "#reconcileAt": "reconcileAt",
                    "#reconcileShard": "reconcileShard",
                    "#status": "status",
                },
                ExpressionAttributeValues={f":{s.value}": {"S": s.value} for s in terminal},
            )
        except ClientError as error:
            existing_item(error)

    def _update(
        self,
        task_id: str,
        now: int,
        *,
        condition: str,
        sets: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
        status: Status | None = None,
        removes: Iterable[str] = (),
        principal: str | None = None,
        revise_inputs: bool = False,
        touch: bool = True,
        reconcile_at: int | None = None,
        over: bool = False,
        expired: bool = False,
    ) -> Task:
        """One conditional UpdateItem; `sets` maps attribute paths to plain values.

        `touch` is for what clients can see: such a write counts as a revision of the task.
        `due_at` is when to look at the task; `over`, that nobody has to any more. `expired` is for
        the one write to tasks that are gone for their clients.
        """
        all_names = {"#status": "status", **(names or {})}
        all_values: dict[str, Any] = {":now": now, **(values or {})}
        all_values |= {
            f":{state.value}": state.value for state in Status if f":{state}" in condition
        }
        assignments = []
        changes = {**sets}
        if status is not None:
            changes["#status"] = status.value
        counters = ["inputRevision"] if revise_inputs else []
        if touch:
            counters.append("revision")
            assignments.append("lastUpdatedAt = :at")
            all_values[":at"] = now
            if not expired:
                # Race: the writer before this one had a clock that is ahead of ours. A task's times
                # must not go back: who follows it puts what it hears in order by them. (All that
                # was written to an expired task was written before its expiry.)
                condition += " AND lastUpdatedAt <= :at"
        for n, (path, value) in enumerate(changes.items()):
            assignments.append(f"{_named(path, all_names)} = :set{n}")
            all_values[f":set{n}"] = value
        if over:
            removes = (*removes, "reconcileAt", "reconcileShard")
        elif reconcile_at is not None:
            assignments += [
                f"{_named('reconcileAt', all_names)} = :due",
                f"{_named('reconcileShard', all_names)} = :shard",
            ]
            all_values |= {":due": reconcile_at, ":shard": due.shard_of(task_id)}
        else:  # rows of version 3 come into the index by the first write
            for name in ("reconcileAt", "reconcileShard"):
                path = _named(name, all_names)
                assignments.append(f"{path} = if_not_exists({path}, :{name})")
            all_values |= {
                ":reconcileAt": now + due.FIRST_MS,
                ":reconcileShard": due.shard_of(task_id),
            }
        expression = "SET " + ", ".join(assignments)
        if removes:
            expression += " REMOVE " + ", ".join(_named(path, all_names) for path in removes)
        if counters:
            expression += " ADD " + ", ".join(f"{counter} :one" for counter in counters)
            all_values[":one"] = 1
        # An expired row is gone, though DynamoDB may keep it for days. Race, for the one write to
        # such a row: none; but a clock that is ahead must not end a task before its time.
        condition = f"expiresAtMs {'<=' if expired else '>'} :now AND {condition}"
        if principal is not None:
            # Race: none; a task of somebody else does not exist, for writes as for reads.
            condition += " AND principal = :principal"
            all_values[":principal"] = principal
        sent = {name: to_attribute(value) for name, value in all_values.items()}
        request: UpdateItemInputTypeDef = {
            "TableName": self._table,
            "Key": _key(task_id),
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": all_names,
            "ExpressionAttributeValues": sent,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        while True:
            try:
                response = self._client.update_item(**request)
            except ClientError as error:
                refusal = _refusal(task_id, existing_item(error), now, principal, expired)
                if not (touch and isinstance(refusal, Conflict)) or (
                    refusal.task.last_updated_at <= now
                ):
                    raise refusal from None
                # Perhaps for the clock's sake alone: once more, at the time that the row has.
                if reconcile_at is not None:
                    reconcile_at += refusal.task.last_updated_at - now
                    sent[":due"] = to_attribute(reconcile_at)
                now = refusal.task.last_updated_at
                sent[":at"] = to_attribute(now)
            else:
                return task_of(response["Attributes"])


def _refusal(
    task_id: str, item: dict[str, Any], now: int, principal: str | None, expired: bool
) -> Exception:
    """Why a condition failed, from the row as it was (no second read)."""
    if not item:
        return UnknownTask(task_id)
    task = task_of(item)
    gone = task.expired(now) and not expired
    if gone or (principal is not None and task.principal != principal):
        return UnknownTask(task_id)
    if task.status.terminal:
        return TaskEnded(task)
    return Conflict(task)


def _named(path: str, names: dict[str, str]) -> str:
    """An attribute path with every name as a placeholder: several of ours are reserved words."""
    parts = path.split(".")
    names |= {f"#{part}": part for part in parts if not part.startswith("#")}
    return ".".join(part if part.startswith("#") else f"#{part}" for part in parts)


def _status_in(*states: Status) -> str:
    return f"#status IN ({', '.join(f':{state.value}' for state in states)})"


def _key(task_id: str) -> dict[str, Any]:
    return {"taskId": {"S": task_id}}
