"""The tasks extension on the wire: `io.modelcontextprotocol/tasks` (tasks.md).

How the core's tasks look to a client of the 2026-07-28 revision, and the extension's three
methods. An earlier task design is another module like this one, over the same core.
"""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools import Logger

from ..protocol.errors import ErrorCode, MissingCapability, ProtocolError, invalid_params
from ..tasks.forms import InvalidAnswer
from ..tasks.ids import is_task_id
from ..tasks.inputs import check_size
from ..tasks.rows import Conflict, TaskEnded, TaskTable, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task, iso, now_ms
from ..workflows.executions import Executions
from .call import Call, Complete, Method
from .input_requests import input_requests

EXTENSION: Final = "io.modelcontextprotocol/tasks"

UPDATE_ATTEMPTS: Final = 8
"""How often one `tasks/update` reads again when others answer the same task at the same moment."""

logger = Logger()


REQUIRED: Final[dict[str, Any]] = {"extensions": {EXTENSION: {}}}
"""What a client has to declare ("Capability Negotiation")."""


def create_task_result(task: Task) -> dict[str, Any]:
    """`CreateTaskResult`, flat ("Task Creation"); the only result with this type."""
    return {"resultType": "task", **task_fields(task)}


def detailed_task(task: Task) -> dict[str, Any]:
    """`DetailedTask`: the task, and what its status adds to it ("Task Status")."""
    fields = task_fields(task)
    if task.status is Status.INPUT_REQUIRED:
        fields["inputRequests"] = input_requests(task.outstanding)
    elif task.status is Status.COMPLETED:
        # "The result type of the original request": on this wire every result has a resultType.
        fields["result"] = {"resultType": "complete", **(task.result or {})}
    elif task.status is Status.FAILED:
        fields["error"] = task.error
    return fields


def task_fields(task: Task) -> dict[str, Any]:
    """`Task` ("Tasks")."""
    fields: dict[str, Any] = {"taskId": task.task_id, "status": task.status.value}
    if task.status_message is not None:
        fields["statusMessage"] = task.status_message
    return fields | {
        "createdAt": iso(task.created_at),
        "lastUpdatedAt": iso(task.last_updated_at),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": task.poll_interval_ms,
    }


def get_task(rows: TaskTable) -> Method:
    """`tasks/get` ("Task Polling"): one consistent read."""

    def answer(call: Call) -> Complete:
        task_id = _task_id(call)
        try:
            task = rows.get(task_id, now_ms(), call.principal)
        except UnknownTask:
            raise _unknown() from None
        return Complete(detailed_task(task))

    return answer


def update_task(rows: TaskTable, executions: Executions) -> Method:
    """`tasks/update` ("Task Update Requests").

    Answers are written first, then sent to the waiting state. When the second fails, the client
    gets an error and repeats the request; the answers are not taken twice, and are sent again.
    """

    def answer(call: Call) -> Complete:
        task_id = _task_id(call)
        responses = call.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise invalid_params("params.inputResponses must be an object of answers by key")
        try:
            task = _store_answers(rows, task_id, call.principal, responses)
        except TaskEnded:
            # Whatever was answered is not outstanding any more: ignored.
            return Complete({})
        for ask in task.asks.values():
            if not ask.outstanding:
                if not executions.resume(ask.token, ask.output()):
                    logger.warning("Nothing waits for an answer any more", task_id=task_id)
                rows.delivered(task_id, ask.id, now_ms())
        return Complete({})

    return answer


def cancel_task(rows: TaskTable, executions: Executions) -> Method:
    """`tasks/cancel` ("Task Cancellation"): the row first, then the execution, best effort."""

    def answer(call: Call) -> Complete:
        task_id = _task_id(call)
        try:
            task = rows.cancel(task_id, now_ms(), call.principal)
        except UnknownTask:
            raise _unknown() from None
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
    rows: TaskTable, task_id: str, principal: str, responses: dict[str, Any]
) -> Task:
    """Store what answers an outstanding question, and ignore the rest.

    Returns the task as it is then. Raises TaskEnded, and ProtocolError for an answer that does not
    fit its question.
    """
    for _ in range(UPDATE_ATTEMPTS):
        now = now_ms()
        try:
            task = rows.get(task_id, now, principal)
            answers = {ask.id: new for ask in task.asks.values() if (new := ask.take(responses))}
            held = [answer for ask in task.asks.values() for answer in ask.answers.values()]
            check_size([*held, *(answer for new in answers.values() for answer in new.values())])
            return rows.answer(task, answers, now) if answers else task
        except UnknownTask:
            raise _unknown() from None
        except InvalidAnswer as error:
            raise invalid_params(f"Invalid answer to {error}") from None
        except Conflict:
            continue
    raise ProtocolError(
        ErrorCode.INTERNAL_ERROR, "The task is being answered by others; send the answer again"
    )


def _task_id(call: Call) -> str:
    if not call.takes_tasks:
        message = f"This needs a client that declares the {EXTENSION} extension"
        raise MissingCapability(message, REQUIRED)
    task_id = call.params.get("taskId")
    if not isinstance(task_id, str):
        raise invalid_params("params.taskId must be a string")
    if not is_task_id(task_id):
        raise _unknown()
    return task_id


def _unknown() -> ProtocolError:
    """The same words whether the task is unknown, expired or somebody else's."""
    return invalid_params("Task not found: it never existed, or it has expired")
