"""A session's own stream: what belongs to no request of the client's (2025-11-25
basic/transports.mdx, "Listening for Messages from the Server").

It brings the changes and questions of the tasks that the client has asked for (tasks.mdx, "Task
Status Notification"), the changes of the resources that it has subscribed to (server/resources.mdx,
"Subscriptions"), and changed lists.

All clients open this stream, and most have nothing to hear. So a session without tasks and
subscriptions costs one read: its stream ends at once, and the client comes back after a while. Any
other one is a subscription with a mailbox (`notifications/mailboxes.py`), which goes on receiving
between two connections.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from ...limits import Limits
from ...notifications.announced_lists import changed_lists
from ...notifications.changes import Change, session_topic
from ...notifications.clock import SYSTEM_CLOCK, Clock
from ...notifications.delivery import Delivery, deliver_all
from ...notifications.live_mailboxes import HASH_LENGTH
from ...notifications.mailbox import AnyChange, Mailbox, Subscriber
from ...notifications.mailbox_quota import SubscriptionLimits
from ...notifications.mailboxes import Mailboxes
from ...notifications.server_changes import LISTS, ServerChange, resource_topic
from ...notifications.subscription import DYNAMODB_ERRORS
from ...protocol.errors import ProtocolError
from ...protocol.notifications import notification, progress
from ...sessions.session_table import SessionState
from ...tasks.caller_key import digest
from ...tasks.rate_limit import RateLimit
from ..call import Call, Outcome, StreamPaused
from ..sessions import Session, Sessions
from ..stream_position import EventIds, StreamPosition
from .stream_connection import BUFFERED_MS, StreamConnection, WriteRequest
from .task_operations import TaskOperations
from .task_wire_2025_11_25 import PROGRESS_TOKEN, related_task, task_fields
from .too_many_requests import subscription_quota_errors

METHOD: Final = "GET"
"""The method of a StreamPosition in this stream, which is of no request: its `request_id` is
empty."""

IDLE_RETRY_MS: Final = 5_000
"""How long a client waits before it asks again whether there is anything to hear."""

LISTENED_AGAIN_MS: Final = 5 * 60 * 1000
"""How often it is written that a client listens."""

LISTENS_MS: Final = 2 * LISTENED_AGAIN_MS
"""How long a client counts as listening after that."""

ENDED: Final = "session ended"
"""The method of what a session's mailbox gets when the session has ended."""

END_MS: Final = 2_000
"""How long a session that has ended may take to tell its stream."""

MAX_ASKED: Final = 50


def listens(state: SessionState, now: int) -> bool:
    """Whether the session's client is asked on this stream, and not on that of a request."""
    return now < state.listened_at + LISTENS_MS


