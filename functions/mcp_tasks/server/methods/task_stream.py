"""The event stream of a call whose client waits for the result of a task (2025-11-25
basic/transports.mdx, "Sending Messages to the Server").

The call has become a task that its client does not see. Its stream brings the task's progress and
questions, and the result as the response to the call, on as many connections as it takes
(`stream_connection.py`). The row is read twice a second, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from ...audit import audit
from ...notifications.clock import SYSTEM_CLOCK, Clock
from ...protocol.errors import ErrorCode, ProtocolError
from ...tasks.questions import Question
from ...tasks.state import Status
from ...tasks.task import Task
from ..call import Call, Complete, Outcome, StreamPaused
from ..stream_position import EventIds, StreamPosition
from .asking_subtasks import AskingSubtasks
from .call_quota import CallQuota
from .companion_results import task_result
from .result_links import ResultLinks
from .stream_connection import BUFFERED_MS, StreamConnection, WriteRequest
from .task_operations import TaskOperations

MIN_BUFFERED_MS: Final = 2_000
"""How long a buffered connection lasts at least that has progress to bring."""

About = Callable[[Task], dict[str, Any]]
"""From a task to the members of `_meta` of the messages about it."""


@dataclass(frozen=True, slots=True)
class TaskStream:
    """Follows tasks for calls."""

    operations: TaskOperations
    result_links: ResultLinks
    event_ids: EventIds
    call_quota: CallQuota
    companion_tools: bool = False
    """Whether a client that does not resume has tools to ask for the result."""
    clock: Clock = SYSTEM_CLOCK

    def follow(
        self,
        call: Call,
        position: StreamPosition,
        write_request: WriteRequest,
        about: About,
    ) -> Outcome:
        """Send what comes after a position, until the task has ended or the time is up.

        `about` returns the members of `_meta` of the messages about a task: the one that is
        followed, or a subtask of it that asks.

        Returns the tool's result as Complete, or StreamPaused. Raises ProtocolError: the task's own
        error, or -32602 for a task that does not exist for the caller.
        """
        connection = StreamConnection(call, position, self.event_ids, write_request, self.clock)
        with self.call_quota.hold(call):
            connection.begin()
            audit("read", str(position.task_id), call.principal)
            return self._follow(call, connection, about)

    def _follow(self, call: Call, connection: StreamConnection, about: About) -> Outcome:
        task_id = str(connection.position.task_id)
        subtasks = AskingSubtasks(self.operations.task_table)
        while True:
            task = connection.read(lambda: self.operations.read(call, task_id))
            if task is None:
                if connection.is_over():
                    return StreamPaused()
                connection.wait()
                continue
            connection.about = about(task)
            _send_progress(task, connection)
            asking = [task, *subtasks.that_ask(task, self.clock.now_ms())]
            if (asked := _as_content(asking, connection)) is not None:
                return asked
            has_asked = _send_questions(asking, connection, about)
            if task.status.terminal:
                return self._end(task, connection)
            over = connection.is_over(_buffered_ms(task, connection))
            if over or (has_asked and not call.channel.streams):
                return self._pause(task, connection)
            connection.wait(task.status_message)

    def _pause(self, task: Task, connection: StreamConnection) -> Outcome:
        if connection.call.resumes:
            if not connection.sent:  # some clients give up a call without progress
                connection.progress(task.status_message)
            return StreamPaused()
        if self.companion_tools and connection.position.method == "tools/call":
            return Complete(task_result(task, self.result_links, self.clock.now_ms()))
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            "The tool takes longer than this client's connection lasts; it goes on as a task, "
            "which needs a client that declares tasks or resumes event streams",
            {"taskId": task.task_id},
            status=HTTPStatus.OK,
        )

    def _end(self, task: Task, connection: StreamConnection) -> Outcome:
        if task.status is Status.COMPLETED:
            linked = self.result_links.with_result(task, self.clock.now_ms())
            return Complete(linked.result or {})
        connection.before_error()
        cancelled = {"code": ErrorCode.INTERNAL_ERROR, "message": "The task was cancelled"}
        raise ProtocolError.from_error(task.error or cancelled)


def _buffered_ms(task: Task, connection: StreamConnection) -> int:
    """How long a buffered connection lasts. One with progress to bring ends earlier, after a tenth
    of the task's age: one client can resume a stream no more than 960 times."""
    if not connection.sent:
        return BUFFERED_MS
    age_ms = connection.began_at - task.created_at
    return min(BUFFERED_MS, max(MIN_BUFFERED_MS, age_ms // 10))


def _send_progress(task: Task, connection: StreamConnection) -> None:
    if task.revision <= connection.position.revision:
        return
    connection.position = replace(connection.position, revision=task.revision)
    if not task.status.terminal:
        connection.progress(task.status_message)


def _send_questions(tasks: Sequence[Task], connection: StreamConnection, about: About) -> bool:
    """Send the questions of the asks that the client has not been sent; whether any was.

    `tasks/result` leaves them to the session's own stream, if there is one.
    """
    if connection.call.listens and connection.position.method == "tasks/result":
        return False
    asks = [(task, ask) for task in tasks for ask in task.asks.values() if ask.outstanding]
    new = [(task, ask) for task, ask in asks if ask.id not in connection.position.asked]
    known = {ask.id for _, ask in asks} & set(connection.position.asked)
    before = connection.about
    for task, ask in new:
        known.add(ask.id)
        questions = {f"{task.task_id}.{key}": q for key, q in ask.outstanding.items()}
        connection.about = about(task)
        connection.ask(questions, replace(connection.position, asked=tuple(sorted(known))))
    connection.about = before
    return bool(new)


def _as_content(tasks: Sequence[Task], connection: StreamConnection) -> Complete | None:
    """The open questions as the content of `tasks/result`, for a client that takes them so ("MRTR
    and Tasks", option two): the params of each request, its type and the id of the answer."""
    session = connection.call.session
    if session is None or not session.asked_in_content:
        return None
    if connection.position.method != "tasks/result" or tasks[0].status.terminal:
        return None
    blocks = [
        _block(f"{task.task_id}.{key}", question, connection)
        for task in tasks
        for ask in task.asks.values()
        for key, question in ask.outstanding.items()
    ]
    return Complete({"content": blocks, "isError": False}) if blocks else None


def _block(request_id: str, question: Question, connection: StreamConnection) -> dict[str, Any]:
    request = connection.write_request(question, request_id)
    kind = str(request["method"]).partition("/")[0]
    return {"type": kind, "id": request_id, **request.get("params", {})}
