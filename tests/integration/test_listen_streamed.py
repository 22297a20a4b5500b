"""`subscriptions/listen`, streamed: the function on its own runtime loop, over real HTTP."""

from __future__ import annotations

import threading

import pytest

from local.gateway import Gateway
from tests.integration.support.client import Client, accept
from tests.integration.support.listening import Heard, Listen, Stream

TASKS = 20
NUMBERS = 5


@pytest.fixture(scope="module")
def streaming(gateway: Gateway) -> Client:
    """A client of the streaming endpoint."""
    return Client(gateway.url)


def test_twenty_tasks_are_followed_by_one_listen(streaming: Client) -> None:
    """Every change of every task, in order and once; the results; and the graceful end.

    The tasks wait until they are followed, so that all their changes from then on are known.
    """
    task_ids = []
    for _ in range(TASKS):
        task_ids.append(streaming.start("count_up", to=NUMBERS, every_ms=100, when_told=True))
        streaming.until_asked(task_ids[-1], "answer")

    def tell_all() -> None:
        for task_id in task_ids:
            (key,) = streaming.get(task_id)["inputRequests"]
            streaming.update(task_id, {key: accept(yes=True)})

    def begin(heard: Heard) -> bool:
        if heard.message.get("method") == "notifications/subscriptions/acknowledged":
            threading.Thread(target=tell_all).start()
        return False

    listen = Listen(streaming, task_ids).run(begin)
    assert listen.acknowledged_after < 1
    assert listen.accepted == task_ids
    numbers = [("working", str(number)) for number in range(1, NUMBERS + 1)]
    for task_id in task_ids:
        states = listen.states(task_id)
        told = [(state["status"], state.get("statusMessage")) for state in states]
        assert told == [
            ("input_required", None),
            ("working", None),
            *numbers,
            ("completed", None),
        ]
        assert states[-1]["result"]["structuredContent"] == NUMBERS
    assert listen.graceful


def test_a_change_arrives_while_the_stream_is_open(streaming: Client) -> None:
    """Not with its end: what was told first was there long before the last."""
    task_id = streaming.start("count_up", to=4, every_ms=700)
    listen = Listen(streaming, [task_id]).run()
    first, *_, last = [heard.at for heard in listen.heard[1:]]
    assert last - first > 1.5


def test_progress_of_a_call_within_the_request_arrives_as_it_happens(streaming: Client) -> None:
    """The streamed carrier serves every method, not the listens alone."""
    plain = Client(streaming.url, {})
    arguments = {"monthly": 1, "years": 20, "share_of_stocks": 0.5, "runs": 20_000}
    params = {"name": "estimate_savings", "arguments": arguments}
    body, headers = plain.compose("tools/call", params, meta={"progressToken": "p"})
    *progress, result = Stream(plain.url, body, headers)
    assert [heard.message["method"] for heard in progress] == ["notifications/progress"] * 10
    assert result.message["result"]["structuredContent"]["runs"] == 20_000
    assert progress[0].at < result.at / 2


def test_the_server_s_own_refusals_are_plain_json(streaming: Client) -> None:
    """Nothing has been streamed yet, so the status can say it."""
    refused = Client(streaming.url, {}).request(
        "subscriptions/listen", {"notifications": {"taskIds": []}}
    )
    assert (refused.status, refused.error["code"]) == (400, -32021)


def test_nothing_to_follow_ends_at_once(streaming: Client) -> None:
    """Unknown ids are not named; with nothing left, there is nothing to wait for."""
    listen = Listen(streaming, [f"c1-{'0' * 32}", "nonsense"]).run()
    assert listen.accepted == []
    assert len(listen.heard) == 2
    assert listen.graceful
