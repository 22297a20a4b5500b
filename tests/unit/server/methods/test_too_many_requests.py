"""HTTP 429 with `Retry-After`: quotas and the rate limit of creations, as a client meets them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import pytest

from mcp_tasks.limits import Limits
from mcp_tasks.notifications.live_mailboxes import LiveMailbox, caller_mailboxes_of
from mcp_tasks.notifications.mailbox import GRACE_MS, REUSABLE_MS
from mcp_tasks.notifications.mailbox_quota import MAX_ATTEMPTS
from mcp_tasks.protocol.errors import TooManyRequests
from mcp_tasks.server.methods.subscriptions import STREAM_END_MS
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.quotas import RECHECK_AFTER_MS
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.aws import CALLERS, MAILBOXES, real, refusing
from tests.unit.support.limited import Limited, new_id, new_task, refused
from tests.unit.support.listening import Streamed
from tests.unit.support.push import Push
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


def agents(count: int) -> Iterator[dict[str, Any]]:
    """Options of requests, each of another client."""
    for n in range(count):
        yield {"headers": {"User-Agent": f"agent/{n}"}}


def at_once(limited: Limited, task_id: str, *options: dict[str, Any]) -> list[Answer]:
    """Subscriptions that each begin while the earlier ones are open, in the order of their ends."""
    ended: list[Answer] = []

    def begin(first: dict[str, Any], *others: dict[str, Any]) -> None:
        if others:
            limited.time.meanwhile.append(lambda: begin(*others))
        ended.append(limited.stack.listen([task_id], **first))

    begin(*options)
    return ended


def live(limited: Limited, principal: str = ANYONE) -> list[LiveMailbox]:
    """The live mailboxes of a caller."""
    key = {**caller_key("caller", principal), "sk": {"S": "mailboxes"}}
    item = real("dynamodb").get_item(TableName=MAILBOXES, Key=key).get("Item", {})
    return list(caller_mailboxes_of(item).live(limited.time.now).values())


def test_a_caller_has_so_many_subscriptions_open(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=2)
    answers = at_once(listening, new_task(listening), *agents(3))
    assert "2 open subscriptions" in refused(answers.pop(0), RETRY_SECONDS)
    assert [answer.status for answer in answers] == [200, 200]
    assert [mailbox.released for mailbox in live(listening)] == [True, True]


def test_callers_do_not_share_their_subscriptions(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=1)
    callers = ({"user_arn": ALICE}, {"user_arn": BOB})
    answers = at_once(listening, new_task(listening, ALICE), *callers)
    assert [answer.status for answer in answers] == [200, 200]


def test_who_is_refused_costs_one_read(listening: Limited) -> None:
    listening.serve(max_open_subscriptions=1)
    calls: list[str] = []

    def count() -> None:
        listening.stack.calls.forget()
        refused(listening.stack.listen([new_id()], **next(agents(1))), RETRY_SECONDS)
        calls.extend(listening.stack.calls.operations)

    listening.time.meanwhile.append(count)
    listening.stack.listen([new_task(listening)])
    assert calls == ["get_item"]


def test_a_subscription_to_no_task_needs_no_quota(listening: Limited) -> None:
    stack = listening.serve(max_open_subscriptions=1, new_subscriptions_per_minute=1)
    for nothing in (None, [], ["c2-" + "0" * 32]):
        assert stack.listen(nothing).status == 200
    assert stack.calls.operations == []


def test_a_subscription_that_breaks_off_is_not_counted(listening: Limited) -> None:
    stack = listening.serve(max_open_subscriptions=1)
    stack.calls.instead["batch_get_item"] = refusing("dynamodb", "InternalServerError")
    assert stack.listen([new_id()]).status == 503
    assert live(listening) == []


def test_a_mailbox_that_is_not_closed_is_free_after_the_subscription(listening: Limited) -> None:
    """And the client gets its answer all the same."""

    def update(**arguments: Any) -> Any:
        if "REMOVE" in arguments["UpdateExpression"]:
            return refusing("dynamodb", "InternalServerError")()
        return real("dynamodb").update_item(**arguments)

    stack, time = listening.serve(max_open_subscriptions=1), listening.time
    stack.calls.instead["update_item"] = update
    streamed_until = time.now + Streamed(time).remaining_ms - STREAM_END_MS
    assert stack.listen([new_id()]).result["resultType"] == "complete"
    (mailbox,) = live(listening)
    del stack.calls.instead["update_item"]
    assert mailbox.until == streamed_until + GRACE_MS
    time.now = mailbox.until - 1
    (other,) = agents(1)
    refused(stack.listen([new_id()], **other), RETRY_SECONDS)
    time.now += 1
    assert stack.listen([new_id()], **other).status == 200


def test_when_other_subscriptions_are_always_faster_the_caller_comes_back(
    listening: Limited,
) -> None:
    stack = listening.serve(max_open_subscriptions=9)
    stack.calls.instead["update_item"] = refusing("dynamodb", "ConditionalCheckFailedException")
    refused(stack.listen([new_id()]), 1)
    assert stack.calls.operations.count("update_item") == MAX_ATTEMPTS


# subscriptions a minute


def test_a_caller_begins_so_many_subscriptions_a_minute(listening: Limited) -> None:
    """Whatever they are called, and however they end."""
    stack = listening.serve(new_subscriptions_per_minute=3)
    task_id = new_task(listening)
    stack.cancel(task_id)
    for other in agents(3):
        assert stack.listen([task_id], **other).status == 200
    stack.calls.forget()
    assert "3 subscriptions a minute" in refused(stack.listen([task_id]), 20)
    assert stack.calls.operations == ["get_item"]
    assert stack.listen([task_id], user_arn=BOB).status == 200
    listening.time.now += 19_999
    refused(stack.listen([task_id]), 1)
    listening.time.now += 1
    assert stack.listen([task_id]).status == 200
    refused(stack.listen([task_id]), 20)


# what ended subscriptions cost


def buffered(limited: Limited) -> tuple[Stack, list[str]]:
    """A server with the limits of a deployment, and two tasks: one has ended, so that every
    subscription ends at once."""
    stack = limited.serve(**asdict(Limits(polls_per_second=0)))
    going_on, ended = stack.created("count", {"upto": 3}), stack.created("count", {"upto": 3})
    stack.cancel(ended)
    return stack, [going_on, ended]


def entries_of_a_change(limited: Limited, task_id: str) -> int:
    """How many mailboxes get the next change of a task."""
    push = Push(clock=limited.time.read)
    push.run()
    before = len(raw_entries())
    limited.stack.deployment.task_table.report(task_id, "a change", limited.time.now)
    push.run()
    return len(raw_entries()) - before


def raw_entries() -> list[Any]:
    items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    return [item for item in items if item["pk"]["S"].startswith("mailbox#")]


def test_however_a_client_calls_itself_few_mailboxes_get_its_tasks_changes(
    limited: Limited,
) -> None:
    """Each of them costs a write of the whole change."""
    stack, task_ids = buffered(limited)
    for other in agents(40):
        assert stack.listen(task_ids, **other).status == 200
    assert len(live(limited)) == Limits().max_open_subscriptions
    assert entries_of_a_change(limited, task_ids[0]) == Limits().max_open_subscriptions
    # What names the mailboxes of a task does not grow either: `deliver` reads all of it.
    items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    follow = [item for item in items if item["pk"]["S"].startswith("task#")]
    assert len(follow) == Limits().max_open_subscriptions


def test_a_subscription_that_ended_costs_nothing_after_its_minute(limited: Limited) -> None:
    """A buffered one may have had 25 seconds before it."""
    stack, task_ids = buffered(limited)
    stack.listen(task_ids)
    limited.time.now += REUSABLE_MS - 1
    assert entries_of_a_change(limited, task_ids[0]) == 1
    limited.time.now += 1
    assert entries_of_a_change(limited, task_ids[0]) == 0


def test_a_subscription_whose_tasks_have_all_ended_costs_nothing(limited: Limited) -> None:
    stack, (_, ended) = buffered(limited)
    stack.listen([ended])
    assert live(limited) == []
    items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    assert [item["sk"]["S"] for item in items] == ["mailboxes"]


def test_the_same_client_goes_on_with_its_mailbox_at_the_limit(limited: Limited) -> None:
    """And no released mailbox of another client has to give way to it."""
    stack, task_ids = buffered(limited)
    clients = list(agents(Limits().max_open_subscriptions))
    for _ in range(3):
        for client in clients:
            stack.listen(task_ids, **client)
        ids = {mailbox.id for mailbox in live(limited)}
    stack.listen(task_ids, **clients[0])
    assert {mailbox.id for mailbox in live(limited)} == ids
