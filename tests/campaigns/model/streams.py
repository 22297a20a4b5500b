"""A handshake client that waits for a task on its call's event stream, on many connections.

Of each connection it gets a part: a function may die, and the end may be lost on the way. What it
has got decides where the next connection begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_tasks.notifications.clock import Clock
from mcp_tasks.protocol.errors import ProtocolError
from mcp_tasks.server.call import Call, Complete, Outcome
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.methods.call_quota import CallQuota
from mcp_tasks.server.methods.input_requests import input_request
from mcp_tasks.server.methods.result_links import ResultLinks
from mcp_tasks.server.methods.stream_connection import STREAM_END_MS
from mcp_tasks.server.methods.task_operations import TaskOperations
from mcp_tasks.server.methods.task_stream import TaskStream
from mcp_tasks.server.request_notifications import RequestNotifications
from mcp_tasks.server.response_channel import ResponseChannel, StreamEvent
from mcp_tasks.server.sealed import Seal
from mcp_tasks.server.sessions import Session
from mcp_tasks.server.stream_position import EventIds, StreamPosition, UnknownEventId
from mcp_tasks.tasks.questions import Kind
from tests.campaigns.model.history import SECRET

CONNECTION_MS: Final = 2_000
"""How long a connection lasts."""

OTHER: Final = "eve"
VERSION: Final = "2025-11-25"


def session(key: str) -> Session:
    """A session of a client that can be asked."""
    return Session(key, VERSION, "model", frozenset({Kind.FORM}), 2**62)


@dataclass
class Waiter:
    """A client that waits for the response to its call."""

    who: str
    task_id: str
    session: Session
    last_event_id: str
    progress: int = 0
    """The last progress notification's number."""
    asked: set[str] = field(default_factory=set)
    """The ids of the questions that it has got."""
    response: Outcome | ProtocolError | None = None
    errors_lost: int = 0
    """How often an error was sent as the response and did not arrive."""
    connected: bool = False
    """Whether it has a connection. It has one at a time."""
    heard_at: int = 0
    """When it got anything last."""


@dataclass
class Connection:
    """What one connection has sent, and what has become of its function."""

    events: list[StreamEvent] = field(default_factory=list)
    outcome: Outcome | ProtocolError | None = None


class Streams:
    """The event streams of calls that have become tasks."""

    def __init__(
        self, operations: TaskOperations, links: ResultLinks, quota: CallQuota, clock: Clock
    ) -> None:
        self._event_ids = EventIds(Seal(lambda: SECRET, "eventId", "c1"))
        self._stream = TaskStream(operations, links, self._event_ids, quota, clock=clock)
        self._clock = clock

    def wait(self, who: str, task_id: str, session_key: str) -> Waiter:
        """A client whose call has become this task; it knows no more than that."""
        waiter = Waiter(who, task_id, session(session_key), "")
        start = StreamPosition(VERSION, "tools/call", 1, task_id, progress_token="p")
        waiter.last_event_id = self._event_ids.of(start, _caller(waiter), self._clock.now_ms())
        return waiter

    def connect(self, waiter: Waiter, connection: Connection, *, streamed: bool) -> Any:
        """Resume the stream; what is sent is in `connection`, whether the client gets it or not."""
        now = self._clock.now_ms()
        position = self._event_ids.open(waiter.last_event_id, _caller(waiter), now)
        deadline = now + CONNECTION_MS + STREAM_END_MS if streamed else None
        channel = ResponseChannel(connection.events.append, deadline)
        call = _call(waiter, channel)
        try:
            connection.outcome = self._stream.follow(call, position, _question, lambda _: {})
        except ProtocolError as error:
            connection.outcome = error
        return connection.outcome

    def is_refused(self, waiter: Waiter, now: int) -> bool:
        """Whether nobody else can resume the stream, and the client itself in no other session."""
        for who, key in ((OTHER, waiter.session.key), (waiter.who, "another")):
            try:
                self._event_ids.open(waiter.last_event_id, Caller(who, session=session(key)), now)
            except UnknownEventId:
                continue
            return False
        return True


def received(
    waiter: Waiter, connection: Connection, events: int, require: Callable[[bool, str], None]
) -> None:
    """The client gets so many events of a connection, and its response after the last."""
    for event in connection.events[:events]:
        waiter.last_event_id = event.id or waiter.last_event_id
        message = event.message or {}
        if message.get("method") == "notifications/progress":
            number = message["params"]["progress"]
            require(number > waiter.progress, f"progress {number} after {waiter.progress}")
            waiter.progress = number
        elif "id" in message:
            waiter.asked.add(message["id"])
    ended = isinstance(connection.outcome, Complete | ProtocolError)
    if ended and events > len(connection.events):
        waiter.response = connection.outcome
    elif isinstance(connection.outcome, ProtocolError) and events == len(connection.events):
        waiter.errors_lost += 1


def _caller(waiter: Waiter) -> Caller:
    return Caller(waiter.who, session=waiter.session)


def _call(waiter: Waiter, channel: ResponseChannel) -> Call:
    return Call(
        "tools/call",
        {},
        waiter.who,
        RequestNotifications(channel.send),
        channel,
        1,
        session=waiter.session,
        waits=True,
        resumes=True,
    )


def _question(question: Any, request_id: str) -> dict[str, Any]:
    return input_request(question)
