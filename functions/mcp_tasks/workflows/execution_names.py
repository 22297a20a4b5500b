"""The names of a task's executions.

c1-0123...         the first one, whose name is the task's id
c1-0123...-2       its successor, and so on: an execution's history has a limit
c1-0123...-undo    undoes what a cancelled or failed task did
"""

from __future__ import annotations

from typing import Final

from ..tasks.task import Task

UNDO: Final = "undo"


def execution_name(task: Task) -> str:
    """The name of the execution that runs a task."""
    return task.task_id if task.execution == 1 else f"{task.task_id}-{task.execution}"


def undo_name(task_id: str) -> str:
    """The name of the execution that undoes what a task did."""
    return f"{task_id}-{UNDO}"


def task_of_execution(name: str) -> tuple[str, str]:
    """The id of an execution's task; and what the name has besides, without its hyphen."""
    cell, _, rest = name.partition("-")
    token, _, which = rest.partition("-")
    return (f"{cell}-{token}" if rest else cell), which
