"""Look after one task that is due: see how its execution is, and do what was lost.

Every step of it may have been done already, or be done by somebody else at the same moment, and may
be done again: starts are idempotent by name, tokens are used up once, rows are written under
conditions.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..payloads.store import Payloads
from ..registry.catalogue import Catalogue
from ..tasks.due import EXPIRED_MS
from ..tasks.rows import Conflict, TaskEnded, TaskTable, UnknownTask
from ..tasks.task import Task
from .executions import Executions, StartFailed
from .finish import end_task
from .outcome import Failed

START_WITHIN_MS: Final = 80 * 24 * 3600 * 1000
"""How old a task may be that is started. Step Functions forgets an execution, and that its name was
used, 90 days after it ended (API reference, StartExecution): one that is not there by then may have
run."""

EXPIRED: Final = "The task's time to live passed before it ended"
GONE: Final = "The tool's execution is not there any more"
REFUSED: Final = "The task could not be started"

logger = Logger()


class Found(StrEnum):
    """What a look at a task came to."""

    RUNNING = "running"
    STARTED = "started"
    """It was written, and never started."""
    NOT_STARTED = "not started"
    """Nor is there room for it at the moment."""
    FINISHED = "finished"
    """It had ended, and nobody heard of it."""
    RESENT = "resent"
    """An answer had been stored, and not passed on."""
    CLOSED = "closed"
    """Something was asked that nothing waits for any more."""
    EXPIRED = "expired"
    """Its time to live had passed."""
    STOPPED = "stopped"
    """It was over, and so is its execution now."""
    FAILED = "failed"
    """It could not be started, or its execution is gone."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Looks after tasks. Each look is claimed first, so that there is one at a time."""

    rows: TaskTable
    executions: Executions
    catalogue: Catalogue
    payloads: Payloads

    def look_after(self, task: Task, now: int) -> Found | None:
        """Look at a task that is due. None when another is doing it, or it has just been heard of.

        Raises what calls to AWS raise; then the task is due again after a while.
        """
        if not task.due(now):
            return None  # any more: the index lags behind the rows
        if not self.rows.claim(task, now) or not task.overdue(now):
            return None
        found = self._look(task, now)
        if found is not Found.RUNNING:
            logger.info("repaired", task_id=task.task_id, found=found.value)
        return found

    def _look(self, task: Task, now: int) -> Found:
        if task.status.terminal:
            self.executions.stop(task.state_machine_arn, task.task_id)
            self.rows.settled(task.task_id)
            return Found.STOPPED
        if task.expired(now):
            return self._expire(task, now)
        execution = self.executions.describe(task.state_machine_arn, task.task_id)
        if execution is None:
            return self._start(task, now)
        if not execution.running:
            end_task(task, execution, self.rows, self.catalogue, self.payloads, now)
            return Found.FINISHED
        return self._pass_on(task, now)

    def _expire(self, task: Task, now: int) -> Found:
        """End it for good, unless the clock that says so may be ahead of others."""
        if now < task.expires_at + EXPIRED_MS:
            return Found.RUNNING
        # The row first, as for a cancel: it stays due until its execution is stopped.
        with suppress(TaskEnded, UnknownTask):
            ended = self.rows.expire(task.task_id, Failed(EXPIRED).error, EXPIRED, now)
            audit("end", task.task_id, task.principal, status=ended.status.value)
        self.executions.stop(task.state_machine_arn, task.task_id)
        return Found.EXPIRED

    def _start(self, task: Task, now: int) -> Found:
        reason = GONE
        if now - task.created_at <= START_WITHIN_MS:
            try:
                self.executions.start(task.state_machine_arn, task.task_id, task.input or "{}")
            except StartFailed as failed:
                logger.error("StartExecution failed", error=str(failed), task_id=task.task_id)
                if not failed.refused:
                    return Found.NOT_STARTED
                reason = REFUSED
            else:
                return Found.STARTED
        # It may run all the same: what another attempt has just started is not found at once.
        with suppress(TaskEnded, UnknownTask):
            error = Failed(reason).error
            ended = self.rows.fail(task.task_id, error, reason, now, may_run=True)
            audit("end", task.task_id, task.principal, status=ended.status.value)
        return Found.FAILED

    def _pass_on(self, task: Task, now: int) -> Found:
        """Send answers that are stored to their states, and close what no state waits for."""
        found = Found.RUNNING
        for ask in task.undelivered:
            self.executions.resume(ask.token, ask.output())
            self.rows.delivered(task.task_id, ask.id, now)
            found = Found.RESENT
        for ask in task.asks.values():
            if ask.outstanding and not self.executions.waits(ask.token):
                # One at a time: each changes what the next one's condition is about.
                with suppress(Conflict, TaskEnded, UnknownTask):
                    task = self.rows.close(task, ask.id, now)
                    found = Found.CLOSED
        return found
