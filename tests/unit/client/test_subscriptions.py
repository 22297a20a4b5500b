"""Subscriptions to tasks (tasks.md, "Task Status Notifications")."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from mcp import MCPError
from mcp.client import ClientSession
from mcp_types import Request

from mcp_tasks_client import LISTEN_SECONDS, DetailedTask, TasksExtension
from tests.unit.client.scripted import FakeSession, completed, task, wire

LATER = "2026-11-01T00:00:01.000Z"


class NotifyingSession(FakeSession):
    """A session whose subscriptions each deliver the next of some lists of notifications."""

    def __init__(self, log: list[Any], *subscriptions: list[dict[str, Any]]) -> None:
        super().__init__(log)
        self.extension = TasksExtension()
        self.received: list[DetailedTask] = []
        self._subscriptions = list(subscriptions)

    async def send_request(
        self, request: Request[Any, Any], result_type: Any, timeout_seconds: float | None = None
    ) -> Any:
        """Deliver notifications during a subscription, through the extension's binding."""
        if request.method == "subscriptions/listen":
            (binding,) = self.extension.notifications()
            for params in self._subscriptions.pop(0):
                await binding.handler(binding.params_type.model_validate(params, by_name=False))
        return await super().send_request(request, result_type, timeout_seconds)

    def listen(self, *task_ids: str) -> list[tuple[str, str]]:
        """Listen until all tasks have ended; returns id and status of each change."""
        session = cast(ClientSession, self)
        asyncio.run(self.extension.listen(session, task_ids, self.received.append))
        return [(task.task_id, task.status) for task in self.received]


def of(task_id: str, changed: dict[str, Any]) -> dict[str, Any]:
    """A change of another task."""
    return {**changed, "taskId": task_id}


def test_each_change_is_delivered_once(log: list[Any]) -> None:
    """`pollIntervalMs` may differ between notifications of the same change."""
    working = task("working")
    changes = [working, working, {**working, "pollIntervalMs": 300_000}, completed()]
    session = NotifyingSession(log, [of("a", change) for change in changes])
    assert session.listen("a") == [("a", "working"), ("a", "completed")]


def test_an_older_state_is_not_delivered_after_a_newer_one(log: list[Any]) -> None:
    newer = task("working", statusMessage="half-way", lastUpdatedAt=LATER)
    end = {**completed(), "lastUpdatedAt": LATER}
    session = NotifyingSession(log, [of("a", c) for c in (newer, task("working"), end)])
    session.listen("a")
    assert [task.last_updated_at for task in session.received] == [LATER, LATER]


def test_a_subscription_that_ends_is_opened_again_for_the_tasks_that_have_not_ended(
    log: list[Any],
) -> None:
    first = [of("a", completed()), of("b", task("working"))]
    session = NotifyingSession(log, first, [of("b", completed())])
    assert session.listen("a", "b")[-1] == ("b", "completed")
    ids = [wire(request)["params"]["notifications"]["taskIds"] for request in session.requests]
    assert ids == [["a", "b"], ["b"]]
    assert session.timeouts == [LISTEN_SECONDS, LISTEN_SECONDS]


def test_a_task_that_no_subscription_delivers_is_polled(log: list[Any]) -> None:
    session = NotifyingSession(log, [])
    session.polls = [of("a", completed())]
    assert session.listen("a") == [("a", "completed")]
    assert log == ["subscriptions/listen", "tasks/get"]


def test_a_subscription_that_delivers_nothing_new_is_opened_again_after_a_pause(
    log: list[Any],
) -> None:
    working = of("a", task("working"))
    session = NotifyingSession(log, [working], [working], [of("a", completed())])
    session.listen("a")
    assert log == ["subscriptions/listen"] * 2 + [1.0, "subscriptions/listen"]


def test_other_tasks_changes_are_ignored(log: list[Any]) -> None:
    session = NotifyingSession(log, [of("b", completed()), of("a", completed())])
    assert session.listen("a") == [("a", "completed")]


def test_an_error_of_the_server_is_raised_and_ends_the_delivery(log: list[Any]) -> None:
    """Unknown tasks: -32602."""

    class Refusing(NotifyingSession):
        async def send_request(self, *_: Any, **__: Any) -> Any:
            raise MCPError(-32602, "Unknown task")

    session = Refusing(log)
    with pytest.raises(MCPError, match="Unknown task"):
        session.listen("a")
    assert session.extension._listeners == []
