"""Receive the changes of tasks by a subscription ("Task Status Notifications")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import anyio
from mcp.client import ClientSession
from mcp_types import EmptyResult

from .models import CancelledTask, CompletedTask, DetailedTask, FailedTask, Task
from .polling import DEFAULT_POLL_INTERVAL_MS
from .requests import SubscriptionsListenParams, SubscriptionsListenRequest, get_task

LISTEN_SECONDS: Final = 16 * 60.0
"""How long one `subscriptions/listen` may take: servers on AWS end it within 15 minutes."""

OnChange = Callable[[DetailedTask], None]
"""Called with a task's state, and then with each of its changes."""


class TaskListener:
    """Passes the changes of some tasks to `on_change`, each once and in their order.

    `open_task_ids` holds the tasks that have not ended.
    """

    def __init__(self, task_ids: Iterable[str], on_change: OnChange) -> None:
        self.open_task_ids = set(task_ids)
        self._on_change = on_change
        self._latest: dict[str, DetailedTask] = {}

    def receive(self, task: DetailedTask) -> None:
        """Pass a task's state on, unless it is known already or older than what is known."""
        latest = self._latest.get(task.task_id)
        if task.task_id not in self.open_task_ids:
            return
        # The SDK may deliver two notifications in the wrong order.
        if latest is not None and (
            task.last_updated_at < latest.last_updated_at or _is_same_change(task, latest)
        ):
            return
        self._latest[task.task_id] = task
        self._on_change(task)
        if isinstance(task, CompletedTask | FailedTask | CancelledTask):
            self.open_task_ids.discard(task.task_id)

    async def listen(self, session: ClientSession) -> None:
        """Subscribe, again after each subscription's end, until all tasks have ended.

        A task that no subscription has delivered is polled, so that this also ends when the server
        sends no notifications.
        """
        while self.open_task_ids:
            before = dict(self._latest)
            params = SubscriptionsListenParams(
                notifications={"taskIds": sorted(self.open_task_ids)}
            )
            request = SubscriptionsListenRequest(params=params)
            await session.send_request(request, EmptyResult, LISTEN_SECONDS)
            for task_id in self.open_task_ids - self._latest.keys():
                self.receive(await get_task(session, task_id))
            if self.open_task_ids and self._latest == before:
                await anyio.sleep(DEFAULT_POLL_INTERVAL_MS / 1000)


def _is_same_change(task: Task, other: Task) -> bool:
    """Whether two notifications are of the same change.

    `pollIntervalMs` does not count: a server may suggest another one to subscribers than to
    clients that poll.
    """
    envelope = {"meta", "result_type", "poll_interval_ms"}
    return task.model_dump(exclude=envelope) == other.model_dump(exclude=envelope)
