"""What follows when an execution has ended: its task ends, goes on in another one, or is undone.

The event has the output of an execution that succeeded, and the error and the cause of one that
failed, unless they are large or encrypted with a customer's key. Then the end is read by
DescribeExecution, of which Step Functions allows 10 to 15 a second to an account: a deployment
whose every task fails would end no more than that (Step Functions developer guide, "Automating
Step Functions event delivery with EventBridge", "Data at rest encryption", "Quotas").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..tasks.state import Status
from .end_task import TaskEnds, is_function
from .execution_names import UNDO, execution_name, task_of_execution
from .executions import ExecutionEnd
from .successor import goes_on, start_successor
from .undo_execution import finish_undo, must_be_undone

MAX_EVENT_AGE_MS: Final = 60_000
"""How long a failure stands as its event tells it. An older event was repeated or replayed, and
whoever operates the server may have let the execution run again meanwhile (redrive)."""

ENDED: Final = "execution ended"
"""What is logged then."""
END_FROM: Final = "end_from"
"""Is in that line where the event did not have the end."""

logger = Logger()


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
    end = _end_in_event(detail, now)
    if end is None:
        logger.append_keys(**{END_FROM: "DescribeExecution"})
        end = ends.executions.describe(task.state_machine_arn, name)
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


def _end_in_event(detail: Mapping[str, Any], now: int) -> ExecutionEnd | None:
    """The end, if the event has all of it and it is final.

    An execution that failed, timed out or was aborted may run again. A redrive within the first
    minute changes nothing for the task, as a redrive does whose task has failed.
    """
    started_at, stopped_at = detail.get("startDate"), detail.get("stopDate")
    final = isinstance(stopped_at, int) and now - stopped_at <= MAX_EVENT_AGE_MS
    match detail:
        case {"status": "SUCCEEDED", "output": str(output), "outputDetails": {"included": True}}:
            return ExecutionEnd("SUCCEEDED", output=json.loads(output), started_at=started_at)
        case {"status": "FAILED", "error": str(error), "cause": str(cause)} if final:
            return ExecutionEnd("FAILED", error=error, cause=cause, started_at=started_at)
        case {"status": "TIMED_OUT" | "ABORTED" as status} if final:
            return ExecutionEnd(status, started_at=started_at)
    return None
