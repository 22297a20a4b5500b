"""End the tasks of a tool that is removed, or of a server that is.

A state machine is deleted only when all its executions have ended (Step Functions API reference,
"DeleteStateMachine"), and one that waits for an answer may wait as long as its task lives. So who
removes a tool or a stack lists the executions that run, and calls the sweeper with their names: it
may end tasks, and writes the audit log.

Each call may be repeated: the list lags behind, and names executions that have ended.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..aws.errors import error_code
from ..tasks.task import Task
from .end_task import TaskEnds, fail_task
from .execution_names import UNDO, task_of_execution
from .execution_outcome import SERVER_REMOVED, TOOL_REMOVED, Failed
from .executions import ExecutionEnd, StartFailed
from .undo_execution import finish_undo, give_up_undo, must_be_undone

MESSAGES: Final = {"tool": TOOL_REMOVED, "server": SERVER_REMOVED}
"""What is removed -> what the tasks' clients are told."""
THREADS: Final = 8

logger = Logger()


class Removed(StrEnum):
    """What became of one execution."""

    ENDED = "ended"
    """It is stopped, and its task, if there is one, has failed."""
    UNDOING = "undoing"
    """It undoes what a task did, and goes on."""
    LEFT = "left"
    """It could not be ended, or the time was up: name it again."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Ends executions of one state machine, each with its task."""

    ends: TaskEnds
    state_machine_arn: str
    message: str
    undo: bool
    """Whether what the tasks did is undone. Otherwise executions that undo are stopped, too."""

    def end(self, name: str, now: int) -> Removed:
        """End one execution: the row first, so that no later end says anything else.

        Raises Busy, StartFailed and what calls to AWS raise.
        """
        task_id, which = task_of_execution(name)
        task = self.ends.task_table.find(task_id)
        if task is not None and task.state_machine_arn != self.state_machine_arn:
            task = None
        if which == UNDO and self.undo and task is not None:
            return Removed.UNDOING
        if task is not None and not task.status.terminal:
            error = Failed(self.message).error
            fail_task(task, error, self.ends.tree, now, step_may_run=True)
        self.ends.executions.stop(self.state_machine_arn, name)
        if task is not None:
            self._follow_up(task.task_id, which, now)
        return Removed.ENDED

    def _follow_up(self, task_id: str, which: str, now: int) -> None:
        """Tell the parent; begin to undo what the task did, or say that nobody does."""
        task = self.ends.task_table.find(task_id)
        if task is None or not task.status.terminal:
            return
        if which == UNDO:
            if must_be_undone(task):
                finish_undo(task, ExecutionEnd("ABORTED"), self.ends.task_table, now)
            return
        if not self.undo or task.tool not in self.ends.catalogue.tools:
            task = self._give_up(task, now)
        try:
            self.ends.follow_up(task, now)
        except StartFailed as failed:
            if not failed.refused:
                raise
            self._give_up(task, now)  # the state machine is being deleted already

    def _give_up(self, task: Task, now: int) -> Task:
        if must_be_undone(task):
            give_up_undo(task, self.ends.task_table, now)
        return self.ends.task_table.find(task.task_id) or task


def remove_executions(
    request: Mapping[str, Any], ends: TaskEnds, clock: Callable[[], int], seconds: float
) -> dict[str, int]:
    """End executions for at most so many seconds; returns how many came to what.

    `request` has `stateMachine`, an ARN; `executions`, their names; `removed`, a key of MESSAGES;
    and `undo`. Raises KeyError for a request that has less.
    """
    message = MESSAGES[request["removed"]]
    removal = Removal(ends, request["stateMachine"], message, bool(request["undo"]))
    until = time.monotonic() + seconds

    def end(name: str) -> Removed:
        if time.monotonic() >= until:
            return Removed.LEFT
        try:
            return removal.end(name, clock())
        except Exception as error:
            logger.error("A task was not ended", task_id=name, error=error_code(error))
            return Removed.LEFT

    names: Sequence[str] = request["executions"]
    with ThreadPoolExecutor(THREADS) as pool:
        counts = Counter(pool.map(end, names))
    return {outcome.value: counts[outcome] for outcome in Removed}
