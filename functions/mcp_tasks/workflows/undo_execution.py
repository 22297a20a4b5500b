"""Undo what a task did that was cancelled or failed, in an execution of its own.

The execution has the input of the task's first one, and `"undo": true`. Its worker repeats the tool
from the journal, as far as that goes, and then undoes what the tool did (`durable/undo.py`).

    finish, when the task's execution has ended  ->  the execution <task id>-undo  ->  finish
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .. import metrics
from ..audit import audit
from ..tasks.state import Status
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .execution_names import undo_name
from .execution_outcome import NOT_UNDONE, is_non_determinism
from .executions import ExecutionEnd, Executions


def must_be_undone(task: Task) -> bool:
    """Whether anything of an ended task has to be undone.

    Not when its tool takes another way than before: then nobody knows what undoes what was done.
    """
    ended_badly = task.status in (Status.CANCELLED, Status.FAILED)
    return task.undo and ended_badly and not is_non_determinism(task.error)


def start_undo(task: Task, task_table: TaskTable, executions: Executions, now: int) -> None:
    """Start to undo what a task did. This may be repeated. Raises StartFailed."""
    first = executions.describe(task.state_machine_arn, task.task_id)
    if first is None or not first.is_of(task.created_at):
        # Step Functions has forgotten it, 90 days after its end.
        give_up_undo(task, task_table, now)
        return
    undo_input = json.dumps({**json.loads(first.input), "undo": True}, sort_keys=True)
    executions.start(task.state_machine_arn, undo_name(task.task_id), undo_input)


def give_up_undo(task: Task, task_table: TaskTable, now: int) -> None:
    """Note that nothing of what a task did is undone, because nothing is left that could do it."""
    if task_table.undone(task, NOT_UNDONE + "all steps", now):
        report_not_undone(task.task_id, ())


def finish_undo(task: Task, end: ExecutionEnd, task_table: TaskTable, now: int) -> None:
    """Note on the task's row that the execution which undoes has ended, and what is left."""
    output: Any = end.output
    if end.status == "SUCCEEDED" and isinstance(output, dict) and "not_undone" in output:
        left = ", ".join(output["not_undone"])  # the worker has reported them
    else:
        left = "some steps"
        report_not_undone(task.task_id, ())
    task_table.undone(task, NOT_UNDONE + left if left else None, now)


def report_not_undone(task_id: str, steps: Sequence[str]) -> None:
    """Tell the operator: a line of the audit log, and the metric of an alarm."""
    audit("undo", task_id, None, not_undone=", ".join(steps) or "unknown")
    metrics.count(metrics.NOT_UNDONE)
