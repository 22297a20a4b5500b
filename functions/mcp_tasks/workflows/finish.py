"""Write an execution's end to its task's row.

The event of an execution that succeeded has its output, unless the output is large or encrypted
with a customer's key. In all other cases the end is read by DescribeExecution, of which Step
Functions allows 10 to 15 a second (Step Functions developer guide, "Automating event delivery",
"Quotas"). The first end that is written stands: a cancelled task stays cancelled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..payloads.offloading import MAX_RESOLVED_BYTES
from ..payloads.pointer import PayloadPointer, payload_prefix, pointer_of
from ..payloads.s3_store import PayloadNotFound, PayloadStore, PayloadTooLarge
from ..registry.catalogue import Catalogue
from ..tasks.errors import TaskEnded, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .execution_outcome import Completed, Failed, may_leave_a_step, outcome
from .executions import ExecutionEnd, Executions

MAX_ROW_RESULT_BYTES: Final = 300_000
"""A larger result is kept in S3. An item of DynamoDB has at most 400 KB."""

logger = Logger()


def finish(
    detail: Mapping[str, Any],
    task_table: TaskTable,
    executions: Executions,
    catalogue: Catalogue,
    payloads: PayloadStore,
    now: int,
) -> Status | None:
    """Write the end that an event reports; `detail` is that of a Step Functions status event.

    Returns the status written; None when nothing was: the execution is not a task's, it runs again
    (redrive), or its task had ended.
    """
    task_id = detail["name"]
    try:
        task = task_table.get(task_id, now)
    except UnknownTask:
        return None
    if task.status.terminal or detail["stateMachineArn"] != task.state_machine_arn:
        return None
    end = _end_in_event(detail) or executions.describe(task.state_machine_arn, task_id)
    if end is None or end.running or not end.is_of(task.created_at):
        return None
    return end_task(task, end, task_table, catalogue, payloads, now)


def _end_in_event(detail: Mapping[str, Any]) -> ExecutionEnd | None:
    """The end, if the event has all of it and it is final. An execution that failed, timed out or
    was aborted may run again (redrive)."""
    match detail:
        case {"status": "SUCCEEDED", "output": str(output), "outputDetails": {"included": True}}:
            started_at = detail.get("startDate")
            return ExecutionEnd("SUCCEEDED", output=json.loads(output), started_at=started_at)
    return None


def end_task(
    task: Task,
    end: ExecutionEnd,
    task_table: TaskTable,
    catalogue: Catalogue,
    payloads: PayloadStore,
    now: int,
) -> Status | None:
    """Write what the end of its execution means for a task.

    Returns the status written; None when the task had ended.
    """
    step_may_run = may_leave_a_step(end, sequential=task.sequential)
    try:
        ended = _outcome(task, end, catalogue, payloads)
        if isinstance(ended, Failed):
            task = task_table.fail(
                task.task_id, ended.error, ended.message, now, step_may_run=step_may_run
            )
        else:
            task = task_table.complete(task.task_id, ended, now, step_may_run=step_may_run)
    except (TaskEnded, UnknownTask):
        return None
    audit("end", task.task_id, task.principal, status=task.status.value)
    return task.status


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
    if stored is not None and stored.key.startswith(f"{prefix}/") and _is_function(task, catalogue):
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


def _is_function(task: Task, catalogue: Catalogue) -> bool:
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
