"""The methods of the tasks extension, `io.modelcontextprotocol/tasks` (tasks.md).

An earlier task design is another module like this one, over the same core.
"""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools import Logger

from ...audit import Action, audit
from ...aws.errors import error_code
from ...payloads.s3_store import PayloadStore
from ...protocol.errors import ErrorCode, MissingCapability, ProtocolError, invalid_params
from ...tasks.forms import InvalidAnswer
from ...tasks.ids import cell_of
from ...tasks.questions import check_size
from ...tasks.state import Status
from ...tasks.task import Task, now_ms
from ...tasks.task_table import Conflict, TaskEnded, TaskTable, UnknownTask
from ...workflows.ask import pass_on
from ...workflows.executions import Executions
from ...workflows.reconcile import Found, Reconciler
from ..call import Call, Complete, Method
from .poll_rate_limit import PollRateLimit
from .result_links import ResultLinks
from .task_wire_format import EXTENSION, REQUIRED, detailed_task

UPDATE_ATTEMPTS: Final = 8
"""How often one `tasks/update` reads again when others answer the same task at the same moment."""

UNKNOWN: Final = "Task not found: it never existed, or it has expired"
"""The same words whether the task is unknown, expired or somebody else's."""

logger = Logger()


def get_task(
    task_table: TaskTable,
    cell: str,
    polls: PollRateLimit,
    reconciler: Reconciler,
    results: ResultLinks,
) -> Method:
    """`tasks/get` ("Task Polling"): one consistent read, and no write.

    Unless nothing was heard of the task for longer than a step of its tool may take: then its
    execution is asked after, by one of all polls.
    """

    def answer(call: Call) -> Complete:
        task_id, now = _task_id(call, cell), now_ms()
        polls.count(call.principal, task_id)
        try:
            task = task_table.get(task_id, now, call.principal)
        except UnknownTask:
            raise _unknown("read", task_id, call) from None
        polls.suggested(call.principal, task_id, task.poll_interval_ms)
        audit("read", task_id, call.principal)
        if task.overdue(now) and not task.status.terminal:
            task = reconcile(task, now, call.principal)
        return Complete(detailed_task(results.of(task, now), now))

    def reconcile(task: Task, now: int, principal: str) -> Task:
        """The task as it is after it was looked after, or as it was."""
        try:
            if reconciler.reconcile(task, now) in (None, Found.RUNNING):
                return task
            return task_table.get(task.task_id, now_ms(), principal)
        except Exception as error:
            # A poll tells what the row says. The task is due again after a while.
            logger.warning("A task was not looked at", error=error_code(error))
            return task

    return answer


def update_task(
    task_table: TaskTable, executions: Executions, payloads: PayloadStore, cell: str
) -> Method:
    """`tasks/update` ("Task Update Requests").

    Answers are written first, then sent to the waiting state. When the second fails, the client
    gets an error and repeats the request; the answers are not taken twice, and are sent again.
    """

    def answer(call: Call) -> Complete:
        task_id = _task_id(call, cell)
        responses = call.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise invalid_params("params.inputResponses must be an object of answers by key")
        try:
            task = _store_answers(task_table, task_id, call, responses)
        except TaskEnded:
            # Whatever was answered is not outstanding any more: ignored.
            return Complete({})
        for ask in task.asks.values():
            if not ask.outstanding:
                if not pass_on(task, ask, executions, payloads):
                    logger.warning("Nothing waits for an answer any more", task_id=task_id)
                task_table.delivered(task_id, ask.id, now_ms())
        return Complete({})

    return answer


def cancel_task(task_table: TaskTable, executions: Executions, cell: str) -> Method:
    """`tasks/cancel` ("Task Cancellation"): the row first, then the execution, best effort."""

    def answer(call: Call) -> Complete:
        task_id = _task_id(call, cell)
        try:
            task = task_table.cancel(task_id, now_ms(), call.principal)
            audit("cancel", task_id, call.principal)
        except UnknownTask:
            raise _unknown("cancel", task_id, call) from None
        except TaskEnded as ended:
            if ended.task.status is not Status.CANCELLED:
                return Complete({})
            # Perhaps by this very request, whose first answer was lost: stop, once more at most.
            task = ended.task
        try:
            executions.stop(task.state_machine_arn, task_id)
        except Exception as error:
            # The task is cancelled all the same; its steps end at their next report.
            logger.warning("StopExecution failed", task_id=task_id, error=type(error).__name__)
        return Complete({})

    return answer


def _store_answers(
    task_table: TaskTable, task_id: str, call: Call, responses: dict[str, Any]
) -> Task:
    """Store what answers an outstanding question, and ignore the rest.

    Returns the task as it is then. Raises TaskEnded, and ProtocolError for an answer that does not
    fit its question.
    """
    for _ in range(UPDATE_ATTEMPTS):
        now = now_ms()
        try:
            task = task_table.get(task_id, now, call.principal)
            answers = {ask.id: new for ask in task.asks.values() if (new := ask.take(responses))}
            held = [answer for ask in task.asks.values() for answer in ask.answers.values()]
            check_size([*held, *(answer for new in answers.values() for answer in new.values())])
            if not answers:
                return task
            task = task_table.answer(task, answers, now)
            audit("answer", task_id, call.principal)
            return task
        except UnknownTask:
            raise _unknown("answer", task_id, call) from None
        except InvalidAnswer as error:
            raise invalid_params(f"Invalid answer to {error}") from None
        except Conflict:
            continue
    raise ProtocolError(
        ErrorCode.INTERNAL_ERROR, "The task is being answered by others; send the answer again"
    )


def require_extension(call: Call) -> None:
    """Raise -32021 for a client that does not declare the extension with this request."""
    if not call.takes_tasks:
        message = f"This needs a client that declares the {EXTENSION} extension"
        raise MissingCapability(message, REQUIRED)


def _task_id(call: Call, cell: str) -> str:
    require_extension(call)
    task_id = call.params.get("taskId")
    if not isinstance(task_id, str):
        raise invalid_params("params.taskId must be a string")
    if (home := cell_of(task_id)) is None:
        raise invalid_params(UNKNOWN)
    if home != cell:
        # What the client knows anyway, for whoever set up the routes; whether it exists stays open.
        raise invalid_params("Task not found: its id is of another cell; route it by Mcp-Name")
    return task_id


def _unknown(action: Action, task_id: str, call: Call) -> ProtocolError:
    audit(action, task_id, call.principal, refused=True)
    return invalid_params(UNKNOWN)
