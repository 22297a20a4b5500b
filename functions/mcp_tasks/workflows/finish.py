"""What follows when an execution has ended: its task ends, goes on in another one, or is undone.

The event of an execution that succeeded has its output, unless the output is large or encrypted
with a customer's key. In all other cases the end is read by DescribeExecution, of which Step
Functions allows 10 to 15 a second (Step Functions developer guide, "Automating event delivery",
"Quotas").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..tasks.state import Status
from .end_task import TaskEnds, is_function
from .execution_names import UNDO, execution_name, task_of_execution
from .executions import ExecutionEnd
from .successor import goes_on, start_successor
from .undo_execution import finish_undo, must_be_undone


def finish(detail: Mapping[str, Any], ends: TaskEnds, now: int) -> Status | None:
    """Do what follows an end; `detail` is that of a Step Functions status event.

    Returns the status written; None when none was: the execution is not a task's, it runs again
    (redrive), it has a successor, or its task had ended. Raises StartFailed and Busy; the sweeper
    retries.
    """
    name, task_table = detail["name"], ends.task_table
    task_id, which = task_of_execution(name)
    task = task_table.find(task_id)
    if task is None or detail["stateMachineArn"] != task.state_machine_arn:
        return None
    ended = task.status.terminal or task.expired(now)
    if ended and not must_be_undone(task) and task.parent is None:
        return None
    end = _end_in_event(detail) or ends.executions.describe(task.state_machine_arn, name)
    if end is None or end.running or not end.is_of(task.created_at):
        return None
    if which == UNDO:
        finish_undo(task, end, task_table, now)
    if name != execution_name(task):
        return None
    goes = is_function(task, ends.catalogue) and goes_on(end.output) and not task.cancel_requested
    if not ended and goes:
        started_with = ends.executions.describe(task.state_machine_arn, name)
        if started_with is not None:
            end = replace(end, input=started_with.input)
            start_successor(task, end, task_table, ends.executions, now)
        return None
    written = False
    if not ended:
        task, written = ends.end(task, end, now)
    ends.follow_up(task, now)
    return task.status if written else None


def _end_in_event(detail: Mapping[str, Any]) -> ExecutionEnd | None:
    """The end, if the event has all of it and it is final. An execution that failed, timed out or
    was aborted may run again (redrive)."""
    match detail:
        case {"status": "SUCCEEDED", "output": str(output), "outputDetails": {"included": True}}:
            started_at = detail.get("startDate")
            return ExecutionEnd("SUCCEEDED", output=json.loads(output), started_at=started_at)
    return None
