"""End tasks, each after its subtasks (SEP-2268, "Task Termination").

A row is not written terminal as long as the task has subtasks that are not: the write has the
condition that the task has just those subtasks which were seen to have ended, and those never
change again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..aws.errors import error_code
from ..tasks.errors import Busy, Conflict, TaskEnded, UnknownTask
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

Write = Callable[[Task], Task]
"""Writes a task's end, on the condition that it has the subtasks of the row that was read."""


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
        return self._after_subtasks(task, write, lambda sub: self._cancel_subtask(sub, now, limit))

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
        def write(seen: Task) -> Task:
            return self.task_table.cancel(task.task_id, now, task.principal, seen.relatives)

        def prepare(seen: Task) -> Task:
            closed = self.task_table.request_cancel(task.task_id, now, task.principal)
            self.stop(closed)
            return closed

        return self._after_subtasks(
            task, write, lambda sub: self._cancel_subtask(sub, now, limit), prepare
        )

    def _cancel_subtask(self, subtask: Task, now: int, limit: float) -> None:
        _check(limit)
        with suppress(TaskEnded, UnknownTask):
            ended = self._cancel(subtask, now, limit)
            audit("end", ended.task_id, ended.principal, status=ended.status.value)
            if ended.begun:
                self.stop(ended)

    def _expire(self, task: Task, error: dict[str, Any], now: int, limit: float) -> Task:
        def write(seen: Task) -> Task:
            return self.task_table.expire(task.task_id, error, now, seen.relatives)

        def expire_subtask(subtask: Task) -> None:
            _check(limit)
            with suppress(TaskEnded, UnknownTask):
                ended = self._expire(subtask, error, now, limit)
                audit("end", ended.task_id, ended.principal, status=ended.status.value)
                if ended.begun:
                    self.stop(ended)

        def prepare(seen: Task) -> Task:
            self.stop(seen)
            return seen

        return self._after_subtasks(task, write, expire_subtask, prepare)

    def _after_subtasks(
        self,
        task: Task,
        write: Write,
        end_subtask: Callable[[Task], None],
        prepare: Callable[[Task], Task] = lambda task: task,
    ) -> Task:
        for _ in range(MAX_ATTEMPTS):
            if task.subtask_ids:
                task = prepare(task)
                for subtask in self.task_table.subtasks.read(task.subtask_ids):
                    if not subtask.status.terminal:
                        end_subtask(subtask)
            try:
                return write(task)
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
