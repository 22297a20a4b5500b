"""A response as it is kept for a client that may have lost it: what a call has ended with, as JSON.

{"result": ...}    of a call that has run
{"taskId": ...}    of one that has become a task
{"error": ...}     a JSON-RPC error
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools import Logger

from ...protocol.errors import ErrorCode, ProtocolError
from ...redaction import unexpected_error
from ...tasks.task import Task
from ..call import Complete, Outcome, TaskCreated

logger = Logger()


def kept_response(outcome: Outcome) -> dict[str, Any]:
    """The end of a call. Raises TypeError for an outcome that is none."""
    if isinstance(outcome, TaskCreated):
        return {"taskId": outcome.task.task_id}
    if not isinstance(outcome, Complete):
        raise TypeError(f"a call does not end with {type(outcome).__name__}")
    return {"result": outcome.result}


def kept_error(error: Exception) -> dict[str, Any]:
    """The error that a call has ended with. An unexpected one says nothing of itself."""
    if not isinstance(error, ProtocolError):
        error = unexpected_error(logger, error)
    return {"error": error.as_error()}


def internal_error(message: str) -> dict[str, Any]:
    """An internal error with this message."""
    return {"error": ProtocolError(ErrorCode.INTERNAL_ERROR, message).as_error()}


def outcome_of(response: Mapping[str, Any], read_task: Callable[[str], Task]) -> Outcome:
    """What a response stands for; `read_task` gets a task's id. Raises ProtocolError when it is an
    error."""
    if "error" in response:
        raise ProtocolError.from_error(response["error"])
    if "taskId" in response:
        return TaskCreated(read_task(response["taskId"]))
    return Complete(response["result"])
