"""End tasks, each after its subtasks (SEP-2268, "Task Termination").

A row is not written terminal as long as the task has subtasks that are not: the write has the
condition that the task has just those subtasks which were seen to have ended, and those never
change again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..aws.errors import error_code
from ..tasks.errors import Busy, Conflict, TaskEnded, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .execution_names import execution_name
from .executions import Executions

MAX_SECONDS: Final = 15
"""How long one function works at the end of a tree of subtasks. What is left is done by the
function that tries it again: what has ended stays ended."""

MAX_ATTEMPTS: Final = 8
"""How often a task's end is tried again because it has more subtasks by then."""

logger = Logger()

Write = Callable[[Task, int], Task]
"""Writes a task's end at a time, on the condition that it has the subtasks of the row that was
read."""


@dataclass(frozen=True, slots=True)
class TaskTree:
    """Ends tasks and their subtasks. Each method may be repeated.

    Each raises Busy when the time is up, TaskEnded when another end came first, and UnknownTask.
    """

    task_table: TaskTable
    executions: Executions

    def cancel(self, task: Task, now: int) -> Task:
        """Cancel a task for its principal, after its subtasks; returns the task as written.

        The execution of a task with subtasks is stopped before they end, or it would go on with
        what they came to. That of any other task is stopped by the caller, when the row says
        cancelled.
        """
        return self._cancel(task, now, _time_limit())

    def expire(self, task: Task, error: dict[str, Any], now: int) -> Task:
        """End a task whose time to live has passed, after its subtasks; returns it as written.

        Its execution may run until the caller stops it.
        """
        return self._expire(task, error, now, _time_limit())

    def end(self, task: Task, write: Write, now: int) -> Task:
        """End a task whose execution has ended, after its subtasks; returns the task as written."""
        limit = _time_limit()
        return self._after_subtasks(
            task, now, write, lambda sub: self._cancel_subtask(sub, now, limit)
        )

    def discard(self, task: Task, now: int) -> None:
        """Let a task that has ended expire, and its subtasks before it."""
        for subtask in self.task_table.subtasks.read(task.subtask_ids):
            self.discard(subtask, now)
        self.task_table.discard(task.task_id, now)

    def stop(self, task: Task) -> None:
        """Stop a task's execution, best effort: the sweeper does so again later."""
        try:
            self.executions.stop(task.state_machine_arn, execution_name(task))
        except Exception as error:
            logger.warning("StopExecution failed", task_id=task.task_id, error=error_code(error))

    def _cancel(self, task: Task, now: int, limit: float) -> Task:
        def write(seen: Task, at: int) -> Task:
            return self.task_table.cancel(task.task_id, at, task.principal, seen.relatives)

        def prepare(seen: Task) -> Task:
            closed = self.task_table.request_cancel(task.task_id, now, task.principal)
            self.stop(closed)
            return closed

        return self._after_subtasks(
            task, now, write, lambda sub: self._cancel_subtask(sub, now, limit), prepare
        )

    def _cancel_subtask(self, subtask: Task, now: int, limit: float) -> Task:
        return self._end_subtask(subtask, lambda: self._cancel(subtask, now, limit), limit)

    def _end_subtask(self, subtask: Task, end: Callable[[], Task], limit: float) -> Task:
        """End a subtask, and its execution; returns the row as it is then."""
        _check(limit)
        try:
            ended = end()
        except TaskEnded as before:  # or this very write, whose answer was lost
            ended = before.task
        except UnknownTask:
            return subtask
        else:
            audit("end", ended.task_id, ended.principal, status=ended.status.value)
        if ended.begun and ended.status is not Status.COMPLETED:
            self.stop(ended)
        return ended

    def _expire(self, task: Task, error: dict[str, Any], now: int, limit: float) -> Task:
        def write(seen: Task, at: int) -> Task:
            return self.task_table.expire(task.task_id, error, at, seen.relatives)

        def expire_subtask(subtask: Task) -> Task:
            return self._end_subtask(
                subtask, lambda: self._expire(subtask, error, now, limit), limit
            )

        def prepare(seen: Task) -> Task:
            self.stop(seen)
            return seen

        return self._after_subtasks(task, now, write, expire_subtask, prepare)

    def _after_subtasks(
        self,
        task: Task,
        now: int,
        write: Write,
        end_subtask: Callable[[Task], Task],
        prepare: Callable[[Task], Task] = lambda task: task,
    ) -> Task:
        for _ in range(MAX_ATTEMPTS):
            if task.subtask_ids:
                task = prepare(task)
                for subtask in self.task_table.subtasks.read(task.subtask_ids):
                    ended = subtask if subtask.status.terminal else end_subtask(subtask)
                    # Its time may be of a clock that is ahead. The task ends after it.
                    now = max(now, ended.last_updated_at)
            try:
                return write(task, now)
            except Conflict as conflict:
                if conflict.task.subtask_ids == task.subtask_ids:
                    raise
                task = conflict.task
        raise Busy("the task has more and more subtasks")


def _time_limit() -> float:
    return time.monotonic() + MAX_SECONDS


def _check(limit: float) -> None:
    if time.monotonic() > limit:
        raise Busy("the task has more subtasks than could be ended in time")
