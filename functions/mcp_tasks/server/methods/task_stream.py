"""The event stream of a call whose client waits for the result of a task (2025-11-25
basic/transports.mdx, "Sending Messages to the Server").

The call has become a task that its client does not see. Its stream brings the task's progress and
questions, and the result as the response to the call. A stream ends before its function does; its
client then resumes it after the last event (SEP-1699), on any instance. The row is read twice a
second, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from ...audit import audit
from ...notifications.clock import SYSTEM_CLOCK, Clock
from ...protocol import notifications
from ...protocol.errors import ErrorCode, ProtocolError
from ...tasks.questions import Question
from ...tasks.state import Status
from ...tasks.task import Task
from ..call import Call, Complete, Outcome, StreamPaused
from ..response_channel import StreamEvent
from ..stream_position import EventIds, StreamPosition
from .call_quota import CallQuota
from .result_links import ResultLinks
from .task_operations import TaskOperations

READ_INTERVAL_SECONDS: Final = 0.5
"""Between two reads of the row."""

BUFFERED_MS: Final = 24_000
"""How long a buffered stream lasts: API Gateway waits 29 seconds for the whole response."""

MIN_BUFFERED_MS: Final = 2_000
"""How long one lasts at least that has progress to bring."""

STREAM_END_MS: Final = 10_000
"""How long before its function's deadline a streamed one ends."""

RETRY_MS: Final = 1_000
"""How long a client waits before it resumes a stream."""

QUIET_MS: Final = 15_000
"""The longest time without a sign of life."""

MAX_ERROR_RESPONSES: Final = 2
"""How often an error is sent as a response. One client resumes a stream that has ended so."""

WriteRequest = Callable[[Question, str], Mapping[str, Any]]
"""From a question and the id of its request to the request's method and params."""


@dataclass(frozen=True, slots=True)
class TaskStream:
    """Follows tasks for calls."""

    operations: TaskOperations
    result_links: ResultLinks
    event_ids: EventIds
    call_quota: CallQuota
    clock: Clock = SYSTEM_CLOCK

    def follow(self, call: Call, position: StreamPosition, write_request: WriteRequest) -> Outcome:
        """Send what comes after a position, until the task has ended or the time is up.

        Returns the tool's result as Complete, or StreamPaused. Raises ProtocolError: the task's own
        error, or -32602 for a task that does not exist for the caller.
        """
        if position.ended >= MAX_ERROR_RESPONSES:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                "The event stream has ended with its response",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
            )
        with self.call_quota.hold(call):
            return _Following(self, call, position, write_request).run()


@dataclass(slots=True)
class _Following:
    """One connection of a stream."""

    stream: TaskStream
    call: Call
    position: StreamPosition
    write_request: WriteRequest
    quiet_since: int = 0
    sent: int = 0
    """How many messages this connection has brought."""

    def run(self) -> Outcome:
        clock = self.stream.clock
        began_at = self.quiet_since = clock.now_ms()
        if self.call.resumes:
            self._write(None, retry_ms=RETRY_MS)
        audit("read", self.position.task_id, self.call.principal)
        while True:
            task = self.stream.operations.read(self.call, self.position.task_id)
            self._send_progress(task)
            asked = self._send_questions(task)
            if task.status.terminal:
                return self._end(task)
            now = clock.now_ms()
            if now >= self._ends_at(task, began_at) or (asked and not self.call.channel.streams):
                return self._pause(task)
            if self.call.channel.streams:
                self._keep_alive(task, now)
            clock.sleep(READ_INTERVAL_SECONDS)

    def _ends_at(self, task: Task, began_at: int) -> int:
        """When this connection ends. A buffered one with progress to bring ends earlier, after a
        tenth of the task's age: one client can resume a stream no more than 960 times."""
        channel = self.call.channel
        if channel.deadline_ms is not None:
            return channel.deadline_ms - STREAM_END_MS
        if not self.sent:
            return began_at + BUFFERED_MS
        age = began_at - task.created_at
        return began_at + min(BUFFERED_MS, max(MIN_BUFFERED_MS, age // 10))

    def _send_progress(self, task: Task) -> None:
        if task.revision <= self.position.revision:
            return
        self.position = replace(self.position, revision=task.revision)
        if not task.status.terminal:
            self._progress(task)

    def _progress(self, task: Task) -> None:
        """A progress notification, if the client asked for them (progress.mdx)."""
        token = self.position.progress_token
        if token is None:
            return
        self.position = replace(self.position, progress=self.position.progress + 1)
        count, message = self.position.progress, task.status_message
        self._write(notifications.progress(token, count, None, message))

    def _send_questions(self, task: Task) -> bool:
        """Send the questions of the asks that the client has not been sent; whether any was."""
        asks = [ask for ask in task.asks.values() if ask.outstanding]
        new = [ask for ask in asks if ask.id not in self.position.asked]
        requests = [
            {"jsonrpc": "2.0", "id": request_id, **self.write_request(question, request_id)}
            for ask in new
            for key, question in ask.outstanding.items()
            for request_id in (f"{task.task_id}.{key}",)
        ]
        for n, request in enumerate(requests, 1):
            if n == len(requests):  # a client that has lost one of them is sent all again
                self.position = replace(self.position, asked=tuple(ask.id for ask in asks))
            self._write(request)
        return bool(new)

    def _keep_alive(self, task: Task, now: int) -> None:
        """Show that the call goes on: proxies close an idle stream."""
        if now < self.quiet_since + QUIET_MS:
            return
        self.quiet_since = now
        if self.position.progress_token is not None:
            self._progress(task)
        else:
            self.call.channel.keep_alive()

    def _pause(self, task: Task) -> Outcome:
        if self.call.resumes:
            if not self.sent:  # some clients give up a call without progress
                self._progress(task)
            return StreamPaused()
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            "The tool takes longer than this client's connection lasts; it goes on as a task, "
            "which needs a client that declares tasks or resumes event streams",
            {"taskId": self.position.task_id},
            status=HTTPStatus.OK,
        )

    def _end(self, task: Task) -> Outcome:
        if task.status is Status.COMPLETED:
            now = self.stream.clock.now_ms()
            return Complete(self.stream.result_links.with_result(task, now).result or {})
        self.position = replace(self.position, ended=self.position.ended + 1)
        if self.call.resumes:
            self._write(None)
        error = task.error or {
            "code": ErrorCode.INTERNAL_ERROR,
            "message": "The task was cancelled",
        }
        raise ProtocolError(
            error["code"], error["message"], error.get("data"), status=HTTPStatus.OK
        )

    def _write(self, message: Mapping[str, Any] | None, retry_ms: int | None = None) -> None:
        now = self.stream.clock.now_ms()
        event_id = self.stream.event_ids.of(self.position, self.call, now)
        self.call.channel.write(StreamEvent(message, event_id, retry_ms))
        if message is not None:
            self.sent += 1
            self.quiet_since = now
