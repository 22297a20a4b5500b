"""Streamed subscriptions over HTTP: the function on the runtime loop that streams."""

from __future__ import annotations

import threading

import pytest

from local.gateway import Gateway
from tests.integration.support.client import Client, accept
from tests.integration.support.subscriptions import Received, Stream, Subscription

TASKS = 20
NUMBERS = 5


@pytest.fixture(scope="module")
def streaming(gateway: Gateway) -> Client:
    """A client of the streaming endpoint."""
    return Client(gateway.url)


def test_one_subscription_delivers_the_changes_of_twenty_tasks(streaming: Client) -> None:
    """Every change of every task arrives once and in order, with the results; then the stream ends.

    The tasks wait for an answer until the subscription is open, so that all changes are known.
    """
    task_ids = []
    for _ in range(TASKS):
        task_ids.append(streaming.start("count_up", to=NUMBERS, every_ms=100, ask_first=True))
        streaming.until_asked(task_ids[-1], "answer")

    def answer_all() -> None:
        for task_id in task_ids:
            (key,) = streaming.get(task_id)["inputRequests"]
            streaming.update(task_id, {key: accept(yes=True)})

    def begin(received: Received) -> bool:
        if received.message.get("method") == "notifications/subscriptions/acknowledged":
            threading.Thread(target=answer_all).start()
        return False

    subscription = Subscription(streaming, task_ids).run(begin)
    assert subscription.acknowledged_after < 1
    assert subscription.accepted == task_ids
    numbers = [("working", str(number)) for number in range(1, NUMBERS + 1)]
    for task_id in task_ids:
        states = subscription.changes(task_id)
        delivered = [(state["status"], state.get("statusMessage")) for state in states]
        assert delivered == [
            ("input_required", None),
            ("working", None),
            *numbers,
            ("completed", None),
        ]
        assert states[-1]["result"]["structuredContent"] == NUMBERS
    assert subscription.graceful


def test_a_change_arrives_while_the_stream_is_open(streaming: Client) -> None:
    """The first change arrives long before the last."""
    task_id = streaming.start("count_up", to=4, every_ms=700)
    subscription = Subscription(streaming, [task_id]).run()
    first, *_, last = [received.at for received in subscription.received[1:]]
    assert last - first > 1.5


def test_progress_of_a_call_within_the_request_arrives_as_it_happens(streaming: Client) -> None:
    """The streamed response channel serves every method, not only subscriptions."""
    plain = Client(streaming.url, {})
    arguments = {"monthly": 1, "years": 20, "share_of_stocks": 0.5, "runs": 100_000}
    params = {"name": "estimate_savings", "arguments": arguments}
    body, headers = plain.compose("tools/call", params, meta={"progressToken": "p"})
    *progress, result = Stream(plain.url, body, headers)
    assert [received.message["method"] for received in progress] == ["notifications/progress"] * 10
    assert result.message["result"]["structuredContent"]["runs"] == 100_000
    assert progress[0].at < result.at / 2


def test_an_error_before_the_stream_is_plain_json(streaming: Client) -> None:
    """The HTTP status has not been sent yet, so it can be 400."""
    refused = Client(streaming.url, {}).request(
        "subscriptions/listen", {"notifications": {"taskIds": []}}
    )
    assert (refused.status, refused.error["code"]) == (400, -32021)


def test_a_subscription_to_no_known_task_ends_at_once(streaming: Client) -> None:
    """The acknowledgement does not name unknown ids."""
    subscription = Subscription(streaming, [f"c1-{'0' * 32}", "nonsense"]).run()
    assert subscription.accepted == []
    assert len(subscription.received) == 2
    assert subscription.graceful
