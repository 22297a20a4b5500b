"""A task's parent and subtasks, as every dialect has them on the wire (SEP-2268, "Subtasks")."""

from __future__ import annotations

from typing import Any

from ...tasks.task import Task


def relatives(task: Task) -> dict[str, Any]:
    """The members `parentTaskId` and `childTaskIds` of a task that has any."""
    return {
        **parent_of(task),
        **({"childTaskIds": list(task.subtask_ids)} if task.subtask_ids else {}),
    }


def parent_of(task: Task) -> dict[str, Any]:
    """The member `parentTaskId` of a subtask, which its related-task metadata has as well."""
    return {} if task.parent is None else {"parentTaskId": task.parent.task_id}