@dataclass(frozen=True, slots=True)
class SessionStream:
    """Serves GET without a request."""

    sessions: Sessions
    mailboxes: Mailboxes
    operations: TaskOperations
    event_ids: EventIds
    limits: Limits
    list_versions: Callable[[], Mapping[str, str]]
    """Makes a hash of each list of this deployment."""
    clock: Clock = SYSTEM_CLOCK

    def follow(
        self, call: Call, session: Session, position: StreamPosition, write_request: WriteRequest
    ) -> Outcome:
        """Send what there is until the time is up, or until the session has ended.

        Raises SessionNotFound, and TooManyRequests.
        """
        state, now = self.sessions.state(session), self.clock.now_ms()
        connection = StreamConnection(call, position, self.event_ids, write_request, self.clock)
        versions = self.list_versions()
        changed = changed_lists(state.list_versions, versions)
        if changed or not state.list_versions or now >= state.listened_at + LISTENED_AGAIN_MS:
            self.sessions.mark_listening(session, now, versions)
        tasks = [task_id for task_id, until in state.tasks.items() if until > now]
        idle = call.resumes and not state.uris and not tasks
        lists = [notification(LISTS[name], {}) for name in changed]
        if idle:
            connection.begin(IDLE_RETRY_MS)
            for message in lists:
                connection.write(message)
            return StreamPaused()
        topics, until = _topics(session, state), connection.ends_at()
        try:
            mailbox = self._mailbox(call.principal, session, topics, until)
        except ProtocolError:
            # Until the client is served here, it is asked on the streams of its requests.
            self.sessions.mark_listening(session, 0, versions)
            raise
        with self._given_up_on_failure(mailbox):
            connection.begin()
            for message in lists:
                connection.write(message)
            # Only now: what changes from here on is in the mailbox.
            for task_id in tasks:
                self._send_task(connection, session, task_id, has_changed=False)
            self._listen(connection, session, mailbox, topics)
        return StreamPaused()

    @contextmanager
    def _given_up_on_failure(self, mailbox: Mailbox) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(*DYNAMODB_ERRORS):  # it stops receiving at the deadline
                self.mailboxes.give_up(mailbox, self.clock.now_ms())
            raise

    def add_resource(self, principal: str, session: Session, uri: str) -> None:
        """Let the session's mailbox receive the changes of a resource, from now on.

        There may be no connection at this moment, and no mailbox. Raises TooManyRequests.
        """
        topic, now = resource_topic(uri), self.clock.now_ms()
        if not self.mailboxes.add_topic(session_topic(session.key), topic, now):
            topics = [session_topic(session.key), topic]
            mailbox = self._mailbox(principal, session, topics, now + BUFFERED_MS)
            mailbox.delivered = dict.fromkeys(topics, 0)
            self.mailboxes.release(mailbox, now)

    def remove_resource(self, session: Session, uri: str) -> None:
        """Let the session's mailbox receive the changes of a resource no longer."""
        now = self.clock.now_ms()
        self.mailboxes.remove_topic(session_topic(session.key), resource_topic(uri), now)

    def end(self, session: Session) -> None:
        """End the stream, if it is open: its session has ended."""
        change, now = ServerChange(ENDED, secrets.token_hex(4)), self.clock.now_ms()
        delivery = Delivery(change, change.detail())
        delivery.receivers = self.mailboxes.receivers([session_topic(session.key)], now)
        deliver_all(self.mailboxes, [delivery], now + END_MS, self.clock)

    def _listen(
        self, connection: StreamConnection, session: Session, mailbox: Mailbox, topics: list[str]
    ) -> None:
        seen: set[str] = set()
        while True:
            new = {e.key: e.change for e in self.mailboxes.entries(mailbox) if e.key not in seen}
            seen |= new.keys()
            if any(isinstance(c, ServerChange) and c.method == ENDED for c in new.values()):
                self.mailboxes.close(mailbox)
                return
            for change in new.values():
                self._send(connection, session, change)
            self.mailboxes.remove(mailbox, new)
            news = connection.sent and not connection.call.channel.streams
            if news or mailbox.replaced or connection.is_over():
                break
            connection.wait()
        if not mailbox.replaced:
            mailbox.delivered = dict.fromkeys(topics, 0)
            self.mailboxes.release(mailbox, self.clock.now_ms())

    def _mailbox(self, principal: str, session: Session, topics: list[str], until: int) -> Mailbox:
        rate = self.limits.new_subscriptions_per_minute
        limits = SubscriptionLimits(
            self.limits.max_open_subscriptions, RateLimit(rate) if rate else None
        )
        subscriber = Subscriber(principal, digest("session", session.key)[:HASH_LENGTH])
        with subscription_quota_errors(self.limits):
            mailbox = self.mailboxes.open(subscriber, topics, until, limits, self.clock.now_ms())
        self.mailboxes.follow(mailbox, topics, until)
        return mailbox

    def _send(self, connection: StreamConnection, session: Session, change: AnyChange) -> None:
        if isinstance(change, Change):
            self._send_task(connection, session, change.task_id, has_changed=True)
        else:
            connection.write(notification(change.method, dict(change.params)))

    def _send_task(
        self, connection: StreamConnection, session: Session, task_id: str, *, has_changed: bool
    ) -> None:
        """A task's status as it is now, if that is news, and its questions that were not asked
        yet."""
        try:
            task = self.operations.read(connection.call, task_id)
        except ProtocolError:  # it has expired, or the token lacks a scope
            return
        connection.about, known = related_task(task), connection.position
        new = [a for a in task.asks.values() if a.outstanding and a.id not in known.asked]
        if has_changed or new or task.status.terminal:
            fields: dict[str, Any] = task_fields(task, self.clock.now_ms())
            connection.write(notification("notifications/tasks/status", fields))
            token = task.client_context.get(PROGRESS_TOKEN)
            if token is not None and not task.status.terminal:
                connection.write(progress(token, task.revision, None, task.status_message))
        if task.status.terminal:
            self.sessions.remove_task(session, task_id)
        asked = (*known.asked, *(ask.id for ask in new))[-MAX_ASKED:]
        questions = {
            f"{task_id}.{key}": question for ask in new for key, question in ask.outstanding.items()
        }
        connection.ask(questions, replace(known, asked=asked))
        connection.about = {}


def _topics(session: Session, state: SessionState) -> list[str]:
    """What the session's mailbox follows."""
    return [session_topic(session.key), *(resource_topic(uri) for uri in state.uris)]
