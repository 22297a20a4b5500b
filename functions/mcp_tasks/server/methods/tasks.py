"""The methods of the tasks extension, `io.modelcontextprotocol/tasks` (tasks.md).

An earlier design of tasks would be another module like this one, over the same core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...audit import audit
from ...aws.errors import error_code
from ...payloads.s3_store import PayloadStore
from ...protocol.errors import ErrorCode, MissingCapability, ProtocolError, invalid_params
from ...tasks.errors import Conflict, TaskEnded, UnknownTask
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
from ..call import Call, Complete, MethodTable
from ..task_access import TASK_NOT_FOUND, TaskAccess, not_found
from .poll_rate_limit import PollRateLimit
from .result_links import ResultLinks
from .task_wire_format import EXTENSION, REQUIRED, detailed_task

UPDATE_ATTEMPTS: Final = 8
"""How often one `tasks/update` reads the row again when other requests change it meanwhile."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class TaskMethods:
    """Serves `tasks/get`, `tasks/update` and `tasks/cancel`."""

    access: TaskAccess
    task_table: TaskTable
    executions: Executions
    reconciler: Reconciler
    payloads: PayloadStore
    result_links: ResultLinks
    poll_rate_limit: PollRateLimit
    cell: str

    def table(self) -> MethodTable:
        """The methods by name."""
        return {
            "tasks/get": self.get,
            "tasks/update": self.update,
            "tasks/cancel": self.cancel,
        }

    def get(self, call: Call) -> Complete:
        """`tasks/get` ("Task Polling"): one consistent read, and no write.

        Only a task whose execution has not reported for longer than a step of its tool may take is
        reconciled, by one of all polls.
        """
        task_id, now = _task_id(call, self.cell), now_ms()
        self.poll_rate_limit.count(call.principal, task_id)
        task = self.access.read(call, task_id, now, "read")
        self.poll_rate_limit.suggested(call.principal, task_id, task.poll_interval_ms)
        audit("read", task_id, call.principal)
        if task.needs_reconciling(now) and not task.status.terminal:
            task = self._reconciled(task, now, call.principal)
        return Complete(detailed_task(self.result_links.with_result(task, now), now))

    def update(self, call: Call) -> Complete:
        """`tasks/update` ("Task Update Requests").

        The answers are written into the row first, and then sent to the state that waits for them.
        When sending fails, the client gets an error and repeats the request: the answers are not
        taken twice, and are sent again.
        """
        task_id = _task_id(call, self.cell)
        responses = call.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise invalid_params("params.inputResponses must be an object of answers by key")
        try:
            task = self._store_answers(task_id, call, responses)
        except TaskEnded:
            # No question of an ended task is outstanding: its answers are ignored.
            return Complete({})
        for ask in task.asks.values():
            if not ask.outstanding:
                if not deliver_answers(task, ask, self.executions, self.payloads):
                    logger.warning("No execution waits for the answers", task_id=task_id)
                self.task_table.mark_delivered(task_id, ask.id, now_ms())
        return Complete({})

    def cancel(self, call: Call) -> Complete:
        """`tasks/cancel` ("Task Cancellation"): the row first, then the execution, best effort."""
        task_id, now = _task_id(call, self.cell), now_ms()
        task = self.access.read(call, task_id, now, "cancel")
        if task.status.terminal:
            self._stop_again(task, now)
            return Complete({})
        try:
            task = self.task_table.cancel(task_id, now, call.principal)
            audit("cancel", task_id, call.principal)
        except UnknownTask:
            raise not_found("cancel", task_id, call) from None
        except TaskEnded as ended:
            # Another end came first; or this very write, whose answer was lost.
            self._stop_again(ended.task, now)
        else:
            self._stop(task)
        return Complete({})

    def _stop_again(self, task: Task, now: int) -> None:
        """Stop a cancelled task's execution, once, in case that the first cancel has died before it
        did; later the sweeper does.
        """
        index = self.task_table.reconcile_index
        if task.status is Status.CANCELLED and index.claim_for_repeat(task, STOP_AGAIN_MS, now):
            self._stop(task)

    def _stop(self, task: Task) -> None:
        try:
            self.executions.stop(task.state_machine_arn, task.task_id)
        except Exception as error:
            # The task is cancelled nevertheless; its steps end at their next report.
            error_name = type(error).__name__
            logger.warning("StopExecution failed", task_id=task.task_id, error=error_name)

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

    def _store_answers(self, task_id: str, call: Call, responses: dict[str, Any]) -> Task:
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


def require_extension(call: Call) -> None:
    """Raise MissingCapability (-32021) for a request that does not declare the extension."""
    if not call.declares_tasks:
        message = f"This needs a client that declares the {EXTENSION} extension"
        raise MissingCapability(message, REQUIRED)


def _task_id(call: Call, cell: str) -> str:
    require_extension(call)
    task_id = call.params.get("taskId")
    if not isinstance(task_id, str):
        raise invalid_params("params.taskId must be a string")
    if (home := cell_of(task_id)) is None:
        raise invalid_params(TASK_NOT_FOUND)
    if home != cell:
        # The cell is part of the id, so this tells the client nothing new. It tells operators that
        # their routes are wrong. Whether the task exists stays open.
        raise invalid_params("Task not found: its id is of another cell; route it by Mcp-Name")
    return task_id
