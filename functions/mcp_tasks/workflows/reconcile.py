"""Look after one task that is due: see how its execution is, and do what was lost.

Every step of it may have been done already, or be done by somebody else at the same moment, and may
be done again: starts are idempotent by name, tokens are used up once, rows are written under
conditions.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from ..audit import audit
from ..aws.errors import is_transient
from ..payloads.s3_store import PayloadStore
from ..registry.catalogue import Catalogue
from ..tasks.errors import Conflict, TaskEnded, UnknownTask
from ..tasks.reconcile_schedule import EXPIRED_MS
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .ask import pass_on
from .execution_outcome import Failed
from .executions import START_WITHIN_MS, ExecutionEnd, Executions, StartFailed
from .finish import end_task, fail_task

REMOVED_AFTER_MS: Final = 3_600_000
"""How old a task may be whose tool this function does not know, because it is still the one before
the deployment that brought the tool."""

EXPIRED: Final = "The task's time to live passed before it ended"
GONE: Final = "The tool's execution is not there any more"
REFUSED: Final = "The task could not be started"
REMOVED: Final = "The server does not have the tool any more"

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
    """It could not be started, or its execution or its tool is gone."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Looks after tasks. Each look is claimed first, so that there is one at a time."""

    task_table: TaskTable
    executions: Executions
    catalogue: Catalogue
    payloads: PayloadStore
    reading: AbstractContextManager[object] = field(default_factory=nullcontext)
    """What an end is read under, which may be large: a lock, where there are several at once."""

    def reconcile(self, task: Task, now: int) -> Found | None:
        """Look at a task that is due. None when another is doing it, or it has just been heard of.

        Raises what calls to AWS raise; then the task is due again after a while.
        """
        if not task.time_to_reconcile(now):
            return None  # any more: the index lags behind the rows
        if not self.task_table.reconcile_index.claim(task, now) or not task.needs_reconciling(now):
            return None
        found = self._look(task, now)
        if found is not Found.RUNNING:
            logger.info("repaired", task_id=task.task_id, found=found.value)
        return found

    def _look(self, task: Task, now: int) -> Found:
        if task.status.terminal:
            self._stop(task)
            self.task_table.reconcile_index.remove(task.task_id)
            return Found.STOPPED
        if task.expired(now):
            return self._expire(task, now)
        execution = self._describe(task)
        if execution is not None and not execution.running:
            with self.reading:
                end_task(task, execution, self.task_table, self.catalogue, self.payloads, now)
            return Found.FINISHED
        if not self._known(task):
            return self._remove(task, now)
        return self._start(task, now) if execution is None else self._pass_on(task, now)

    def _expire(self, task: Task, now: int) -> Found:
        """End it for good, unless the clock that says so may be ahead of others."""
        if now < task.expires_at + EXPIRED_MS:
            return Found.RUNNING
        # The row first, as for a cancel: it stays due until its execution is stopped.
        with suppress(TaskEnded, UnknownTask):
            ended = self.task_table.expire(task.task_id, Failed(EXPIRED).error, EXPIRED, now)
            audit("end", task.task_id, task.principal, status=ended.status.value)
        self._stop(task)
        return Found.EXPIRED

    def _known(self, task: Task) -> bool:
        return task.tool in self.catalogue.tools

    def _describe(self, task: Task) -> ExecutionEnd | None:
        try:
            return self.executions.describe(task.state_machine_arn, task.task_id)
        except ClientError as error:
            if self._known(task) or is_transient(error):
                raise
            return None  # with the tool went the right to ask

    def _remove(self, task: Task, now: int) -> Found:
        """End a task whose tool was removed: nothing of it can go on that needs a function."""
        if now - task.created_at < REMOVED_AFTER_MS:
            return Found.RUNNING
        fail_task(task.task_id, Failed(REMOVED).error, REMOVED, self.task_table, now)
        self._stop(task)
        return Found.FAILED

    def _stop(self, task: Task) -> None:
        try:
            self.executions.stop(task.state_machine_arn, task.task_id)
        except ClientError as error:
            if self._known(task) or is_transient(error):
                raise
            # A state machine of somebody else's: with the tool went the right to stop it.
            logger.warning("An execution was not stopped", task_id=task.task_id)

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
        fail_task(task.task_id, Failed(reason).error, reason, self.task_table, now)
        return Found.FAILED

    def _pass_on(self, task: Task, now: int) -> Found:
        """Send answers that are stored to their states, and close what no state waits for."""
        found = Found.RUNNING
        for ask in task.undelivered:
            pass_on(task, ask, self.executions, self.payloads)
            self.task_table.mark_delivered(task.task_id, ask.id, now)
            found = Found.RESENT
        for ask in task.asks.values():
            if ask.outstanding and not self.executions.waits(ask.token):
                # One at a time: each changes what the next one's condition is about.
                with suppress(Conflict, TaskEnded, UnknownTask):
                    task = self.task_table.close_ask(task, ask.id, now)
                    found = Found.CLOSED
        return found
