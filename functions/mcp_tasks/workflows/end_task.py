"""Write a task's end to its row, and do what follows from it. The first end that is written stands:
a cancelled task stays cancelled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..audit import audit
from ..durable.journal_table import JournalTable
from ..payloads.offloading import MAX_RESOLVED_BYTES
from ..payloads.pointer import PayloadPointer, payload_prefix, pointer_of
from ..payloads.s3_store import PayloadNotFound, PayloadStore, PayloadTooLarge
from ..redaction import log_crash
from ..registry.catalogue import Catalogue
from ..tasks.errors import Conflict, TaskEnded, UnknownTask
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .execution_outcome import Completed, Failed, may_leave_a_step, outcome
from .executions import ExecutionEnd, Executions
from .subtask_outcome import SubtaskOutcomes
from .successor import goes_on
from .task_tree import TaskTree
from .undo_execution import give_up_undo, must_be_undone, start_undo

MAX_ROW_RESULT_BYTES: Final = 300_000
"""A larger result is kept in S3. An item of DynamoDB has at most 400 KB."""

UNKNOWN_TOOL_MS: Final = 3_600_000
"""How long a task is left alone whose tool this function does not know: during a deployment, the
function's code may be older than the tool."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class TaskEnds:
    """Ends tasks whose executions have ended."""

    task_table: TaskTable
    executions: Executions
    catalogue: Catalogue
    payloads: PayloadStore
    journal_table: JournalTable | None = None
    """None in a function that may not write the journals of tools: `api` leaves it to the sweeper
    to tell parents."""

    @property
    def tree(self) -> TaskTree:
        """What ends tasks after their subtasks."""
        return TaskTree(self.task_table, self.executions)

    def end(self, task: Task, end: ExecutionEnd, now: int) -> tuple[Task, bool]:
        """Write what the end of its execution means for a task.

        Returns the task as it is then, and whether this has ended it: another end may have come
        first. Raises Busy when not all of its subtasks could be ended; the sweeper tries again.
        """
        step_may_run = may_leave_a_step(end, sequential=task.sequential)
        try:
            if task.cancel_requested and (end.status != "SUCCEEDED" or goes_on(end.output)):
                task = self.tree.cancel(task, now)
            else:
                task = self._written(task, end, now, step_may_run=step_may_run)
        except TaskEnded as before:
            return before.task, False
        except UnknownTask:
            return task, False
        audit("end", task.task_id, task.principal, status=task.status.value)
        return task, True

    def follow_up(self, task: Task, now: int) -> None:
        """Do what follows when a task and its execution have ended: a parent is told, and what was
        done is undone. This may be repeated. Raises StartFailed.
        """
        if not task.status.terminal:
            return
        if task.parent is not None and task.parent.tokens and self.journal_table is not None:
            outcomes = SubtaskOutcomes(self.journal_table, self.payloads, self.executions)
            outcomes.tell(task, task.parent, now)
            undo = must_be_undone(task)
            self.task_table.subtasks.parent_told(task.task_id, now, to_be_undone=undo)
        if not must_be_undone(task):
            return
        if task.tool in self.catalogue.tools:
            start_undo(task, self.task_table, self.executions, now)
        elif now - task.created_at >= UNKNOWN_TOOL_MS:
            give_up_undo(task, self.task_table, now)

    def _written(self, task: Task, end: ExecutionEnd, now: int, *, step_may_run: bool) -> Task:
        ended = _outcome(task, end, self.catalogue, self.payloads)
        if isinstance(ended, Failed):
            return self._fail(task, ended, now, step_may_run=step_may_run)

        def write(seen: Task, at: int) -> Task:
            return self.task_table.complete(
                task.task_id, ended, at, relatives=seen.relatives, step_may_run=step_may_run
            )

        return self.tree.end(task, write, now)

    def _fail(self, task: Task, failed: Failed, now: int, *, step_may_run: bool) -> Task:
        """Fail a task. As long as something is to be undone, it stays in the reconcile schedule."""

        def write(seen: Task, at: int) -> Task:
            return self.task_table.fail(
                task.task_id,
                failed.error,
                at,
                relatives=seen.relatives,
                may_run=seen.undo,
                step_may_run=step_may_run,
            )

        try:
            return self.tree.end(task, write, now)
        except Conflict as conflict:
            if task.undo or not conflict.task.undo:
                raise
            return self.tree.end(conflict.task, write, now)


def fail_task(
    task: Task,
    error: dict[str, Any],
    tree: TaskTree,
    now: int,
    *,
    step_may_run: bool = False,
) -> Task | None:
    """Fail a task whose execution may run; an end that came first stands.

    Returns the task; None when it had ended. Raises Busy.
    """

    def write(seen: Task, at: int) -> Task:
        return tree.task_table.fail(
            task.task_id,
            error,
            at,
            relatives=seen.relatives,
            may_run=True,
            step_may_run=step_may_run,
        )

    try:
        ended = tree.end(task, write, now)
    except (TaskEnded, UnknownTask):
        return None
    audit("end", task.task_id, task.principal, status=ended.status.value)
    return ended


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
        about = {"task_id": task.task_id, "tool": task.tool}
        log_crash(logger, error, "A result could not be validated", **about)
        raise ValueError(type(error).__name__) from None
