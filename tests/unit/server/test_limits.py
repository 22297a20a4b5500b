"""What one caller may do, and what one request may be, as a client meets the limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.protocol.errors import TooManyRequests
from mcp_tasks.server.methods import poll_rate_limit as polling
from mcp_tasks.server.methods.poll_rate_limit import PollRateLimit
from mcp_tasks.server.methods.subscriptions import QUOTA_GRACE_MS, STREAM_END_MS
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.quotas import RECHECK_AFTER_MS
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.aws import CALLERS, real, refusing
from tests.unit.support.example_task import a_task
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.stack import Answer, Stack, meta, mirrored
from tests.wire import LISTEN

ALICE, BOB = "arn:aws:iam::1:user/alice", "arn:aws:iam::1:user/bob"
PARSE, INVALID, PARAMS, INTERNAL = -32700, -32600, -32602, -32603
TOO_MANY: Final = (429, INTERNAL)


class Limited:
    """A server with limits, whose clock stands still."""

    def __init__(self, stack: Stack, time: Time) -> None:
        self.stack = stack
        self.time = time

    def serve(self, **limits: int) -> Stack:
        """Start it with these limits, and none of the others that count something."""
        off = {"max_open_tasks": 0, "creations_per_minute": 0}
        off |= {"polls_per_second": 0, "max_open_subscriptions": 0}
        self.stack.environment["LIMITS"] = Limits(**{**off, **limits}).to_json()
        self.stack.serve()
        return self.stack


@pytest.fixture
def limited(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Limited:
    time = Time()
    time.rule(monkeypatch)
    monkeypatch.setattr(
        "mcp_tasks.server.server.PollRateLimit", partial(PollRateLimit, clock=time.read)
    )
    return Limited(stack, time)


def create(stack: Stack, **options: Any) -> Answer:
    return stack.call("count", {"upto": 3}, **options)


FULL: Final = RECHECK_AFTER_MS // 1000
"""Seconds after which it is worth to try again, for who has no place left."""


def refused(answer: Answer, retry_after: int | None) -> str:
    """What a client is told that is over a limit, and when to come back, where that is known."""
    assert (answer.status, answer.code) == TOO_MANY
    assert answer.headers.get("Retry-After") == (retry_after and str(retry_after))
    assert answer.error.get("data") == (retry_after and {"retryAfterSeconds": retry_after})
    message: str = answer.error["message"]
    return message


@pytest.mark.parametrize(
    ("ms", "seconds"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60), (60_000, 60)]
)
def test_the_time_to_come_back_is_rounded_up(ms: int, seconds: int) -> None:
    """RFC 9110, section 10.2.3: whole seconds."""
    error = TooManyRequests("no", ms)
    assert error.headers == {"Retry-After": str(seconds)}
    assert error.data == {"retryAfterSeconds": seconds}


def test_limits_travel_in_the_environment() -> None:
    limits = Limits(
        max_open_tasks=1,
        creations_per_minute=2,
        polls_per_second=3,
        max_open_subscriptions=4,
        max_body_bytes=5,
        max_argument_bytes=6,
        max_json_depth=7,
    )
    assert Limits.from_json(limits.to_json()) == limits
    assert Limits.from_json(None) == Limits.from_json("") == Limits()


# tasks that are not over


def test_a_caller_has_so_many_tasks(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=2)
    first, second = stack.created("count", {"upto": 3}), stack.created("wait")
    stack.calls.forget()
    assert "2 tasks" in refused(create(stack), FULL)
    assert {row["taskId"]["S"] for row in stack.rows} == {first, second}
    assert not {"put_item", "start_execution"} & set(stack.calls.operations)


def test_a_task_that_is_over_makes_room(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    for _ in range(3):
        stack.cancel(stack.created("count", {"upto": 3}))
    stack.created("count", {"upto": 3})
    refused(create(stack), FULL)


def test_callers_do_not_share_their_tasks(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    stack.created("count", {"upto": 3}, user_arn=ALICE)
    stack.created("count", {"upto": 3}, user_arn=BOB)
    refused(create(stack, user_arn=ALICE), FULL)


def test_a_task_that_could_not_be_started_makes_room(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    started = stack.calls.instead["start_execution"]
    stack.calls.instead["start_execution"] = refusing("stepfunctions", "StateMachineDoesNotExist")
    assert create(stack).status == 500
    stack.calls.instead["start_execution"] = started
    stack.created("count", {"upto": 3})


def test_a_caller_that_goes_on_trying_reads_nothing(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    stack.created("count", {"upto": 3})
    refused(create(stack), FULL)
    stack.calls.forget()
    limited.time.now += RECHECK_AFTER_MS - 1
    refused(create(stack), FULL)
    assert stack.calls.operations == ["update_item"]


def test_a_tool_that_runs_within_the_request_takes_no_place(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1, creations_per_minute=1)
    stack.created("count", {"upto": 3})
    assert create(stack, capabilities={}).status == 200
    assert stack.call("echo", {"text": "a"}).status == 200


# tasks a minute


def test_a_caller_creates_so_many_tasks_a_minute(limited: Limited) -> None:
    stack = limited.serve(creations_per_minute=3)
    for _ in range(3):
        stack.created("count", {"upto": 3})
    assert "3 tasks a minute" in refused(create(stack), 20)
    stack.created("count", {"upto": 3}, user_arn=BOB)
    limited.time.now += 19_999
    refused(create(stack), 1)
    limited.time.now += 1
    stack.created("count", {"upto": 3})
    refused(create(stack), 20)
    assert len(stack.rows) == 5


def test_without_limits_a_caller_creates_at_will(limited: Limited) -> None:
    stack = limited.serve()
    for _ in range(5):
        stack.created("count", {"upto": 3})
    assert real("dynamodb").scan(TableName=CALLERS)["Items"] == []


def test_when_others_are_always_faster_the_caller_comes_back(
    limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tasks.tasks.quotas.MAX_ATTEMPTS", 1)
    stack = limited.serve(max_open_tasks=9)
    refused(create(stack), 1)
    assert stack.rows == []


# listens


@pytest.fixture
def listening(limited: Limited) -> Limited:
    # Each with an answer of its own: several are under way at once.
    limited.stack.way = lambda server, http: Streamed(limited.time)(server, http)
    return limited


def new_task(limited: Limited, principal: str = ANYONE) -> str:
    now = limited.time.now
    task = a_task(principal=principal, created_at=now, last_updated_at=now)
    limited.stack.deployment.task_table.create(task)
    return task.task_id


def at_once(limited: Limited, task_id: str, *callers: str | None) -> list[Answer]:
    """Listens that each begin while those before them are open, in the order of their ends."""
    ended: list[Answer] = []

    def begin(left: tuple[str | None, ...]) -> None:
        caller, *others = left
        if others:
            limited.time.meanwhile.append(lambda: begin(tuple(others)))
        ended.append(limited.stack.listen([task_id], user_arn=caller))

    begin(callers)
    return ended


def listens(principal: str = ANYONE) -> list[str]:
    """What has a place of a caller's."""
    key = caller_key("subscriptions", principal)
    item = real("dynamodb").get_item(TableName=CALLERS, Key=key).get("Item")
    return list(item["open"]["M"]) if item else []


