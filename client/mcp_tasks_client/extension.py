"""The extension that a client of the SDK is constructed with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcp.client import (
    ClaimContext,
    ClientExtension,
    ClientSession,
    NotificationBinding,
    ResultClaim,
)
from mcp_types import CallToolResult

from .models import EXTENSION, CreateTaskResult, TaskNotificationParams
from .polling import Answer, OnUpdate, Poller
from .subscriptions import OnChange, TaskListener


class TasksExtension(ClientExtension):
    """Declares the extension to the server, and polls tool calls that became tasks.

    Without `answer`, a task's questions go to the client's own callbacks: an elicitation goes to
    its `elicitation_callback`. A client needs that callback in any case, because the SDK declares
    by it that the client can be asked.

    `on_update` gets a new task before the first poll: the place to save the task's id.
    """

    identifier = EXTENSION

    def __init__(self, on_update: OnUpdate | None = None, answer: Answer | None = None) -> None:
        self._on_update = on_update
        self._answer = answer
        self._listeners: list[TaskListener] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Let the SDK give results with `resultType: "task"` to this extension."""
        return [ResultClaim(result_type="task", model=CreateTaskResult, resolve=self._resolve)]

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """Let the SDK give `notifications/tasks` to this extension."""
        return [
            NotificationBinding(
                method="notifications/tasks",
                params_type=TaskNotificationParams,
                handler=self._notify_listeners,
            )
        ]

    async def listen(
        self, session: ClientSession, task_ids: Iterable[str], on_change: OnChange
    ) -> None:
        """Subscribe to tasks: call `on_change` with each one's state and with every change.

        Returns when all tasks have ended. Changes come in their order. Nothing is answered here:
        `on_change` gets an `InputRequiredTask`, and `update_task` sends the answers. A subscription
        that ends is opened again. Tasks of which the server sends nothing are polled.

        Raises MCPError with the code -32602 for a task that the server does not know.
        """
        listener = TaskListener(task_ids, on_change)
        self._listeners.append(listener)
        try:
            await listener.listen(session)
        finally:
            self._listeners.remove(listener)

    async def _notify_listeners(self, params: TaskNotificationParams) -> None:
        for listener in list(self._listeners):
            listener.receive(params.root)

    async def _resolve(self, created: CreateTaskResult, context: ClaimContext) -> CallToolResult:
        poller = Poller(
            context.session, self._on_update, self._answer, context.read_timeout_seconds
        )
        return await poller.poll_created(created)
