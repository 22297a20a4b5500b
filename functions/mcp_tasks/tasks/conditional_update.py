"""One conditional UpdateItem of a task's row: what it changes, and on which condition. Pure.

`row_updates` says what each transition writes, as a ConditionalUpdate. This module renders it in
DynamoDB's expressions, and adds the conditions that all writes have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..aws.dynamodb_values import to_attribute
from . import reconcile_schedule
from .errors import Conflict, TaskEnded, UnknownTask
from .reconcile_schedule import FIRST_RECONCILE_MS
from .state import Status
from .task_item import task_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import UpdateItemInputTypeDef


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalUpdate:
    """What is written to a task's row, and on which condition. Paths may hold `#placeholders`."""

    sources: tuple[Status, ...]
    """The states that the task may be in."""
    conditions: tuple[str, ...] = ()
    """What else has to hold, as clauses of a ConditionExpression."""
    names: Mapping[str, str] = field(default_factory=dict)
    """`#placeholder` -> attribute name."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """`:placeholder` -> plain value."""
    sets: Mapping[str, Any] = field(default_factory=dict)
    """Attribute path -> plain value."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Attribute -> the attribute whose value before the write it gets."""
    removes: tuple[str, ...] = ()
    """Attribute paths."""
    status: Status | None = None
    """The state that the task goes to."""
    principal: str | None = None
    """Whose task it has to be; None for a write of the server itself."""
    changes_questions: bool = False
    """Whether the write counts as an input revision."""
    visible: bool = True
    """Whether clients can see the change: then it counts as a revision of the task."""
    reconcile_in_ms: int | None = None
    """When to reconcile the task, counted from the write; None to leave that as it is."""
    execution_ended: bool = False
    """Whether the execution has ended, so that the task need not be reconciled any more."""
    expired: bool | None = False
    """Whether the task has to have expired; None for a write to which it does not matter."""
    by_worker: bool = False
    """Whether a worker writes it. A worker's role may name `row_updates.WORKER_ATTRIBUTES` only,
    and may not read the row, so the write schedules nothing and returns nothing."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A ConditionalUpdate in DynamoDB's terms."""

    assignments: list[str]
    removes: list[str]
    counters: list[str]
    conditions: list[str]
    names: dict[str, str]
    values: dict[str, Any]

    @property
    def update_expression(self) -> str:
        """SET, REMOVE and ADD."""
        parts = ["SET " + ", ".join(self.assignments)]
        if self.removes:
            parts.append("REMOVE " + ", ".join(self.removes))
        if self.counters:
            parts.append("ADD " + ", ".join(f"{counter} :one" for counter in self.counters))
        return " ".join(parts)


