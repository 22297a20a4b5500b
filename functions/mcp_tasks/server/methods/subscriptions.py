"""`subscriptions/listen` (basic/patterns/subscriptions.mdx; tasks.md, "Task Status Notifications").

A subscription follows tasks, resources and lists.

A streamed subscription sends each change when it happens, until its function's time is up. A
buffered one ends at the first change, or after 25 seconds, and the client listens again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...audit import audit
from ...limits import Limits
from ...notifications.changes import Change
from ...notifications.live_mailboxes import HASH_LENGTH
from ...notifications.mailbox import Mailbox, Subscriber
from ...notifications.mailbox_quota import SubscriptionLimits
from ...notifications.mailboxes import Mailboxes
from ...notifications.server_changes import ServerChange
from ...notifications.subscription import DYNAMODB_ERRORS, Subscription
from ...protocol import meta
from ...protocol.errors import ErrorCode, ProtocolError
from ...protocol.notifications import notification
from ...registry.catalogue import Catalogue
from ...tasks.rate_limit import RateLimit
from ...tasks.task import now_ms
from ...tasks.task_table import TaskTable
from ..call import Call, Complete
from ..response_channel import ResponseChannel, response_size
from ..task_access import TaskAccess
from .listen_filter import ListenFilter, listen_filter
from .result_links import MAX_NOTIFIED_RESULT_BYTES, ResultLinks
from .task_wire_format import detailed_task
from .too_many_requests import subscription_quota_errors

BUFFERED_MS: Final = 25_000
"""How long a buffered subscription waits for a change: API Gateway waits 29 seconds."""

BUFFERED_MAX_BYTES: Final = 2_000_000
"""When a buffered subscription ends: a Lambda function returns 6 MB at most."""

STREAM_END_MS: Final = 10_000
"""How long before its function's deadline a streamed subscription ends."""

STREAMED_MAX_BYTES: Final = 100_000_000
"""When a streamed subscription ends: Lambda streams 200 MB at most."""

SUBSCRIBED_POLL_MS: Final = 300_000
"""`pollIntervalMs` for a subscriber, which polls only as a precaution."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Serves `subscriptions/listen`."""

    catalogue: Catalogue
    access: TaskAccess
    task_table: TaskTable
    mailboxes: Mailboxes
    result_links: ResultLinks
    limits: Limits
    cell: str

    def listen(self, call: Call) -> Complete:
        """Acknowledge, send the tasks' states and changes, and end with the result.

        Raises ProtocolError: -32602 for what is no filter, HTTP 406 for a client that takes no
        event stream, HTTP 403 for a token that lacks a scope of each task, HTTP 429 for a caller
        with too many subscriptions.
        """
        wanted = listen_filter(call, self.catalogue, self.cell)
        if not call.channel.takes_notifications:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                "subscriptions/listen needs a client whose Accept header has text/event-stream",
                status=HTTPStatus.NOT_ACCEPTABLE,
            )
        deadline_ms, followed = (
            _deadline_ms(call.channel),
            [*(wanted.task_ids or ()), *wanted.topics],
        )
        # A subscription to nothing ends at once, and needs no mailbox.
        opened = self._mailbox(call, followed, deadline_ms) if followed else nullcontext()
        with opened as mailbox:
            return self._follow(call, wanted, mailbox, deadline_ms)

    @contextmanager
    def _mailbox(self, call: Call, followed: list[str], deadline_ms: int) -> Iterator[Mailbox]:
        """A live mailbox, one of the caller's quota. A subscription that fails gives it up."""
        rate = self.limits.new_subscriptions_per_minute
        limits = SubscriptionLimits(
            self.limits.max_open_subscriptions, RateLimit(rate) if rate else None
        )
        subscriber, now = Subscriber(call.principal, _client(call)), now_ms()
        with subscription_quota_errors(self.limits):
            mailbox = self.mailboxes.open(subscriber, followed, deadline_ms, limits, now)
        try:
            yield mailbox
        except BaseException:
            try:
                self.mailboxes.give_up(mailbox, now_ms())
            except DYNAMODB_ERRORS as error:
                # It stops receiving at the deadline.
                logger.warning("Mailbox was not given up", error=type(error).__name__)
            raise

    def _follow(
        self, call: Call, wanted: ListenFilter, mailbox: Mailbox | None, deadline_ms: int
    ) -> Complete:
        accepted = wanted.accepted()
        subscription = Subscription(
            self.task_table,
            self.mailboxes,
            detailed_task,
            call.principal,
            with_result=lambda task, now: self.result_links.with_result(
                task, now, MAX_NOTIFIED_RESULT_BYTES
            ),
        )
        task_ids: list[str] = []
        if mailbox is not None:
            task_ids = subscription.begin(
                mailbox,
                wanted.task_ids or (),
                deadline_ms,
                lambda tasks: self.access.permitted(call, tasks),
                wanted.topics,
            )
        if wanted.task_ids is not None:
            accepted["taskIds"] = task_ids
        for task_id in dict.fromkeys(wanted.task_ids or ()):
            refused = {} if task_id in task_ids else {"refused": True}
            audit("read", task_id, call.principal, **refused)
        tag = {meta.SUBSCRIPTION_ID: call.request_id}
        acknowledged = {"notifications": accepted, meta.META_MEMBER: tag}
        call.channel.send(notification("notifications/subscriptions/acknowledged", acknowledged))
        sent = _send_changes(call, subscription, tag)
        logger.info("subscription ended", tasks=len(accepted.get("taskIds", ())), changes_sent=sent)
        # "Graceful Closure"
        return Complete({meta.META_MEMBER: tag})


def _deadline_ms(channel: ResponseChannel) -> int:
    """When a subscription has to end, in milliseconds since the epoch."""
    if channel.deadline_ms is None:
        return now_ms() + BUFFERED_MS
    return channel.deadline_ms - STREAM_END_MS


def _send_changes(call: Call, subscription: Subscription, tag: dict[str, Any]) -> int:
    """Send the changes until the subscription ends; returns how many."""
    budget = STREAMED_MAX_BYTES if call.channel.streams else BUFFERED_MAX_BYTES
    sent = 0
    for change in subscription.changes(call.channel.streams):
        if change is None:
            call.channel.keep_alive()
            continue
        if isinstance(change, ServerChange):
            message = notification(change.method, {**change.params, meta.META_MEMBER: tag})
        else:
            message = notification("notifications/tasks", _params(change, tag))
        call.channel.send(message)
        sent += 1
        budget -= response_size(json.dumps(message))
        if budget <= 0:
            break
    try:
        subscription.end()
    except DYNAMODB_ERRORS as error:
        # The client's next subscription begins with the tasks' current states.
        logger.warning("Mailbox was not kept", error=type(error).__name__)
    return sent


def _params(change: Change, tag: dict[str, Any]) -> dict[str, Any]:
    """The params of `notifications/tasks`, with the poll interval of a subscriber."""
    params = {**change.params, meta.META_MEMBER: tag}
    if not change.terminal:
        params["pollIntervalMs"] = max(params["pollIntervalMs"], SUBSCRIBED_POLL_MS)
    return params


def _client(call: Call) -> str:
    """A hash of the caller and of what its requests say about the client.

    The client's next subscription has the same hash, and continues with its mailbox. Two clients
    of one caller that look the same may take over each other's mailbox when they follow the same
    tasks. They still get every task's current state, and may miss a change between two of them.
    """
    headers = call.headers
    agent = headers.get("user-agent") if headers is not None else None
    client = call.params[meta.META_MEMBER].get(meta.CLIENT_INFO)
    text = json.dumps([call.principal, client, agent], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]
