"""`subscriptions/listen` without streaming: held for a while, and sent again and again."""

from __future__ import annotations

import time

from tests.integration.support.client import Client
from tests.integration.support.listening import Listen

PATIENCE = 90.0


def listen_on(client: Client, task_ids: list[str]) -> list[Listen]:
    """Listen until all tasks are over, as a client without streaming does."""
    listens = []
    left = list(task_ids)
    deadline = time.monotonic() + PATIENCE
    while left:
        assert time.monotonic() < deadline, f"{len(left)} tasks are not over"
        listens.append(Listen(client, left).run())
        over = {state["taskId"] for state in listens[-1].states() if ended(state)}
        left = [task_id for task_id in left if task_id not in over]
    return listens


def ended(state: dict[str, object]) -> bool:
    """Whether a state is a last one."""
    return state["status"] in ("completed", "failed", "cancelled")


def test_nothing_is_missed_between_two_listens(client: Client) -> None:
    """Every change arrives, in order; each listen begins with the current state, again or not."""
    task_ids = [client.start("count_up", to=6, every_ms=400) for _ in range(5)]
    listens = listen_on(client, task_ids)
    for task_id in task_ids:
        told: list[dict[str, object]] = []
        for listen in listens:
            told += [state for state in listen.states(task_id) if state not in told[-1:]]
        messages = [state.get("statusMessage") for state in told[:-1]]
        expected = [None, "1", "2", "3", "4", "5", "6"]
        assert messages == expected[-len(messages) :]
        assert told[-1]["status"] == "completed"
        assert told[-1]["result"]["structuredContent"] == 6  # type: ignore[index]


def test_a_listen_returns_as_soon_as_something_changed(client: Client) -> None:
    """And not after the 25 seconds for which it may be held."""
    task_id = client.start("ask_choice")
    client.until_status(task_id, "input_required")
    first = Listen(client, [task_id])
    start = time.monotonic()
    client.cancel(task_id)
    first.run()
    assert time.monotonic() - start < 10
    assert first.states(task_id)[-1]["status"] == "cancelled"


def test_what_changed_between_two_listens_comes_at_once(client: Client) -> None:
    """The second does not wait for a change that the client has missed already."""
    task_id = client.start("count_up", to=2, every_ms=3000)
    Listen(client, [task_id]).run()
    client.end(task_id)
    start = time.monotonic()
    second = Listen(client, [task_id]).run()
    assert time.monotonic() - start < 10
    assert second.states(task_id)[-1]["status"] == "completed"
