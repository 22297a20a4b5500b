"""A task as 2025-11-25 has it on the wire (2025-11-25 basic/utilities/tasks.mdx, "Data Types")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...tasks.poll_interval import poll_interval_ms
from ...tasks.state import Status
from ...tasks.task import Task, iso
from . import tasks_sep_1686
from .subtask_wire_format import parent_of, relatives
from .tasks_sep_1686 import CLIENT_TASK_ID

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
IMMEDIATE_RESPONSE: Final = "io.modelcontextprotocol/model-immediate-response"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105  a name, no secret
"""The member of a task's client context that has the token of the call that asked for it. It is
good for the task's whole life ("Task Progress Notifications")."""
FASTMCP_TASK: Final = "modelcontextprotocol.io/task"
"""Where FastMCP 2.14 reads a new task, which it takes for a CallToolResult."""


def task_fields(task: Task, now: int) -> dict[str, Any]:
    """`Task`. The `ttl` is always there: two SDKs refuse a task without it."""
    status, message = status_of(task)
    return {
        "taskId": task.task_id,
        "status": status.value,
        **({"statusMessage": message} if message is not None else {}),
        "createdAt": iso(task.created_at),
        "lastUpdatedAt": iso(task.last_updated_at),
        "ttl": task.ttl_ms,
        "pollInterval": poll_interval_ms(task, now),
        **relatives(task),
    }


def listed_fields(task: Task, now: int) -> dict[str, Any]:
    """A task in `tasks/list`: one with an id of the client's has that, and SEP-1686's members."""
    found = task_fields(task, now)
    if CLIENT_TASK_ID not in task.client_context:
        return found
    return {
        **tasks_sep_1686.fields(task, now),
        **found,
        "taskId": task.client_context[CLIENT_TASK_ID],
    }


def status_of(task: Task) -> tuple[Status, str | None]:
    """The status and its message. A tool result with `isError` is a failure ("Task Execution
    Errors"), whose text is the message: two clients show nothing else of a failed task.
    """
    result = task.result or {}
    if task.status is Status.COMPLETED and result.get("isError"):
        return Status.FAILED, _text(result) or task.status_message
    if task.status is Status.FAILED:
        return Status.FAILED, (task.error or {}).get("message") or task.status_message
    return task.status, task.status_message


def create_task_result(task: Task) -> dict[str, Any]:
    """`CreateTaskResult`, and what other clients look for: `content`, and the task in `_meta`."""
    fields = task_fields(task, task.created_at)
    return {
        "task": fields,
        "content": [],
        "_meta": {
            **related_task(task),
            FASTMCP_TASK: fields,
            IMMEDIATE_RESPONSE: f"The tool runs in the background as task {task.task_id}.",
        },
    }


def related_task(task: Task) -> dict[str, Any]:
    """The member of `_meta` that names a message's task ("Related Task Metadata"), and that task's
    parent (SEP-2268, "Associating Task-Related Messages")."""
    return {RELATED_TASK: {"taskId": task.task_id, **parent_of(task)}}


def _text(result: Mapping[str, Any]) -> str | None:
    texts = (block.get("text") for block in result.get("content", ()))
    return next((text for text in texts if isinstance(text, str)), None)
