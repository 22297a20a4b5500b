"""Poll a task until it has ended, and answer its questions on the way ("Task Polling")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
from mcp import MCPError
from mcp.client import ClientRequestContext, ClientSession
from mcp_types import CallToolResult, ErrorData, InputRequest, InputRequests, InputResponse

from .errors import TaskCancelled, TaskFailed
from .models import CancelledTask, CompletedTask, FailedTask, InputRequiredTask, Task
from .requests import get_task, update_task

DEFAULT_POLL_INTERVAL_MS: Final = 1000
"""The time between two polls when the server suggests none (`pollIntervalMs` is optional)."""

MIN_POLL_INTERVAL_MS: Final = 100
"""The shortest time between two polls, even if the server suggests a shorter one."""

OnUpdate = Callable[[Task], None]
"""Called with a task when it is created, and each time a poll finds it changed."""

Answer = Callable[[str, InputRequest], Awaitable[InputResponse]]
"""Answers one question of a task, given its key.

A task's question deserves no more trust than one that the server sends directly ("Security
Considerations").
"""


async def wait_for_task(
    session: ClientSession,
    task_id: str,
    on_update: OnUpdate | None = None,
    answer: Answer | None = None,
    read_timeout_seconds: float | None = None,
) -> CallToolResult:
    """Poll a task until it has ended, answer its questions, and return the tool's result.

    Another client, in another process, may have created the task. Unlike `call_tool`, this function
    does not know which tool was called, so it does not check the result against the tool's output
    schema; `session.validate_tool_result(name, result)` does.

    Raises TaskFailed or TaskCancelled when the task ended so, and MCPError when the server refused
    a request. The task goes on when this function is interrupted: call it again. After a broken
    connection the SDK's client is unusable, and a new client has to call it.
    """
    return await Poller(session, on_update, answer, read_timeout_seconds).poll(task_id)


@dataclass
class Poller:
    """Polls one task.

    Without `answer`, questions go to the client's own callbacks, such as `elicitation_callback`.
    """

    session: ClientSession
    on_update: OnUpdate | None
    answer: Answer | None
    read_timeout_seconds: float | None
    _seen: Task | None = field(default=None, init=False)
    _answered: set[str] = field(default_factory=set, init=False)

    async def poll_created(self, created: Task) -> CallToolResult:
        """Poll a task that was just created, after the interval that the server suggests."""
        self._show(created)
        await sleep_between_polls(created)
        return await self.poll(created.task_id)

    async def poll(self, task_id: str) -> CallToolResult:
        """Poll until the task has ended. Raises what `wait_for_task` raises."""
        while True:
            task = await get_task(self.session, task_id, self.read_timeout_seconds)
            self._show(task)
            match task:
                case CompletedTask():
                    return task.result
                case FailedTask():
                    raise TaskFailed(task.task_id, task.error)
                case CancelledTask():
                    raise TaskCancelled(task.task_id)
                case InputRequiredTask():
                    await self._answer_new(task_id, task.input_requests)
            await sleep_between_polls(task)

    def _show(self, task: Task) -> None:
        changed = self._seen is None or not is_same_state(task, self._seen)
        self._seen = task
        if changed and self.on_update is not None:
            self.on_update(task)

    async def _answer_new(self, task_id: str, questions: InputRequests) -> None:
        # A question stays in `inputRequests` until the server has processed its answer. Answering
        # it again would ask the user twice.
        new = {key: question for key, question in questions.items() if key not in self._answered}
        if not new:
            return
        # One request for all answers: a server need not accept some of them without the others.
        answers = {key: await self._answer_one(key, question) for key, question in new.items()}
        await update_task(self.session, task_id, answers, self.read_timeout_seconds)
        self._answered.update(new)

    async def _answer_one(self, key: str, question: InputRequest) -> InputResponse:
        if self.answer is not None:
            return await self.answer(key, question)
        meta = question.params.meta if question.params else None
        context = ClientRequestContext(session=self.session, request_id=key, meta=meta)
        response = await self.session.dispatch_input_request(context, question)
        if isinstance(response, ErrorData):
            raise MCPError.from_error_data(response)
        return response


async def sleep_between_polls(task: Task) -> None:
    """Sleep for the interval that the task's server suggests, within this module's bounds."""
    suggested = DEFAULT_POLL_INTERVAL_MS if task.poll_interval_ms is None else task.poll_interval_ms
    await anyio.sleep(max(suggested, MIN_POLL_INTERVAL_MS) / 1000)


def is_same_state(task: Task, other: Task) -> bool:
    """Whether two results show the same state; `_meta` and `resultType` are not part of it."""
    envelope = {"meta", "result_type"}
    return task.model_dump(exclude=envelope) == other.model_dump(exclude=envelope)