def test_a_caller_has_so_many_listens_open(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=2)
    answers = at_once(listening, new_task(listening), None, None, None)
    assert "2 open subscriptions" in refused(answers.pop(0), FULL)
    assert [answer.status for answer in answers] == [200, 200]
    assert listens() == []
    assert listening.stack.listen([new_id()]).status == 200


def new_id() -> str:
    """An id that a task may have."""
    return f"c1-{'0' * 32}"


def test_callers_do_not_share_their_listens(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=1)
    answers = at_once(listening, new_task(listening, ALICE), ALICE, BOB)
    assert [answer.status for answer in answers] == [200, 200]


def test_a_listen_to_nothing_takes_no_place(listening: Limited) -> None:
    stack = listening.serve(max_open_subscriptions=1)
    for nothing in (None, [], ["c2-" + "0" * 32]):
        assert stack.listen(nothing).status == 200
    assert "update_item" not in stack.calls.operations


def test_without_a_limit_a_listen_takes_no_place(listening: Limited) -> None:
    stack = listening.serve()
    assert stack.listen([new_task(listening)]).status == 200
    tables = {c.arguments.get("TableName") for c in stack.calls.made}
    assert CALLERS not in tables


def test_a_listen_that_breaks_gives_its_place_back(listening: Limited) -> None:
    stack = listening.serve(max_open_subscriptions=1)
    stack.calls.instead["batch_get_item"] = refusing("dynamodb", "InternalServerError")
    assert stack.listen([new_id()]).status == 503
    assert listens() == []