def update_request(
    table: str, task_id: str, update: ConditionalUpdate, now: int, written_at: int
) -> UpdateItemInputTypeDef:
    """The UpdateItem request of an update.

    `now` decides whether the task has expired. `written_at` becomes the row's `lastUpdatedAt`; it
    is later than `now` when the row was last written by a clock that is ahead.
    """
    rendered = Rendered([], [], [], [], {"#status": "status", **update.names}, {**update.values})
    _render_conditions(update, rendered, now)
    _render_changes(update, rendered, written_at)
    if not update.by_worker:
        _render_reconcile(update, rendered, shard=reconcile_schedule.shard_of(task_id), now=now)
    if update.reconcile_in_ms is not None:
        rendered.values[":reconcileAt"] = written_at + update.reconcile_in_ms
    return {
        "TableName": table,
        "Key": {"taskId": {"S": task_id}},
        "UpdateExpression": rendered.update_expression,
        "ConditionExpression": " AND ".join(rendered.conditions),
        "ExpressionAttributeNames": rendered.names,
        "ExpressionAttributeValues": {n: to_attribute(v) for n, v in rendered.values.items()},
        "ReturnValues": "NONE" if update.by_worker else "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def status_in(*states: Status) -> str:
    """The clause that a task is in one of these states; `status_values` are its values."""
    return f"#status IN ({', '.join(f':{state.value}' for state in states)})"


def status_values(*states: Status) -> dict[str, str]:
    """The values that `status_in` refers to."""
    return {f":{state.value}": state.value for state in states}


def refusal(
    task_id: str, item: dict[str, Any], update: ConditionalUpdate, written_at: int
) -> UnknownTask | TaskEnded | Conflict:
    """Why the condition of an update failed, read from the row as it was (no second read)."""
    if not item:
        return UnknownTask(task_id)
    task = task_of(item)
    gone = task.expired(written_at) and update.expired is False
    if gone or (update.principal is not None and task.principal != update.principal):
        return UnknownTask(task_id)
    if task.status.terminal:
        return TaskEnded(task)
    return Conflict(task)


def _render_conditions(update: ConditionalUpdate, rendered: Rendered, now: int) -> None:
    # An expired task is gone, though DynamoDB may keep its row for days. Race, for the one write to
    # an expired task: none; but a clock that is ahead must not end a task before its time.
    if update.expired is not None:
        rendered.conditions.append(f"expiresAtMs {'<=' if update.expired else '>'} :now")
        rendered.values[":now"] = now
    rendered.conditions.append(status_in(*update.sources))
    rendered.values.update(status_values(*update.sources))
    rendered.conditions.extend(update.conditions)
    if update.visible and not update.expired:
        # Race: the writer before this one had a clock that is ahead of this one's. A task's times
        # must not go back: subscriptions order its changes by them. (All writes to an expired task
        # but one came before its expiry.)
        rendered.conditions.append("lastUpdatedAt <= :at")
    if update.principal is not None:
        # Race: none; another principal's task does not exist, for writes as for reads.
        rendered.conditions.append("principal = :principal")
        rendered.values[":principal"] = update.principal


def _render_changes(update: ConditionalUpdate, rendered: Rendered, written_at: int) -> None:
    changes = {**update.sets}
    if update.status is not None:
        changes["#status"] = update.status.value
    if update.changes_questions:
        rendered.counters.append("inputRevision")
    if update.visible:
        rendered.counters.append("revision")
        rendered.assignments.append("lastUpdatedAt = :at")
        rendered.values[":at"] = written_at
    if rendered.counters:
        rendered.values[":one"] = 1
    for n, (path, value) in enumerate(changes.items()):
        rendered.assignments.append(f"{_placeholders(path, rendered.names)} = :set{n}")
        rendered.values[f":set{n}"] = value
    for path, source in update.copies.items():
        rendered.assignments.append(f"{_placeholders(path, rendered.names)} = {source}")
    rendered.removes.extend(_placeholders(path, rendered.names) for path in update.removes)


def _render_reconcile(update: ConditionalUpdate, rendered: Rendered, shard: str, now: int) -> None:
    at, in_shard = (
        _placeholders(name, rendered.names) for name in ("reconcileAt", "reconcileShard")
    )
    if update.execution_ended:
        rendered.removes.extend((at, in_shard))
        return
    rendered.values.update({":reconcileAt": now + FIRST_RECONCILE_MS, ":reconcileShard": shard})
    if update.reconcile_in_ms is not None:
        rendered.assignments.extend((f"{at} = :reconcileAt", f"{in_shard} = :reconcileShard"))
        return
    # Rows of version 3 come into the index by the first write.
    rendered.assignments.extend(
        f"{path} = if_not_exists({path}, :{path.removeprefix('#')})" for path in (at, in_shard)
    )


def _placeholders(path: str, names: dict[str, str]) -> str:
    """An attribute path with a placeholder for every name: DynamoDB reserves several of them."""
    parts = path.split(".")
    names.update({f"#{part}": part for part in parts if not part.startswith("#")})
    return ".".join(part if part.startswith("#") else f"#{part}" for part in parts)
