"""The rate limit of polls, as a client meets it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.protocol.errors import TooManyRequests
from mcp_tasks.server.methods import poll_rate_limit
from mcp_tasks.server.methods.poll_rate_limit import PollRateLimit
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.example_task import a_task
from tests.unit.support.limited import Limited, new_id, new_task, refused
from tests.unit.support.stack import Answer, Stack

ALICE, BOB = "arn:aws:iam::1:user/alice", "arn:aws:iam::1:user/bob"
PARAMS: Final = -32602


def poll(stack: Stack, task_id: str, **options: Any) -> Answer:
    return stack.post("tasks/get", {"taskId": task_id}, **options)


def polled(limited: Limited, task_id: str, every_ms: int, seconds: int) -> list[Answer]:
    """The answers to polls in regular intervals."""
    answers = []
    for _ in range(seconds * 1000 // every_ms):
        answers.append(poll(limited.stack, task_id))
        limited.time.now += every_ms
    return answers


def test_five_polls_a_second_for_ten_seconds_are_served(limited: Limited) -> None:
    limited.serve(polls_per_second=Limits().polls_per_second)
    answers = polled(limited, new_task(limited), every_ms=200, seconds=10)
    assert {answer.status for answer in answers} == {200}


def test_far_more_polls_than_suggested_are_refused_and_cost_nothing(limited: Limited) -> None:
    """A burst of 60 is served; then as many as the limit says."""
    stack = limited.serve(polls_per_second=2)
    task_id = new_task(limited)
    for _ in range(60):
        assert poll(stack, task_id).status == 200
    stack.calls.forget()
    assert "pollIntervalMs" in refused(poll(stack, task_id), 1)
    assert stack.calls.made == []
    limited.time.now += 499
    refused(poll(stack, task_id), 1)
    limited.time.now += 1
    assert poll(stack, task_id).status == 200
    refused(poll(stack, task_id), 1)


def served(limited: Limited, counted: PollRateLimit, every_ms: int, seconds: int) -> int:
    """How many polls in regular intervals are served."""
    found = 0
    for _ in range(seconds * 1000 // every_ms):
        with suppress(TooManyRequests):
            counted.count("alice", "task")
            found += 1
        limited.time.now += every_ms
    return found


def test_a_steady_poller_gets_what_the_limit_says(limited: Limited) -> None:
    """For ten minutes, fifty a second; and the burst, once."""
    counted = PollRateLimit(2, limited.time.read)
    assert 1190 <= served(limited, counted, every_ms=20, seconds=600) - 60 <= 1200


def test_a_burst_is_earned_again(limited: Limited) -> None:
    counted = PollRateLimit(2, limited.time.read)
    for _ in range(2):
        for _ in range(60):
            counted.count("alice", "task")
        with pytest.raises(TooManyRequests):
            counted.count("alice", "task")
        limited.time.now += 3_600_000


def test_a_tool_that_suggests_to_poll_often_may_be_polled_twice_as_often(
    limited: Limited,
) -> None:
    """Every 50 ms, where the tool suggests 100; a burst of 30 is gone after two seconds."""
    limited.serve(polls_per_second=1)
    now = limited.time.now
    fast = a_task(principal=ANYONE, created_at=now, last_updated_at=now, poll_interval_ms=100)
    limited.stack.deployment.task_table.create(fast)
    answers = polled(limited, fast.task_id, every_ms=50, seconds=4)
    assert {answer.status for answer in answers} == {200}


def test_it_may_be_polled_so_for_long_and_not_much_more_often(limited: Limited) -> None:
    counted = PollRateLimit(2, limited.time.read)
    for _ in range(60_000 // 50):
        counted.count("alice", "task")
        counted.suggested("alice", "task", 100)
        limited.time.now += 50
    assert 190 <= served(limited, counted, every_ms=10, seconds=10) - 60 <= 200


def test_a_tool_that_suggests_to_poll_seldom_is_polled_as_the_limit_says(
    limited: Limited,
) -> None:
    counted = PollRateLimit(2, limited.time.read)
    for _ in range(60):
        counted.count("alice", "task")
        counted.suggested("alice", "task", 60_000)
    limited.time.now += 500
    counted.count("alice", "task")


def test_neither_callers_nor_tasks_share_their_polls(limited: Limited) -> None:
    stack = limited.serve(polls_per_second=1)
    alices, bobs = new_id(), f"c1-{'1' * 32}"
    for _ in range(30):
        poll(stack, alices, user_arn=ALICE)
    refused(poll(stack, alices, user_arn=ALICE), 1)
    assert poll(stack, bobs, user_arn=ALICE).code == PARAMS
    assert poll(stack, alices, user_arn=BOB).code == PARAMS


def test_without_a_limit_a_caller_polls_at_will(limited: Limited) -> None:
    stack, task_id = limited.serve(), new_task(limited)
    assert {poll(stack, task_id).status for _ in range(5)} == {200}


def test_polls_are_never_written_down(limited: Limited) -> None:
    stack = limited.serve(polls_per_second=1)
    task_id = new_task(limited)
    stack.calls.forget()
    for _ in range(40):
        poll(stack, task_id)
    assert stack.calls.operations == ["get_item"] * 30


def test_an_id_that_is_none_is_not_counted(limited: Limited) -> None:
    stack = limited.serve(polls_per_second=1)
    assert {poll(stack, "c2-" + "0" * 32).code for _ in range(40)} == {PARAMS}


def test_the_memory_for_polls_is_bounded(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not polled for longest is forgotten, and begins anew."""
    monkeypatch.setattr(poll_rate_limit, "MAX_COUNTED_TASKS", 100)
    counted = PollRateLimit(1, limited.time.read)
    for _ in range(30):
        counted.count("alice", "0")
    for n in range(1, 101):
        counted.count("alice", str(n))
    assert len(counted._buckets) == 100
    counted.suggested("alice", "0", 100)
    assert len(counted._buckets) == 100
    counted.count("alice", "0")


def test_what_is_polled_is_remembered(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll_rate_limit, "MAX_COUNTED_TASKS", 100)
    counted = PollRateLimit(1, limited.time.read)
    for n in range(30):
        counted.count("alice", "kept")
        for other in range(99):
            counted.count("alice", f"{n} {other}")
    with pytest.raises(TooManyRequests):
        counted.count("alice", "kept")


def test_a_clock_that_goes_back_earns_nothing(limited: Limited) -> None:
    counted = PollRateLimit(1, limited.time.read)
    for _ in range(30):
        counted.count("alice", "task")
    limited.time.now -= 100_000
    with pytest.raises(TooManyRequests) as caught:
        counted.count("alice", "task")
    assert caught.value.headers == {"Retry-After": "1"}


def test_a_tool_may_suggest_less_than_a_millisecond(limited: Limited) -> None:
    """`poll_every=timedelta(microseconds=1)` is allowed, and is 0 ms."""
    counted = PollRateLimit(1, limited.time.read)
    for _ in range(2):
        counted.count("alice", "task")
        counted.suggested("alice", "task", 0)
