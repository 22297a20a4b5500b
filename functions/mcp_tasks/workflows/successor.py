"""Let a task go on in another execution, before the history of the first one is full.

The worker says so, in the place of a question, a wait or a map (`run_event.MAX_EVENTS`). The
execution then ends with the output

    {"successor": {"answers": {...}, "earlier_answers": {...}}}

and its successor starts with the same input and these answers. The row has the number of the
execution that runs. It is written first, so that whoever finds the successor missing starts it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from ..tasks.errors import Conflict, TaskEnded, UnknownTask
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .execution_names import execution_name
from .executions import ExecutionEnd, Executions

SUCCESSOR: Final = "successor"


def goes_on(output: Any) -> bool:
    """Whether a function tool's execution ended because its history was long."""
    return isinstance(output, dict) and SUCCESSOR in output


def start_successor(
    task: Task, end: ExecutionEnd, task_table: TaskTable, executions: Executions, now: int
) -> None:
    """Start the execution after the one that has ended. Raises StartFailed.

    This may be repeated: the successor's name and input are the same each time.
    """
    with suppress(TaskEnded, UnknownTask):
        try:
            task = task_table.start_successor(task, now)
        except Conflict as conflict:
            task = conflict.task
        if task.cancel_requested:
            return
        start_after(task, end, executions)


def start_after(task: Task, end: ExecutionEnd, executions: Executions) -> None:
    """Start the execution that the row names, after the one before it. Raises StartFailed."""
    execution_input = {**json.loads(end.input), **end.output[SUCCESSOR]}
    executions.start(
        task.state_machine_arn, execution_name(task), json.dumps(execution_input, sort_keys=True)
    )
