"""`subscriptions/listen` (basic/patterns/subscriptions.mdx; tasks.md, "Task Status Notifications").

This server's lists change with a deployment only, so of what can be listened to it has the tasks of
the extension; everything else is left out of the acknowledgement.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...audit import audit
from ...notifications.changes import Change
from ...notifications.mailboxes import Mailboxes
from ...notifications.subscription import FAULTS, Subscription
from ...protocol import meta
from ...protocol.errors import ErrorCode, ProtocolError, TooManyRequests, invalid_params
from ...protocol.notifications import notification
from ...tasks.ids import cell_of
from ...tasks.quotas import LOOK_EVERY_MS, CallerQuotas, QuotaExceeded
from ...tasks.task import now_ms
from ...tasks.task_table import BATCH, Busy, TaskTable
from ..call import Call, Complete, Method
from ..response_channel import carried_size
from .result_links import LISTENED, ResultLinks
from .task_wire_format import detailed_task
from .tasks import require_extension

MAX_TASKS: Final = BATCH

FOLLOWED_POLL_MS: Final = 300_000
"""`pollIntervalMs` as a follower is told it: polling is only a precaution for it."""

SLACK_MS: Final = 5_000
"""How much longer than its listen a place is taken, if it is not given back."""

logger = Logger()


def listen(
    task_table: TaskTable,
    mailboxes: Mailboxes,
    quotas: CallerQuotas,
    results: ResultLinks,
    most: int,
    cell: str,
) -> Method:
    """`subscriptions/listen`: acknowledged, then the tasks' states and changes, then the result."""

    def answer(call: Call) -> Complete:
        filters = call.params.get("notifications")
        if not isinstance(filters, dict):
            raise invalid_params("params.notifications must be an object of what to listen to")
        if not call.channel.hears:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                "A listen is answered with an event stream; let Accept name text/event-stream",
                status=HTTPStatus.NOT_ACCEPTABLE,
            )
        wanted = _task_ids(call, filters["taskIds"], cell) if "taskIds" in filters else None
        # A listen to nothing ends at once.
        with _place(call, quotas, most if wanted else 0):
            return follow(call, wanted)

    def follow(call: Call, wanted: list[str] | None) -> Complete:
        accepted: dict[str, Any] = {}
        following = Subscription(
            task_table,
            mailboxes,
            detailed_task,
            call.principal,
            _owner(call),
            with_result=lambda task, now: results.of(task, now, LISTENED),
        )
        if wanted is not None:
            accepted["taskIds"] = following.begin(wanted, call.channel.until)
            for task_id in dict.fromkeys(wanted):
                refused = {} if task_id in accepted["taskIds"] else {"refused": True}
                audit("read", task_id, call.principal, **refused)
        tag = {meta.SUBSCRIPTION_ID: call.request_id}
        acknowledged = {"notifications": accepted, meta.RESERVED: tag}
        call.channel.send(notification("notifications/subscriptions/acknowledged", acknowledged))
        told = _tell(call, following, tag)
        logger.info("listened", tasks=len(accepted.get("taskIds", ())), told=told)
        # "Graceful Closure"
        return Complete({meta.RESERVED: tag})

    return answer


@contextmanager
def _place(call: Call, quotas: CallerQuotas, most: int) -> Iterator[None]:
    """One of the listens that a caller may have open, until this one ends or its time is up."""
    listen_id, now = secrets.token_hex(8), now_ms()
    try:
        quotas.acquire_listen(call.principal, listen_id, call.channel.until + SLACK_MS, most, now)
    except QuotaExceeded:
        message = f"You have {most} listens open; end one, or listen to more tasks with one"
        raise TooManyRequests(message, LOOK_EVERY_MS) from None
    except Busy:
        raise TooManyRequests("Too many listens of yours begin at once", 1000) from None
    try:
        yield
    finally:
        if most:
            try:
                quotas.release_listen(call.principal, listen_id)
            except FAULTS as error:
                # It is free again when the listen's time would have been up.
                logger.warning("A place is not given back", error=type(error).__name__)


def _tell(call: Call, following: Subscription, tag: dict[str, Any]) -> int:
    """Send everything that there is to tell; returns how much it was."""
    room, told = call.channel.room, 0
    for change in following.changes(call.channel.live):
        if change is None:
            call.channel.keep_alive()
            continue
        message = notification("notifications/tasks", _params(change, tag))
        call.channel.send(message)
        told += 1
        room -= carried_size(json.dumps(message))
        if room <= 0:
            break
    try:
        following.end()
    except FAULTS as error:
        # The client's next listen begins anew, with the tasks' states.
        logger.warning("A mailbox is not kept", error=type(error).__name__)
    return told


def _params(change: Change, tag: dict[str, Any]) -> dict[str, Any]:
    """The task's state, for one who need not poll."""
    params = {**change.params, meta.RESERVED: tag}
    if not change.terminal:
        params["pollIntervalMs"] = max(params["pollIntervalMs"], FOLLOWED_POLL_MS)
    return params


def _task_ids(call: Call, wanted: Any, cell: str) -> list[str]:
    """Those that can be of this cell. Raises ProtocolError for what is no list of ids."""
    require_extension(call)
    if not isinstance(wanted, list) or not all(isinstance(task_id, str) for task_id in wanted):
        raise invalid_params("params.notifications.taskIds must be an array of strings")
    if len(wanted) > MAX_TASKS:
        raise invalid_params(f"params.notifications.taskIds has more than {MAX_TASKS} ids")
    return [task_id for task_id in wanted if cell_of(task_id) == cell]


def _owner(call: Call) -> str:
    """A hash of who is listening, as far as a request tells: its next listen has the same.

    Two clients that look the same may take over each other's mailbox when they follow the same
    tasks. They miss none of a task's states by it, at most what lay between two of them.
    """
    headers = call.mirrors
    agent = headers.get("user-agent") if headers is not None else None
    client = call.params[meta.RESERVED].get(meta.CLIENT_INFO)
    text = json.dumps([call.principal, client, agent], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
