"""Reconcile one task with its execution: compare the two, and do what was lost.

Each action may have been done already, or be done by another function at the same moment, and may
be repeated: starts are idempotent by name, Step Functions takes a token once, and rows are written
under conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from ..audit import audit
from ..aws.errors import is_transient
from ..registry.catalogue import ToolEntry
from ..tasks.errors import Conflict, TaskEnded, UnknownTask
from ..tasks.reconcile_schedule import EXPIRED_MS
from ..tasks.state import Status
from ..tasks.task import Task
from .ask import deliver_answers
from .end_task import UNKNOWN_TOOL_MS, TaskEnds, fail_task, is_function
from .execution_names import execution_name, undo_name
from .execution_outcome import NOT_STARTED, TOOL_REMOVED, Failed
from .executions import MAX_START_AGE_MS, ExecutionEnd, StartFailed
from .successor import goes_on, start_after, start_successor
from .undo_execution import finish_undo, give_up_undo, must_be_undone, start_undo

EXPIRED: Final = "The task's time to live passed before it ended"
EXECUTION_NOT_FOUND: Final = "The tool's execution is not there any more"
ID_USED_BEFORE: Final = "An earlier task had the same id; call again with a new one"

logger = Logger()


class Reconciled(StrEnum):
    """What reconciling a task came to."""

    RUNNING = "running"
    """Nothing was lost."""
    STARTED = "started"
    """The row was written, and the execution never started."""
    NOT_STARTED = "not started"
    """The same, and Step Functions is throttling."""
    ENDED = "ended"
    """The execution had ended, and the event was lost."""
    DELIVERED = "answers delivered"
    """Answers were stored, and not sent to the state that waits for them."""
    ASK_CLOSED = "ask closed"
    """No state waits for the answers any more."""
    EXPIRED = "expired"
    """The task's time to live had passed."""
    UNDO_STARTED = "undo started"
    """What the task did is being undone; the event of its execution's end was lost."""
    UNDONE = "undone"
    """What the task did is undone, as far as it could be, and the event of that was lost."""
    CANCELLED = "cancelled"
    """The task is cancelled, as was requested; its subtasks had to end before."""
    PARENT_TOLD = "parent told"
    """A parent did not know yet that its subtask had ended."""
    NOT_UNDONE = "not undone"
    """What the task did stays: its tool was removed, and with it what could undo it."""
    STOPPED = "stopped"
    """The task had ended, and its execution may have run."""
    FAILED = "failed"
    """The task could not be started, or its execution or its tool is not there any more, or an
    earlier task had its id."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Reconciles tasks. A task is claimed first, so that one function at a time reconciles it."""

    ends: TaskEnds
    state_machine_arn: Callable[[ToolEntry], str]
    """The state machine that runs a tool's tasks."""
    end_lock: AbstractContextManager[object] = field(default_factory=nullcontext)
    """Held while an end is read and written: with threads, one large result at a time."""

    def reconcile(self, task: Task, now: int) -> Reconciled | None:
        """Reconcile a task whose time to reconcile has come.

        Returns None when another function reconciles it, or its row was written a moment ago.
        Raises what calls to AWS raise; then the task is reconciled again later.
        """
        if not task.time_to_reconcile(now):
            return None  # the index lags behind the rows
        if not self.ends.task_table.reconcile_index.claim(task, now) or not task.needs_reconciling(
            now
        ):
            return None
        done = self._reconcile(task, now)
        if done is not Reconciled.RUNNING:
            logger.info("task reconciled", task_id=task.task_id, outcome=done.value)
        return done

    def _reconcile(self, task: Task, now: int) -> Reconciled:
        if task.status.terminal:
            return self._reconcile_ended(task, now)
        if task.expired(now):
            return self._expire(task, now)
        if task.cancel_requested:
            return self._cancel(task, now)
        execution = self._describe(task, execution_name(task))
        if execution is not None and not execution.is_of(task.created_at):
            return self._fail(task, ID_USED_BEFORE, now)
        if execution is not None and not execution.running:
            return self._end(task, execution, now)
        if not self._tool_known(task):
            return self._fail_without_tool(task, now)
        if execution is None:
            return self._start(task, now)
        return self._tell_of_subtasks(task, now) or self._reconcile_asks(task, now)

    def _tell_of_subtasks(self, task: Task, now: int) -> Reconciled | None:
        """Tell a task of its subtasks' ends that it should know of, and stop their executions.

        A function of an earlier version ends a subtask as any task, and tells nobody. One that
        cancelled a subtask may have died before it stopped the execution; a subtask whose parent
        was told is reconciled no more.
        """
        done = None
        for subtask in self.ends.task_table.subtasks.read(task.subtask_ids):
            if subtask.status.terminal and subtask.parent and subtask.parent.tokens:
                if subtask.status is not Status.COMPLETED:
                    self._stop(subtask)
                self.ends.follow_up(subtask, now)
                done = Reconciled.PARENT_TOLD
        return done

    def _end(self, task: Task, execution: ExecutionEnd, now: int) -> Reconciled:
        """Do what `finish` would have done."""
        if is_function(task, self.ends.catalogue) and goes_on(execution.output):
            start_successor(task, execution, self.ends.task_table, self.ends.executions, now)
            return Reconciled.STARTED
        with self.end_lock:
            task, _ = self.ends.end(task, execution, now)
            self.ends.follow_up(task, now)
        return Reconciled.ENDED

    def _reconcile_ended(self, task: Task, now: int) -> Reconciled:
        """Stop the execution of a task that has ended, see that its parent knows, and that what it
        did is undone."""
        if task.status is not Status.COMPLETED:  # by the end of its execution
            self._stop(task)
        if task.parent is not None and task.parent.tokens:
            self.ends.follow_up(task, now)
            return Reconciled.PARENT_TOLD
        if not must_be_undone(task):
            self.ends.task_table.reconcile_index.remove(task.task_id)
            return Reconciled.STOPPED
        if not self._tool_known(task):
            return self._give_up_undo(task, now)
        undoing = self._describe(task, undo_name(task.task_id))
        if undoing is None:
            start_undo(task, self.ends.task_table, self.ends.executions, now)
            return Reconciled.UNDO_STARTED
        if undoing.running:
            return Reconciled.RUNNING
        finish_undo(task, undoing, self.ends.task_table, now)
        return Reconciled.UNDONE

    def _give_up_undo(self, task: Task, now: int) -> Reconciled:
        if self._may_be_deployed_yet(task, now):
            return Reconciled.RUNNING
        give_up_undo(task, self.ends.task_table, now)
        return Reconciled.NOT_UNDONE

    def _expire(self, task: Task, now: int) -> Reconciled:
        """End an expired task, unless this function's clock may be ahead of others."""
        if now < task.expires_at + EXPIRED_MS:
            return Reconciled.RUNNING
        # The row first, as for a cancel: it stays in the index until its execution is stopped.
        with suppress(TaskEnded, UnknownTask):
            task = self.ends.tree.expire(task, Failed(EXPIRED).error, now)
            audit("end", task.task_id, task.principal, status=task.status.value)
        if not self._undo_after_execution(task, now):
            self._stop(task)
        return Reconciled.EXPIRED

    def _undo_after_execution(self, task: Task, now: int) -> bool:
        """Begin to undo what a task did whose execution ended before the task: that event has come,
        and led to nothing. An execution that is stopped now has an event of its own."""
        if not must_be_undone(task) or not self._tool_known(task):
            return False
        execution = self._describe(task, execution_name(task))
        if execution is None or execution.running:
            return False
        start_undo(task, self.ends.task_table, self.ends.executions, now)
        return True

    def _cancel(self, task: Task, now: int) -> Reconciled:
        """Go on with a cancel whose function has died, or had too many subtasks to end."""
        with suppress(TaskEnded, UnknownTask):
            cancelled = self.ends.tree.cancel(task, now)
            audit("end", task.task_id, task.principal, status=cancelled.status.value)
        self._stop(task)
        return Reconciled.CANCELLED

    def _tool_known(self, task: Task) -> bool:
        return task.tool in self.ends.catalogue.tools

    def _describe(self, task: Task, name: str) -> ExecutionEnd | None:
        try:
            return self.ends.executions.describe(task.state_machine_arn, name)
        except ClientError as error:
            if self._tool_known(task) or is_transient(error):
                raise
            return None  # the permission to describe it was removed with the tool

    def _fail_without_tool(self, task: Task, now: int) -> Reconciled:
        """Fail a task whose tool was removed: no state that needs a function can go on."""
        if self._may_be_deployed_yet(task, now):
            return Reconciled.RUNNING
        # The row first: `finish` would begin to undo what nothing can undo any more.
        done = self._fail(task, TOOL_REMOVED, now)
        failed = self.ends.task_table.find(task.task_id)
        if failed is not None and must_be_undone(failed):
            give_up_undo(failed, self.ends.task_table, now)
        self._stop(task)
        return done

    def _may_be_deployed_yet(self, task: Task, now: int) -> bool:
        """Whether this function's code may be older than the tool that it does not know."""
        if now - task.created_at >= UNKNOWN_TOOL_MS:
            return False
        try:
            return not self.ends.executions.is_deleting(task.state_machine_arn)
        except ClientError as error:
            if is_transient(error):
                raise
            return True  # a state machine of somebody else, or a function without the permission

    def _fail(self, task: Task, reason: str, now: int) -> Reconciled:
        fail_task(task, Failed(reason).error, self.ends.tree, now)
        return Reconciled.FAILED

    def _stop(self, task: Task) -> None:
        try:
            self.ends.executions.stop(task.state_machine_arn, execution_name(task))
        except ClientError as error:
            if self._tool_known(task) or is_transient(error):
                raise
            # The permission to stop it was removed with the tool.
            logger.warning("The execution was not stopped", task_id=task.task_id)

    def _start(self, task: Task, now: int) -> Reconciled:
        reason = EXECUTION_NOT_FOUND
        # The deployment says what runs a tool. A row that names another state machine is of an
        # earlier deployment, or is forged; nothing is started because of what a row says alone.
        known = (
            self.state_machine_arn(self.ends.catalogue.tools[task.tool]) == task.state_machine_arn
        )
        # A successor is started by what its predecessor has left, which is forgotten before it.
        remembered = task.execution > 1 or now - task.created_at <= MAX_START_AGE_MS
        if known and remembered:
            try:
                self._start_execution(task)
            except StartFailed as failed:
                logger.error("StartExecution failed", error=str(failed), task_id=task.task_id)
                if not failed.refused:
                    return Reconciled.NOT_STARTED
                reason = NOT_STARTED
            else:
                return Reconciled.STARTED
        # The execution may run all the same: DescribeExecution does not find at once what another
        # attempt has started.
        return self._fail(task, reason, now)

    def _start_execution(self, task: Task) -> None:
        if task.execution == 1:
            self.ends.executions.start(task.state_machine_arn, task.task_id, task.input or "{}")
            return
        before = execution_name(replace(task, execution=task.execution - 1))
        end = self._describe(task, before)
        if end is None:
            raise StartFailed(before, refused=True)
        start_after(task, end, self.ends.executions)

    def _reconcile_asks(self, task: Task, now: int) -> Reconciled:
        """Deliver answers that are stored, and close asks that no state waits for."""
        done = Reconciled.RUNNING
        for ask in task.undelivered:
            deliver_answers(task, ask, self.ends.executions, self.ends.payloads)
            self.ends.task_table.mark_delivered(task.task_id, ask.id, now)
            done = Reconciled.DELIVERED
        for ask in task.asks.values():
            if ask.outstanding and not self.ends.executions.is_waiting(ask.token):
                # One after the other: each changes the revision that the next one's condition has.
                with suppress(Conflict, TaskEnded, UnknownTask):
                    task = self.ends.task_table.close_ask(task, ask.id, now)
                    done = Reconciled.ASK_CLOSED
        return done