def test_a_place_that_is_not_given_back_ends_with_the_listens_time(listening: Limited) -> None:
    """And the client gets its answer all the same."""

    def update(**arguments: Any) -> Any:
        if arguments["UpdateExpression"].startswith("REMOVE"):
            return refusing("dynamodb", "InternalServerError")()
        return real("dynamodb").update_item(**arguments)

    stack, time = listening.serve(max_open_subscriptions=1), listening.time
    stack.calls.instead["update_item"] = update
    streamed_until = time.now + Streamed(time).remaining_ms - STREAM_END_MS
    assert stack.listen([new_id()]).result["resultType"] == "complete"
    (key,) = listens()
    del stack.calls.instead["update_item"]
    item = real("dynamodb").scan(TableName=CALLERS)["Items"][0]
    until = int(item["open"]["M"][key]["N"])
    assert until == streamed_until + QUOTA_GRACE_MS
    time.now = until - 1
    refused(stack.listen([new_id()]), FULL)
    time.now += RECHECK_AFTER_MS
    assert stack.listen([new_id()]).status == 200


def test_when_other_listens_are_always_faster_the_caller_comes_back(
    listening: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tasks.tasks.quotas.MAX_ATTEMPTS", 1)
    refused(listening.serve(max_open_subscriptions=9).listen([new_id()]), 1)


# polls


def poll(stack: Stack, task_id: str, **options: Any) -> Answer:
    return stack.post("tasks/get", {"taskId": task_id}, **options)


def polled(limited: Limited, task_id: str, every_ms: int, seconds: int) -> list[Answer]:
    """The answers to polls at a pace."""
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
    """How many of the polls at a pace are served."""
    found = 0
    for _ in range(seconds * 1000 // every_ms):
        with suppress(TooManyRequests):
            counted.count("alice", "task")
            found += 1
        limited.time.now += every_ms
    return found


def test_whoever_goes_on_polling_gets_what_the_limit_says(limited: Limited) -> None:
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
    monkeypatch.setattr(polling, "MAX_COUNTED_TASKS", 100)
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
    monkeypatch.setattr(polling, "MAX_COUNTED_TASKS", 100)
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


# requests


def sent(stack: Stack, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """A call of `anything`, which takes any argument: its body, and its headers."""
    params = {"name": "anything", "arguments": arguments, "_meta": meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message), mirrored("tools/call", params)


def nested(levels: int) -> Any:
    """An array of arrays."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_body_may_be_as_large_as_the_limit(limited: Limited) -> None:
    """In bytes, whatever the arguments are: HTTP 413."""
    stack = limited.serve()
    body, headers = sent(stack, filling="x" * 1000)
    stack = limited.serve(max_body_bytes=len(body))
    assert stack.send(body, headers, method="tools/call").status == 200
    answer = stack.send(body.replace("xx", "ä", 1) + " ", headers)
    assert (answer.status, answer.code) == (413, INVALID)
    assert f"{len(body)} bytes" in answer.error["message"]
    assert len(stack.rows) == 1


def test_arguments_may_be_as_large_as_the_limit(limited: Limited) -> None:
    """As the execution gets them."""
    stack = limited.serve()
    stack.call("anything", {"filling": "x" * 1000})
    (row,) = stack.rows
    size = len(row["input"]["S"])
    stack = limited.serve(max_argument_bytes=size)
    assert stack.call("anything", {"filling": "x" * 1000}).status == 200
    stack.calls.forget()
    for more in ({"filling": "x" * 1001}, {"filling": "x" * 995 + "ä"}):
        answer = stack.call("anything", more)
        assert (answer.status, answer.code) == (400, PARAMS)
        assert f"{size} bytes" in answer.error["message"]
    assert stack.calls.made == []
    assert stack.call("anything", {"filling": "x" * 1001}, capabilities={}).status == 200


@pytest.mark.parametrize("depth", [10, 100, 200])
def test_a_body_may_be_as_deep_as_the_limit(limited: Limited, depth: int) -> None:
    """The message, its params and their arguments are three levels."""
    stack = limited.serve(max_json_depth=depth)
    body, headers = sent(stack, deep=nested(depth - 3))
    assert stack.send(body, headers, method="tools/call").status == 200
    body, headers = sent(stack, deep=nested(depth - 2))
    answer = stack.send(body, headers)
    assert (answer.status, answer.code) == (400, PARSE)
    assert f"{depth} levels" in answer.error["message"]


def test_the_limits_of_a_request_hold_for_each_method(limited: Limited) -> None:
    stack = limited.serve(max_body_bytes=1024)
    methods: dict[str, Callable[[], Answer]] = {
        "tools/list": lambda: stack.post("tools/list", {"filling": "x" * 1024}),
        "tasks/update": lambda: stack.update(new_id(), {"key": "x" * 1024}),
        LISTEN: lambda: stack.listen([new_id()] * 40),
    }
    assert {post().status for post in methods.values()} == {413}
    assert stack.calls.made == []
