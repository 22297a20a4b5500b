"""HTTP 429 with `Retry-After`: quotas and the rate limit of creations, as a client meets them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.protocol.errors import TooManyRequests
from mcp_tasks.server.methods.subscriptions import QUOTA_GRACE_MS, STREAM_END_MS
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.quotas import RECHECK_AFTER_MS
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.aws import CALLERS, real, refusing
from tests.unit.support.limited import Limited, new_id, new_task, refused
from tests.unit.support.listening import Streamed
from tests.unit.support.stack import Answer, Stack

ALICE, BOB = "arn:aws:iam::1:user/alice", "arn:aws:iam::1:user/bob"


def create(stack: Stack, **options: Any) -> Answer:
    return stack.call("count", {"upto": 3}, **options)


RETRY_SECONDS: Final = RECHECK_AFTER_MS // 1000
"""When a caller with no quota left may repeat its request."""


@pytest.mark.parametrize(
    ("ms", "seconds"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60), (60_000, 60)]
)
def test_the_retry_after_is_rounded_up(ms: int, seconds: int) -> None:
    """RFC 9110, section 10.2.3: whole seconds."""
    error = TooManyRequests("no", ms)
    assert error.headers == {"Retry-After": str(seconds)}
    assert error.data == {"retryAfterSeconds": seconds}


# open tasks


def test_a_caller_has_so_many_tasks(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=2)
    first, second = stack.created("count", {"upto": 3}), stack.created("wait")
    stack.calls.forget()
    assert "2 tasks" in refused(create(stack), RETRY_SECONDS)
    assert {row["taskId"]["S"] for row in stack.rows} == {first, second}
    assert not {"put_item", "start_execution"} & set(stack.calls.operations)


def test_an_ended_task_frees_its_quota(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    for _ in range(3):
        task_id = stack.created("count", {"upto": 3})
        stack.deployment.task_table.complete(task_id, {"content": []}, limited.time.now)
    stack.created("count", {"upto": 3})
    refused(create(stack), RETRY_SECONDS)


def test_callers_do_not_share_their_tasks(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    stack.created("count", {"upto": 3}, user_arn=ALICE)
    stack.created("count", {"upto": 3}, user_arn=BOB)
    refused(create(stack, user_arn=ALICE), RETRY_SECONDS)


def test_a_task_that_could_not_be_started_frees_its_quota(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    started = stack.calls.instead["start_execution"]
    stack.calls.instead["start_execution"] = refusing("stepfunctions", "StateMachineDoesNotExist")
    assert create(stack).status == 500
    stack.calls.instead["start_execution"] = started
    stack.created("count", {"upto": 3})


def test_a_caller_that_goes_on_trying_reads_nothing(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    stack.created("count", {"upto": 3})
    refused(create(stack), RETRY_SECONDS)
    stack.calls.forget()
    limited.time.now += RECHECK_AFTER_MS - 1
    refused(create(stack), RETRY_SECONDS)
    assert stack.calls.operations == ["update_item"]


def test_a_tool_that_runs_within_the_request_needs_no_quota(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1, creations_per_minute=1)
    stack.created("count", {"upto": 3})
    assert create(stack, capabilities={}).status == 200
    assert stack.call("echo", {"text": "a"}).status == 200


# creations a minute


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


# open subscriptions


@pytest.fixture
def listening(limited: Limited) -> Limited:
    # Each with an answer of its own: several are under way at once.
    limited.stack.way = lambda server, http: Streamed(limited.time)(server, http)
    return limited


def at_once(limited: Limited, task_id: str, *callers: str | None) -> list[Answer]:
    """Subscriptions that each begin while the earlier ones are open, in the order of their ends."""
    ended: list[Answer] = []

    def begin(left: tuple[str | None, ...]) -> None:
        caller, *others = left
        if others:
            limited.time.meanwhile.append(lambda: begin(tuple(others)))
        ended.append(limited.stack.listen([task_id], user_arn=caller))

    begin(callers)
    return ended


def listens(principal: str = ANYONE) -> list[str]:
    """The open subscriptions in a caller's quota."""
    key = caller_key("subscriptions", principal)
    item = real("dynamodb").get_item(TableName=CALLERS, Key=key).get("Item")
    return list(item["open"]["M"]) if item else []


def test_a_caller_has_so_many_subscriptions_open(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=2)
    answers = at_once(listening, new_task(listening), None, None, None)
    assert "2 open subscriptions" in refused(answers.pop(0), RETRY_SECONDS)
    assert [answer.status for answer in answers] == [200, 200]
    assert listens() == []
    assert listening.stack.listen([new_id()]).status == 200


def test_callers_do_not_share_their_subscriptions(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=1)
    answers = at_once(listening, new_task(listening, ALICE), ALICE, BOB)
    assert [answer.status for answer in answers] == [200, 200]


def test_a_subscription_to_no_task_needs_no_quota(listening: Limited) -> None:
    stack = listening.serve(max_open_subscriptions=1)
    for nothing in (None, [], ["c2-" + "0" * 32]):
        assert stack.listen(nothing).status == 200
    assert "update_item" not in stack.calls.operations


def test_without_a_limit_a_subscription_needs_no_quota(listening: Limited) -> None:
    stack = listening.serve()
    assert stack.listen([new_task(listening)]).status == 200
    tables = {c.arguments.get("TableName") for c in stack.calls.made}
    assert CALLERS not in tables


def test_a_subscription_that_breaks_off_releases_its_quota(listening: Limited) -> None:
    stack = listening.serve(max_open_subscriptions=1)
    stack.calls.instead["batch_get_item"] = refusing("dynamodb", "InternalServerError")
    assert stack.listen([new_id()]).status == 503
    assert listens() == []


def test_a_quota_that_is_not_released_is_free_after_the_subscription(listening: Limited) -> None:
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
    refused(stack.listen([new_id()]), RETRY_SECONDS)
    time.now += RECHECK_AFTER_MS
    assert stack.listen([new_id()]).status == 200


def test_when_other_subscriptions_are_always_faster_the_caller_comes_back(
    listening: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tasks.tasks.quotas.MAX_ATTEMPTS", 1)
    refused(listening.serve(max_open_subscriptions=9).listen([new_id()]), 1)
