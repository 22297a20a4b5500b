"""What every design of tasks does with a task: read it, answer its questions, cancel it.

`tasks.py` has the methods of the tasks extension over these operations. An earlier design of tasks
is another module like that one. None of them reads or writes a row itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...audit import audit
from ...aws.errors import error_code
from ...payloads.s3_store import PayloadStore
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...tasks.errors import Busy, Conflict, TaskEnded, UnknownTask
from ...tasks.forms import InvalidAnswer
from ...tasks.ids import cell_of
from ...tasks.questions import check_size
from ...tasks.reconcile_schedule import STOP_AGAIN_MS
from ...tasks.state import Status
from ...tasks.task import Task, now_ms
from ...tasks.task_table import TaskTable
from ...workflows.ask import deliver_answers
from ...workflows.executions import Executions
from ...workflows.reconcile import Reconciled, Reconciler
from ...workflows.task_tree import TaskTree
from ..call import Call
from ..task_access import TASK_NOT_FOUND, TaskAccess, not_found

UPDATE_ATTEMPTS: Final = 8
"""How often one answer reads the row again when other requests change it meanwhile."""

logger = Logger()

ANOTHER_CELL: Final = (
    "Task not found: its id is of another cell of this server. Requests are routed by the header "
    "Mcp-Name: send the task's id in it, as it is"
)


@dataclass(frozen=True, slots=True)
class TaskOperations:
    """The operations on the tasks of a request's caller."""

    access: TaskAccess
    task_table: TaskTable
    executions: Executions
    reconciler: Reconciler
    payloads: PayloadStore
    cell: str

    @property
    def tree(self) -> TaskTree:
        """What ends tasks after their subtasks."""
        return TaskTree(self.task_table, self.executions)

    def check_id(self, task_id: object) -> str:
        """An id that may be of this cell's. Raises ProtocolError (-32602)."""
        if not isinstance(task_id, str):
            raise invalid_params("params.taskId must be a string")
        if (home := cell_of(task_id)) is None:
            raise invalid_params(TASK_NOT_FOUND)
        if home != self.cell:
            # The cell is part of the id, so this tells the client nothing new. A client that leaves
            # the header out (NAME_MAY_BE_MISSING), or encodes it, is led to the first cell: rules
            # match its plain value. Whether the task exists stays open.
            raise invalid_params(ANOTHER_CELL)
        return task_id

    def read(self, call: Call, task_id: str) -> Task:
        """The caller's task, by one consistent read and no write.

        Only a task whose execution has not reported for longer than a step of its tool may take is
        reconciled, by one of all polls. Raises ProtocolError.
        """
        now = now_ms()
        task = self.access.read(call, task_id, now, "read")
        if task.needs_reconciling(now) and not task.status.terminal:
            return self._reconciled(task, now, call.principal)
        return task

    def answer(self, call: Call, task_id: str, responses: Mapping[str, Any]) -> None:
        """Take answers to a task's questions, by key. Answers to no outstanding question are
        ignored, as are those to a task that has ended.

        The answers are written into the row first, and then sent to the state that waits for them.
        When sending fails, the client gets an error and repeats the request: the answers are not
        taken twice, and are sent again. Raises ProtocolError for an answer that does not fit.
        """
        try:
            task = self._store_answers(task_id, call, responses)
        except TaskEnded:
            return
        for ask in task.asks.values():
            if not ask.outstanding:
                if not deliver_answers(task, ask, self.executions, self.payloads):
                    logger.warning("No execution waits for the answers", task_id=task_id)
                self.task_table.mark_delivered(task_id, ask.id, now_ms())

    def cancel(self, call: Call, task_id: str) -> tuple[Task, bool]:
        """Cancel a task: its subtasks, then the row, then the execution, best effort.

        Returns the task as it is then, and whether this cancelled it: it may have ended before.
        Raises ProtocolError.
        """
        now = now_ms()
        task = self.access.read(call, task_id, now, "cancel")
        if task.status.terminal:
            self._stop_again(task, now)
            return task, False
        try:
            task = self.tree.cancel(task, now)
            audit("cancel", task_id, call.principal)
        except Busy:
            # The sweeper goes on: the row says that the task is to be cancelled.
            logger.warning("Not all subtasks could be ended in time", task_id=task_id)
            return self.task_table.get(task_id, now_ms(), call.principal), True
        except UnknownTask:
            raise not_found("cancel", task_id, call) from None
        except TaskEnded as ended:
            # Another end came first; or this very write, whose answer was lost.
            self._stop_again(ended.task, now)
            return ended.task, False
        if task.begun:
            self.tree.stop(task)
        return task, True

    def cancel_if_there(self, call: Call, task_id: str) -> None:
        """Cancel the task with an id that follows from a request id. There may be none."""
        with suppress(UnknownTask):
            self.task_table.get(task_id, now_ms(), call.principal)
            self.cancel(call, task_id)

    def _stop_again(self, task: Task, now: int) -> None:
        """Stop a cancelled task's execution, once, in case that the first cancel has died before it
        did; later the sweeper does.
        """
        index = self.task_table.reconcile_index
        if task.status is Status.CANCELLED and index.claim_for_repeat(task, STOP_AGAIN_MS, now):
            self.tree.stop(task)

    def _reconciled(self, task: Task, now: int, principal: str) -> Task:
        """The task after it was reconciled; unchanged when that found nothing or failed."""
        try:
            if self.reconciler.reconcile(task, now) in (None, Reconciled.RUNNING):
                return task
            return self.task_table.get(task.task_id, now_ms(), principal)
        except Exception as error:
            # The poll returns what the row says. The task is reconciled again later.
            logger.warning("Task was not reconciled", error=error_code(error))
            return task

    def _store_answers(self, task_id: str, call: Call, responses: Mapping[str, Any]) -> Task:
        """Write the answers to outstanding questions into the row, and ignore all others.

        Returns the task as it is then. Raises TaskEnded, and ProtocolError for an answer that does
        not fit its question.
        """
        for _ in range(UPDATE_ATTEMPTS):
            now = now_ms()
            try:
                task = self.access.read(call, task_id, now, "answer")
                asks = task.asks.values()
                answers = {ask.id: new for ask in asks if (new := ask.take(responses))}
                held = [answer for ask in asks for answer in ask.answers.values()]
                check_size([*held, *(each for new in answers.values() for each in new.values())])
                if not answers:
                    return task
                task = self.task_table.answer(task, answers, now)
                audit("answer", task_id, call.principal)
                return task
            except UnknownTask:
                raise not_found("answer", task_id, call) from None
            except InvalidAnswer as error:
                raise invalid_params(f"Invalid answer to {error}") from None
            except Conflict:
                continue
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            "Other requests answer this task at the same time; send the answers again",
        )
