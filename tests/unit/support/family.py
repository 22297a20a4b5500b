"""A task with subtasks, for tests that need them in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp_tasks.tasks.subtask import Parent, subtask_id
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.example_task import ID, NOW, a_task

OPERATION: Final = "000001"


def a_subtask(number: int = 0, of: Task | None = None, **changes: Any) -> Task:
    """A subtask, not begun, of the example task or of another one."""
    parent = of or a_task()
    above = parent.parent
    about: dict[str, Any] = {
        "task_id": subtask_id(parent.task_id, OPERATION, number),
        "principal": parent.principal,
        "reconcile_at": None,
        "parent": Parent(
            task_id=parent.task_id,
            tool=parent.tool,
            operation=OPERATION,
            number=number,
            root_tool=above.root_tool if above else parent.tool,
            depth=above.depth + 1 if above else 1,
        ),
    }
    return a_task(**{**about, **changes})


def with_subtasks(rows: TaskTable, count: int, of: str = ID) -> list[Task]:
    """Write subtasks of a task that is in the table; returns them."""
    parent = rows.find(of)
    assert parent is not None
    subtasks = [a_subtask(number, parent) for number in range(count)]
    rows.subtasks.add(parent, subtasks, NOW)
    return subtasks


Ending = Callable[[TaskTable, Task], object]

ERROR: Final = {"code": -32603, "message": "broken"}
RESULT: Final[dict[str, Any]] = {"content": []}

ENDINGS: Final[dict[str, Ending]] = {
    "complete": lambda rows, task: rows.complete(
        task.task_id, RESULT, NOW, relatives=task.relatives
    ),
    "fail": lambda rows, task: rows.fail(task.task_id, ERROR, NOW, relatives=task.relatives),
    "cancel": lambda rows, task: rows.cancel(task.task_id, NOW, task.principal, task.relatives),
    "expire": lambda rows, task: rows.expire(task.task_id, ERROR, task.expires_at, task.relatives),
}
"""How a task ends, on the condition that it has the subtasks of the row that was read."""
