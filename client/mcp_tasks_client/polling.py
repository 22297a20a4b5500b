"""Poll a task until it has ended, and answer its questions on the way ("Task Polling").

A task that calls other tools has a task for each call, with a status, questions and a result of its
own (SEP-2268, "Subtasks"). Nobody is told when the server creates one: its id is among the
`childTaskIds` of its parent. It may wait for an answer while its parent does not, and then the
parent ends only when somebody answers. So subtasks are polled, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
from mcp import MCPError
from mcp.client import ClientRequestContext, ClientSession
from mcp_types import CallToolResult, ErrorData, InputRequest, InputResponse

from .errors import TaskCancelled, TaskFailed
from .models import (
    CompletedTask,
    DetailedTask,
    FailedTask,
    InputRequiredTask,
    Task,
)
from .requests import get_task, update_task

DEFAULT_POLL_INTERVAL_MS: Final = 1000
"""The time between two polls when the server suggests none (`pollIntervalMs` is optional)."""

MIN_POLL_INTERVAL_MS: Final = 100
"""The shortest time between two polls, even if the server suggests a shorter one."""

OnUpdate = Callable[[Task], None]
"""Called with a task when it is created, and each time a poll finds it changed; and so with each
of its subtasks, which have a `parent_task_id`."""

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
    """Poll a task until it has ended, answer its questions and those of its subtasks, and return
    the tool's result.

    Another client, in another process, may have created the task. Unlike `call_tool`, this function
    does not know which tool was called, so it does not check the result against the tool's output
    schema; `session.validate_tool_result(name, result)` does.

    Raises TaskFailed or TaskCancelled when the task ended so, and MCPError when the server refused
    a request. The task goes on when this function is interrupted: call it again. After a broken
    connection the SDK's client is unusable, and a new client has to call it.
    """
    return await Poller(session, on_update, answer, read_timeout_seconds).poll(task_id)


async def follow_tree(
    session: ClientSession, task_id: str, read_timeout_seconds: float | None = None
) -> AsyncIterator[DetailedTask]:
    """Poll a task, its subtasks and theirs until the task has ended. Yields the state of each, and
    each of its changes.

    A subtask comes first after its parent (`parent_task_id`). The task's own end comes last, after
    those of its subtasks. Each task is polled at the interval that the server suggests for it, one
    after the other, and no more when it has ended. No question is answered here.

    Raises MCPError when the server refused a request.
    """
    end: DetailedTask | None = None
    seen: dict[str, DetailedTask] = {}
    waits: dict[str, float] = {task_id: 0}
    """Seconds until a task is polled next."""
    while waits:
        await _wait_for_first(waits)
        for each in [waiting for waiting, seconds in waits.items() if seconds <= 0]:
            task = await get_task(session, each, read_timeout_seconds)
            is_new = each not in seen or not is_same_state(task, seen[each])
            seen[each] = task
            waits[each] = _interval(task)
            # A server may err, and name a task twice or in a circle: it is followed once. Subtasks
            # come before their parent, which may go on when they have ended.
            waits = {child: 0 for child in task.child_task_ids if child not in seen} | waits
            if each == task_id and task.ended:
                end, waits = task, dict.fromkeys(waits, 0)  # the others' last states
            elif is_new:
                yield task
            if task.ended or end is not None:
                waits.pop(each)
    if end is not None:
        yield end


@dataclass
class Poller:
    """Polls one task and its subtasks.

    Without `answer`, questions go to the client's own callbacks, such as `elicitation_callback`.
    """

    session: ClientSession
    on_update: OnUpdate | None
    answer: Answer | None
    read_timeout_seconds: float | None
    _created: Task | None = field(default=None, init=False)
    _answered: set[tuple[str, str]] = field(default_factory=set, init=False)

    async def poll_created(self, created: Task) -> CallToolResult:
        """Poll a task that was just created, after the interval that the server suggests."""
        self._show(created)
        self._created = created
        await anyio.sleep(_interval(created))
        return await self.poll(created.task_id)

    async def poll(self, task_id: str) -> CallToolResult:
        """Poll until the task has ended. Raises what `wait_for_task` raises."""
        async for task in follow_tree(self.session, task_id, self.read_timeout_seconds):
            self._show(task)
            match task:
                case InputRequiredTask():
                    await self._answer_new(task)
                case CompletedTask(task_id=ended) if ended == task_id:
                    return task.result
                case FailedTask(task_id=ended) if ended == task_id:
                    raise TaskFailed(task_id, task.error)
        raise TaskCancelled(task_id)

    def _show(self, task: Task) -> None:
        known = self._created is not None and is_same_state(task, self._created)
        if not known and self.on_update is not None:
            self.on_update(task)

    async def _answer_new(self, task: InputRequiredTask) -> None:
        # A question stays in `inputRequests` until the server has processed its answer. Answering
        # it again would ask the user twice.
        new = {
            key: question
            for key, question in task.input_requests.items()
            if (task.task_id, key) not in self._answered
        }
        if not new:
            return
        # One request for all answers: a server need not accept some of them without the others.
        answers = {key: await self._answer_one(key, question) for key, question in new.items()}
        await update_task(self.session, task.task_id, answers, self.read_timeout_seconds)
        self._answered |= {(task.task_id, key) for key in new}

    async def _answer_one(self, key: str, question: InputRequest) -> InputResponse:
        if self.answer is not None:
            return await self.answer(key, question)
        meta = question.params.meta if question.params else None
        context = ClientRequestContext(session=self.session, request_id=key, meta=meta)
        response = await self.session.dispatch_input_request(context, question)
        if isinstance(response, ErrorData):
            raise MCPError.from_error_data(response)
        return response


async def _wait_for_first(waits: dict[str, float]) -> None:
    """Sleep until the first of some tasks is to be polled, and take that from all their waits."""
    seconds = min(waits.values())
    if seconds > 0:
        await anyio.sleep(seconds)
        for task_id in waits:
            waits[task_id] -= seconds


def _interval(task: Task) -> float:
    """Seconds between two polls, as the task's server suggests it, within this module's bounds."""
    suggested = DEFAULT_POLL_INTERVAL_MS if task.poll_interval_ms is None else task.poll_interval_ms
    return max(suggested, MIN_POLL_INTERVAL_MS) / 1000


def is_same_state(task: Task, other: Task) -> bool:
    """Whether two results show the same state; `_meta` and `resultType` are not part of it."""
    envelope = {"meta", "result_type"}
    return task.model_dump(exclude=envelope) == other.model_dump(exclude=envelope)
