"""A task as the tasks extension has it on the wire (tasks.md, "Tasks").

Polls, subscriptions and the event bus all carry this shape.
"""

from __future__ import annotations

from typing import Any, Final

from ...tasks.poll_interval import poll_interval_ms
from ...tasks.state import Status
from ...tasks.task import Task, iso
from .input_requests import input_requests
from .subtask_wire_format import relatives

EXTENSION: Final = "io.modelcontextprotocol/tasks"

REQUIRED: Final[dict[str, Any]] = {"extensions": {EXTENSION: {}}}
"""The capabilities that a client has to declare ("Capability Negotiation")."""


def create_task_result(task: Task) -> dict[str, Any]:
    """`CreateTaskResult`, flat ("Task Creation"); the only result with this type."""
    return {"resultType": "task", **task_fields(task, task.created_at)}


def detailed_task(task: Task, now: int) -> dict[str, Any]:
    """`DetailedTask`: the task, and the members that its status adds ("Task Status")."""
    fields = task_fields(task, now)
    if task.status is Status.INPUT_REQUIRED:
        fields["inputRequests"] = input_requests(task.outstanding)
    elif task.status is Status.COMPLETED:
        # "The result type of the original request": every result of this revision has a resultType.
        fields["result"] = {"resultType": "complete", **(task.result or {})}
    elif task.status is Status.FAILED:
        fields["error"] = task.error
    return fields


def task_fields(task: Task, now: int) -> dict[str, Any]:
    """`Task` ("Tasks"), with its parent and its subtasks, which the schema allows."""
    fields: dict[str, Any] = {"taskId": task.task_id, "status": task.status.value}
    if task.status_message is not None:
        fields["statusMessage"] = task.status_message
    return fields | {
        "createdAt": iso(task.created_at),
        "lastUpdatedAt": iso(task.last_updated_at),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": poll_interval_ms(task, now),
        **relatives(task),
    }
