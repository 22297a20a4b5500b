"""What companion tools answer with: CallToolResults that a model understands.

The text says what to do next. `structuredContent` has the same for programs: `taskId`, `status`,
and what there is to know of a task in that status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ...tasks.questions import Question
from ...tasks.state import Status
from ...tasks.task import Task
from .input_requests import input_request
from .result_links import ResultLinks

RESULT: Final = "task_result"
ANSWER: Final = "task_answer"
CANCEL: Final = "task_cancel"


def task_result(task: Task, result_links: ResultLinks, now: int) -> dict[str, Any]:
    """The tool's result, what the task waits for, or how far it is."""
    if task.status is Status.COMPLETED:
        return result_links.with_result(task, now).result or {"content": []}
    if task.status is Status.FAILED:
        error = task.error or {}
        return _result(task, f"The task failed: {error.get('message', 'Internal error')}", True)
    if task.status is Status.CANCELLED:
        return _result(task, "The task was cancelled", True)
    questions = open_questions(task)
    if questions:
        return _with_questions(task, questions)
    so_far = f" So far: {task.status_message}" if task.status_message else ""
    return _result(
        task,
        f"{task.tool} is still running as task {task.task_id}.{so_far} Call {RESULT} with this "
        "task_id for its result.",
    )


def open_questions(task: Task) -> dict[str, Question]:
    """The questions that the task waits for, by key."""
    return {
        key: question for ask in task.asks.values() for key, question in ask.outstanding.items()
    }


def cancel_result(task: Task) -> dict[str, Any]:
    """What a call of `task_cancel` is answered with."""
    if task.status is Status.CANCELLED:
        return _result(task, "The task is cancelled")
    if task.cancel_requested and not task.status.terminal:
        return _result(task, "The task is being cancelled; its subtasks end first")
    return _result(task, f"The task had ended before: it is {task.status.value}")


def _with_questions(task: Task, questions: Mapping[str, Question]) -> dict[str, Any]:
    asked = [{"key": key, **input_request(question)} for key, question in questions.items()]
    text = (
        f"{task.tool} (task {task.task_id}) waits for an answer. Ask the user, and call {ANSWER} "
        f"with this task_id for each of these questions: {json.dumps(asked)}"
    )
    return _result(task, text, questions=asked)


def _result(task: Task, text: str, is_error: bool = False, **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"taskId": task.task_id, "status": task.status.value, **more}
    if task.status_message is not None:
        told["statusMessage"] = task.status_message
    result = {"content": [{"type": "text", "text": text}], "structuredContent": told}
    return {**result, "isError": True} if is_error else result
