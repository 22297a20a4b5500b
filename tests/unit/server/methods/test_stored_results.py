"""Results in S3, for subscriptions: not in an event; whole or as a link in a notification."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_tasks.notifications.changes import (
    MAX_DETAIL_BYTES,
    Change,
    change_to,
    fit_to_event,
    read_change,
)
from mcp_tasks.payloads.pointer import PayloadPointer, payload_prefix
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.server.methods.result_links import MAX_NOTIFIED_RESULT_BYTES
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.tasks.ids import new_task_id
from mcp_tasks.tasks.state import Status
from tests.unit.server.methods.test_result_links import GONE, link_in, result_of
from tests.unit.support.aws import refusing
from tests.unit.support.example_task import ID, NOW, a_task
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.push import Push
from tests.unit.support.stack import Answer, Stack

PAYLOAD: Final = PayloadPointer(f"count/{ID}/{'0' * 32}", 0, 5_000_000)
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}
COMPLETED: Final[dict[str, Any]] = {"status": Status.COMPLETED, "reconcile_at": None}


# on the bus


def test_a_stored_result_is_left_out_of_a_change() -> None:
    """Neither the result nor where it is: events are for those who may not read the bucket."""
    change = change_to(a_task(**COMPLETED, result_payload=PAYLOAD), NOW, detailed_task)
    assert change.left_out == ("result",)
    assert change.params["status"] == "completed"
    assert "result" not in change.params
    assert PAYLOAD.key not in change.detail()


def test_a_stored_result_that_was_loaded_is_sent() -> None:
    task = a_task(**COMPLETED, result_payload=PAYLOAD, result=RESULT)
    change = change_to(task, NOW, detailed_task)
    assert change.left_out == ()
    assert change.params["result"] == {"resultType": "complete", **RESULT}


def test_what_was_left_out_stays_left_out() -> None:
    """Whatever else has to be."""
    params = {**detailed_task(a_task(), NOW), "statusMessage": "x" * MAX_DETAIL_BYTES}
    change = fit_to_event(Change(ID, 2, params, ("result",)))
    assert change.left_out == ("result", "statusMessage")
    assert read_change(json.loads(change.detail())) == change


def test_a_small_event_of_a_stored_result_says_that_something_is_missing() -> None:
    change = fit_to_event(
        change_to(a_task(**COMPLETED, result_payload=PAYLOAD), NOW, detailed_task)
    )
    assert read_change(json.loads(change.detail())).left_out == ("result",)


# in a subscription


class Listened:
    """A server, tasks with stored results, and the functions that deliver their ends."""

    def __init__(self, stack: Stack, payloads: PayloadStore, time: Time) -> None:
        self.stack, self.payloads, self.time = stack, payloads, time
        self.push = Push(clock=time.read)

    def task(self) -> str:
        """A task that works."""
        task_id = new_task_id("c1")
        now = self.time.now
        new = {"task_id": task_id, "created_at": now, "last_updated_at": now}
        self.stack.deployment.task_table.create(a_task(principal="anonymous", **new))
        return task_id

    def end(self, task_id: str, result: Any = RESULT) -> None:
        """It ends with a result that is in S3."""
        stored = self.payloads.put(payload_prefix("count", task_id), json.dumps(result))
        self.stack.deployment.task_table.complete(task_id, stored, self.time.now)
        self.push.run()

    def heard(self, answer: Answer) -> dict[str, Any]:
        """The results that were sent, by task."""
        params = [message["params"] for message in answer.notifications[1:]]
        return {told["taskId"]: told["result"] for told in params if "result" in told}


@pytest.fixture(params=["buffered", "streamed"])
def listened(
    stack: Stack,
    payloads: PayloadStore,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Listened:
    time = Time()
    time.rule(monkeypatch)
    if request.param == "streamed":
        stack.way = Streamed(time)
    stack.serve()
    return Listened(stack, payloads, time)


def whole(result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", **result}


def test_a_delivered_end_has_its_result(listened: Listened) -> None:
    """It comes with the notification; nobody has to ask for it."""
    task_id = listened.task()
    listened.time.meanwhile.append(lambda: listened.end(task_id))
    answer = listened.stack.listen([task_id])
    assert listened.heard(answer) == {task_id: whole(RESULT)}


def test_an_end_before_the_subscription_has_its_result(listened: Listened) -> None:
    task_id = listened.task()
    listened.end(task_id)
    assert listened.heard(listened.stack.listen([task_id])) == {task_id: whole(RESULT)}


def test_a_result_that_is_too_large_among_others_is_a_link(listened: Listened) -> None:
    small, large = listened.task(), listened.task()
    listened.end(small)
    listened.end(large, result_of(MAX_NOTIFIED_RESULT_BYTES + 1))
    heard = listened.heard(listened.stack.listen([small, large]))
    assert heard[small] == whole(RESULT)
    assert link_in(heard[large]) is not None


def test_a_subscription_with_many_large_results_ends_when_it_is_full(listened: Listened) -> None:
    """A function returns 6 MB; the client listens again, and gets the rest."""
    task_ids = [listened.task() for _ in range(4)]
    for task_id in task_ids:
        listened.end(task_id, result_of(MAX_NOTIFIED_RESULT_BYTES))
    found: dict[str, Any] = {}
    for _ in range(4):
        found |= listened.heard(listened.stack.listen([t for t in task_ids if t not in found]))
    assert found.keys() == set(task_ids)


def test_no_more_results_are_loaded_than_are_sent(listened: Listened) -> None:
    """A hundred of two megabytes would not fit into the function."""
    task_ids = [listened.task() for _ in range(6)]
    for task_id in task_ids:
        listened.end(task_id, result_of(MAX_NOTIFIED_RESULT_BYTES))
    listened.stack.calls.forget()
    told = listened.heard(listened.stack.listen(task_ids))
    assert listened.stack.calls.operations.count("get_object") == len(told)


def test_a_missing_result_ends_no_subscription(listened: Listened) -> None:
    """The other tasks have nothing to do with it."""
    lost, well = listened.task(), listened.task()
    gone = PayloadPointer(f"{payload_prefix('count', lost)}/{'0' * 32}", 0, 9)
    listened.stack.deployment.task_table.complete(lost, gone, listened.time.now)
    listened.end(well)
    heard = listened.heard(listened.stack.listen([lost, well]))
    assert heard == {lost: whole(GONE), well: whole(RESULT)}


def test_a_busy_s3_delays_a_subscription(listened: Listened) -> None:
    """A result that could not be read is sent a little later."""
    task_id = listened.task()
    listened.end(task_id)
    listened.stack.calls.instead["get_object"] = refusing("s3", "SlowDown")
    listened.time.meanwhile.append(lambda: listened.stack.calls.instead.pop("get_object"))
    assert listened.heard(listened.stack.listen([task_id])) == {task_id: whole(RESULT)}
    assert listened.time.waits


def test_a_busy_s3_does_not_end_a_streamed_subscription(listened: Listened) -> None:
    """The state that it would send again was sent before."""
    done, open_ = listened.task(), listened.task()
    listened.end(done)
    listened.stack.listen([done, open_])
    listened.stack.calls.instead["get_object"] = refusing("s3", "SlowDown")
    listened.time.meanwhile += [lambda: listened.stack.calls.instead.pop("get_object")]
    listened.time.meanwhile += [lambda: listened.end(open_)]
    answer = listened.stack.listen([done, open_])
    assert answer.result["resultType"] == "complete"
    assert listened.heard(answer)[open_] == whole(RESULT)
