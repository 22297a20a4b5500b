"""Bring an execution's end to its task's row.

The event only says that an execution ended; the output comes from DescribeExecution, because
events leave large ones out. Whoever writes the end first wins: a cancelled task stays cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..audit import audit
from ..registry.catalogue import Catalogue
from ..tasks.rows import TaskEnded, TaskTable, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task
from .executions import Executions
from .outcome import Completed, outcome


def finish(
    detail: Mapping[str, Any],
    rows: TaskTable,
    executions: Executions,
    catalogue: Catalogue,
    now: int,
) -> Status | None:
    """Write the end that `detail` (a Step Functions status event's) tells of.

    Returns the status written; None when there was nothing to write: the execution is not a
    task's, runs again (redrive), or its task ended before.
    """
    task_id = detail["name"]
    try:
        task = rows.get(task_id, now)
    except UnknownTask:
        return None
    if task.status.terminal or detail["stateMachineArn"] != task.state_machine_arn:
        return None
    end = executions.describe(detail["executionArn"])
    if end.status == "RUNNING":
        return None
    ended = outcome(end, _as_result(task, catalogue), task.tool_error)
    try:
        if isinstance(ended, Completed):
            task = rows.complete(task_id, ended.result, now)
        else:
            task = rows.fail(task_id, ended.error, ended.message, now)
    except (TaskEnded, UnknownTask):
        return None
    audit("end", task_id, task.principal, status=task.status.value)
    return task.status


def _as_result(task: Task, catalogue: Catalogue) -> Callable[[Any], dict[str, Any]]:
    """How the task's tool reads its execution's output; a removed tool's is taken as it is."""
    from ..registry.results import workflow_output

    entry = catalogue.tools.get(task.tool)
    if entry is not None and entry.kind == "function":
        return lambda output: dict(output)
    adapter = entry.load().result if entry is not None else None
    return lambda output: workflow_output(output, adapter)
