"""Write a task's end to its row. The first end that is written stands: a cancelled task stays
cancelled."""

from __future__ import annotations

import json
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..payloads.offloading import MAX_RESOLVED_BYTES
from ..payloads.pointer import PayloadPointer, payload_prefix, pointer_of
from ..payloads.s3_store import PayloadNotFound, PayloadStore, PayloadTooLarge
from ..registry.catalogue import Catalogue
from ..tasks.errors import Conflict, TaskEnded, UnknownTask
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .execution_outcome import Completed, Failed, may_leave_a_step, outcome
from .executions import ExecutionEnd

MAX_ROW_RESULT_BYTES: Final = 300_000
"""A larger result is kept in S3. An item of DynamoDB has at most 400 KB."""

logger = Logger()


def end_task(
    task: Task,
    end: ExecutionEnd,
    task_table: TaskTable,
    catalogue: Catalogue,
    payloads: PayloadStore,
    now: int,
) -> tuple[Task, bool]:
    """Write what the end of its execution means for a task.

    Returns the task as it is then, and whether this has ended it: another end may have come first.
    """
    step_may_run = may_leave_a_step(end, sequential=task.sequential)
    try:
        ended = _outcome(task, end, catalogue, payloads)
        if isinstance(ended, Failed):
            task = _fail(task, ended, task_table, now, step_may_run=step_may_run)
        else:
            task = task_table.complete(task.task_id, ended, now, step_may_run=step_may_run)
    except TaskEnded as before:
        return before.task, False
    except UnknownTask:
        return task, False
    audit("end", task.task_id, task.principal, status=task.status.value)
    return task, True


def _fail(
    task: Task, failed: Failed, task_table: TaskTable, now: int, *, step_may_run: bool
) -> Task:
    """Fail a task. As long as something is to be undone, it stays in the reconcile schedule."""
    may_run = task.undo
    while True:
        try:
            return task_table.fail(
                task.task_id,
                failed.error,
                failed.message,
                now,
                may_run=may_run,
                step_may_run=step_may_run,
            )
        except Conflict:
            if may_run:
                raise
            may_run = True


def fail_task(
    task_id: str,
    error: dict[str, Any],
    message: str,
    task_table: TaskTable,
    now: int,
    *,
    step_may_run: bool = False,
) -> Task | None:
    """Fail a task whose execution may run; an end that came first stands.

    Returns the task; None when it had ended.
    """
    try:
        task = task_table.fail(
            task_id, error, message, now, may_run=True, step_may_run=step_may_run
        )
    except (TaskEnded, UnknownTask):
        return None
    audit("end", task_id, task.principal, status=task.status.value)
    return task


def _outcome(
    task: Task, end: ExecutionEnd, catalogue: Catalogue, payloads: PayloadStore
) -> dict[str, Any] | PayloadPointer | Failed:
    """What a task ends with: its result, the pointer to a large one, or an error."""
    prefix = payload_prefix(task.tool, task.task_id)
    stored = pointer_of(end.output)
    if stored is not None and stored.key.startswith(f"{prefix}/") and is_function(task, catalogue):
        return stored  # the worker has stored the whole result: it need not be loaded here
    try:
        ended = outcome(
            end,
            lambda output: _as_result(task, catalogue, payloads.resolve(output, prefix)),
            task.tool_error,
        )
    except PayloadNotFound:
        return Failed("The tool's output is not there any more")
    except PayloadTooLarge:
        return Failed(f"The tool's output has more than {MAX_RESOLVED_BYTES} bytes")
    if not isinstance(ended, Completed):
        return ended
    text = json.dumps(ended.result)
    return ended.result if len(text) <= MAX_ROW_RESULT_BYTES else payloads.put(prefix, text)


def is_function(task: Task, catalogue: Catalogue) -> bool:
    """Whether a task's tool is a function."""
    entry = catalogue.tools.get(task.tool)
    return entry is not None and entry.kind == "function"


def _as_result(task: Task, catalogue: Catalogue, output: Any) -> dict[str, Any]:
    """The tool result that an execution's output stands for; a removed tool's stays as it is.

    Raises ValueError when the output does not match the tool's output schema.
    """
    from ..registry.results import workflow_result

    entry = catalogue.tools.get(task.tool)
    if entry is not None and entry.kind == "function":
        return dict(output)
    adapter = entry.load().result if entry is not None else None
    try:
        return workflow_result(output, adapter)
    except ValueError:
        raise
    except Exception as error:  # of the author's validator, which would fail every time
        name = type(error).__name__
        logger.error("A result could not be validated", task_id=task.task_id, error=name)
        raise ValueError(name) from None
