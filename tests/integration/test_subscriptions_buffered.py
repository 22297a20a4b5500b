"""Buffered subscriptions: each waits for a while, and the client subscribes again."""

from __future__ import annotations

import time

from tests.integration.support.client import Client
from tests.integration.support.subscriptions import Subscription

MAX_SECONDS = 90.0


def listen_until_all_have_ended(client: Client, task_ids: list[str]) -> list[Subscription]:
    """Subscribe again and again until all tasks have ended, as a client without streaming does."""
    subscriptions = []
    left = list(task_ids)
    deadline = time.monotonic() + MAX_SECONDS
    while left:
        assert time.monotonic() < deadline, f"{len(left)} tasks have not ended"
        subscriptions.append(Subscription(client, left).run())
        done = {state["taskId"] for state in subscriptions[-1].changes() if is_terminal(state)}
        left = [task_id for task_id in left if task_id not in done]
    return subscriptions


def is_terminal(state: dict[str, object]) -> bool:
    """Whether the task has ended."""
    return state["status"] in ("completed", "failed", "cancelled")


def test_no_change_is_missed_between_two_subscriptions(client: Client) -> None:
    """Every change arrives, in order. Each subscription begins with the current state."""
    task_ids = [client.start("count_up", to=6, every_ms=400) for _ in range(5)]
    subscriptions = listen_until_all_have_ended(client, task_ids)
    for task_id in task_ids:
        delivered: list[dict[str, object]] = []
        for subscription in subscriptions:
            delivered += [
                state for state in subscription.changes(task_id) if state not in delivered[-1:]
            ]
        messages = [state.get("statusMessage") for state in delivered[:-1]]
        expected = [None, "1", "2", "3", "4", "5", "6"]
        assert messages == expected[-len(messages) :]
        assert delivered[-1]["status"] == "completed"
        assert delivered[-1]["result"]["structuredContent"] == 6  # type: ignore[index]


def test_a_subscription_ends_as_soon_as_a_task_has_changed(client: Client) -> None:
    """It does not wait for its 25 seconds."""
    task_id = client.start("ask_choice")
    client.until_status(task_id, "input_required")
    first = Subscription(client, [task_id])
    start = time.monotonic()
    client.cancel(task_id)
    first.run()
    assert time.monotonic() - start < 10
    assert first.changes(task_id)[-1]["status"] == "cancelled"


def test_a_change_between_two_subscriptions_is_delivered_at_once(client: Client) -> None:
    """The second subscription does not wait for another change."""
    task_id = client.start("count_up", to=2, every_ms=3000)
    Subscription(client, [task_id]).run()
    client.end(task_id)
    start = time.monotonic()
    second = Subscription(client, [task_id]).run()
    assert time.monotonic() - start < 10
    assert second.changes(task_id)[-1]["status"] == "completed"
