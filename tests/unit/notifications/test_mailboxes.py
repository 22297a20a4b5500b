"""The mailboxes of subscriptions, in moto's DynamoDB.

Each condition, and the test that fails without it (checked by removing it from a copy):

    open     `live` says released            test_two_subscriptions_at_once_have_a_mailbox_each
    open     `until`                         test_a_mailbox_released_too_long_ago_is_not_taken_over
    open     the tasks in common             test_a_mailbox_of_other_tasks_is_not_taken_over
    follow   added tasks are written         test_a_mailbox_that_is_taken_over_receives_new_tasks
    follow   `receivesUntil` is prolonged    test_a_chain_of_subscriptions_receives_without_a_gap
    deliver  ConsistentRead                  test_the_mailboxes_of_a_task_are_read_consistently
    deliver  the mailbox is live             test_a_mailbox_whose_time_is_up_gets_nothing
    deliver  one key for one change          test_a_change_that_is_delivered_twice_is_there_once

`test_mailbox_quota.py` has how many there may be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pytest

from mcp_tasks.notifications.changes import Change
from mcp_tasks.notifications.mailbox import GRACE_MS, REUSABLE_MS, Mailbox, Subscriber
from mcp_tasks.notifications.mailbox_quota import SubscriptionLimits
from mcp_tasks.notifications.mailboxes import EXTRA_RECEIVE_MS, MAX_WRITE_ATTEMPTS, Mailboxes
from mcp_tasks.tasks.errors import Busy
from tests.unit.support.aws import MAILBOXES, Calls, create_mailboxes, real
from tests.unit.support.example_task import HOUR, NOW
from tests.unit.support.push import deliver as push_change
from tests.unit.support.push import task_changes

SOON: Final = NOW + 25_000
"""When a subscription ends that begins now."""


@pytest.fixture
def mailboxes(aws: Calls) -> Mailboxes:
    """An empty table of mailboxes."""
    return Mailboxes(aws.client("dynamodb"), create_mailboxes())


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before a repeated write, in seconds; nobody waits."""
    taken: list[float] = []
    monkeypatch.setattr("mcp_tasks.notifications.mailboxes.time.sleep", taken.append)
    return taken


def a_change(task_id: str = "a", revision: int = 2) -> Change:
    """A change of a task."""
    return Change(task_id, revision, {"taskId": task_id, "status": "working"})


def subscribe(
    mailboxes: Mailboxes, client: str, task_ids: Collection[str], until: int, now: int
) -> Mailbox:
    """Open a mailbox for a client of alice's, and let it follow the tasks."""
    subscriber = Subscriber("alice", client)
    mailbox = mailboxes.open(subscriber, task_ids, until, SubscriptionLimits(), now)
    known = mailbox.delivered
    mailbox.delivered = {t: known[t] for t in task_ids if t in known}
    mailboxes.follow(mailbox, task_ids, until)
    return mailbox


def deliver(mailboxes: Mailboxes, change: Change, now: int = NOW) -> int:
    """Deliver a change, as the function does."""
    return push_change(mailboxes, change, now)


def content(mailboxes: Mailboxes, mailbox: Mailbox) -> list[Change]:
    """The changes in a mailbox."""
    return task_changes(mailboxes.entries(mailbox))


def released(mailboxes: Mailboxes, *task_ids: str, client: str = "me") -> Mailbox:
    """A mailbox that was just released by a subscription that delivered changes of these tasks."""
    mailbox = subscribe(mailboxes, "nobody", task_ids, SOON, NOW)
    mailbox.live = replace(mailbox.live, client=client)
    mailbox.delivered = dict.fromkeys(task_ids, 1)
    mailboxes.release(mailbox, NOW)
    return mailbox


def writes(aws: Calls) -> list[int]:
    """How many writes each batch had."""
    return [
        len(call.arguments["RequestItems"][MAILBOXES])
        for call in aws.made
        if call.operation == "batch_write_item"
    ]


def raw(pk: str) -> list[dict[str, Any]]:
    """The rows of a partition as DynamoDB keeps them."""
    items: list[dict[str, Any]] = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    return [item for item in items if item["pk"] == {"S": pk}]


# entries


def test_every_mailbox_of_a_task_gets_its_changes(mailboxes: Mailboxes) -> None:
    one = subscribe(mailboxes, "me", ["a", "b"], SOON, NOW)
    two = subscribe(mailboxes, "you", ["b"], SOON, NOW)
    assert deliver(mailboxes, a_change("a"), NOW + 5) == 1
    assert deliver(mailboxes, a_change("b")) == 2
    assert deliver(mailboxes, a_change("c")) == 0
    assert content(mailboxes, one) == [a_change("a"), a_change("b")]
    assert content(mailboxes, two) == [a_change("b")]
    assert [entry.arrived_at for entry in mailboxes.entries(one)] == [NOW + 5, NOW]


def test_a_mailbox_whose_time_is_up_gets_nothing(mailboxes: Mailboxes) -> None:
    """DynamoDB deletes what has expired hours or days late."""
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    assert deliver(mailboxes, a_change(revision=2), mailbox.live.until - 1) == 1
    assert deliver(mailboxes, a_change(revision=3), mailbox.live.until) == 0
    assert content(mailboxes, mailbox) == [a_change(revision=2)]


def test_a_change_that_is_delivered_twice_is_there_once(mailboxes: Mailboxes) -> None:
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    for _ in range(2):
        deliver(mailboxes, a_change())
    assert content(mailboxes, mailbox) == [a_change()]


def test_a_change_arrives_with_all_that_it_says(mailboxes: Mailboxes) -> None:
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    params = {"taskId": "a", "status": "completed", "result": {"text": "наполовину", "half": 0.5}}
    change = Change("a", 7, params, ("error",))
    deliver(mailboxes, change)
    assert content(mailboxes, mailbox) == [change]


def test_what_is_removed_is_gone_and_nothing_else(mailboxes: Mailboxes) -> None:
    mailbox = subscribe(mailboxes, "me", ["a", "b"], SOON, NOW)
    other = subscribe(mailboxes, "you", ["a", "b"], SOON, NOW)
    for change in (a_change("a", 2), a_change("a", 3), a_change("b", 2)):
        deliver(mailboxes, change)
    keys = [entry.key for entry in mailboxes.entries(mailbox)]
    mailboxes.remove(mailbox, [keys[0], keys[2]])
    assert content(mailboxes, mailbox) == [a_change("a", 3)]
    assert len(content(mailboxes, other)) == 3


def test_a_mailbox_of_many_pages_is_read_to_its_end(mailboxes: Mailboxes, aws: Calls) -> None:
    """A page of Query is 1 MB."""
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    for revision in range(2, 10):
        params = {"taskId": "a", "status": "working", "result": "x" * 200_000}
        deliver(mailboxes, Change("a", revision, params))
    aws.forget()
    changes = content(mailboxes, mailbox)
    assert [change.revision for change in changes] == list(range(2, 10))
    assert len(aws.operations) > 1


def test_changes_are_kept_in_their_order(mailboxes: Mailboxes) -> None:
    """A hundredth revision comes after the ninth."""
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    for revision in (100, 9, 10):
        deliver(mailboxes, a_change(revision=revision))
    assert [change.revision for change in content(mailboxes, mailbox)] == [9, 10, 100]


def test_the_mailboxes_of_a_task_are_read_consistently(mailboxes: Mailboxes, aws: Calls) -> None:
    """Race: who began to follow, and then read the row before the change, would miss it.

    moto has no other kind of reading, so this looks at the question.
    """
    deliver(mailboxes, a_change())
    (query,) = aws.made
    assert query.operation == "query"
    assert query.arguments["ConsistentRead"] is True


def test_dynamodb_may_remove_every_item_after_its_time(mailboxes: Mailboxes) -> None:
    """In whole seconds, and never before the time is up."""
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    deliver(mailboxes, a_change())
    mailboxes.release(mailbox, NOW)
    for pk, sk, until in [
        ("task#a", None, mailbox.follows_until),
        (f"mailbox#{mailbox.id}", None, mailbox.follows_until),
        (mailbox.caller, f"released#{mailbox.number}", NOW + REUSABLE_MS),
    ]:
        (row,) = [each for each in raw(pk) if sk is None or each["sk"] == {"S": sk}]
        expires = int(row["expiresAt"]["N"]) * 1000
        assert until < expires <= until + 120_000, pk
    (item,) = [each for each in raw(mailbox.caller) if each["sk"] == {"S": "mailboxes"}]
    assert int(item["expiresAt"]["N"]) * 1000 > NOW + HOUR, "no function runs for an hour"


# many writes


def test_writes_travel_in_batches_of_25(mailboxes: Mailboxes, aws: Calls) -> None:
    """DynamoDB API reference, "BatchWriteItem"."""
    tasks = [f"t{n}" for n in range(100)]
    mailbox = subscribe(mailboxes, "me", tasks, SOON, NOW)
    assert writes(aws) == [25, 25, 25, 25]
    for task in tasks[:30]:
        deliver(mailboxes, a_change(task))
    aws.forget()
    mailboxes.remove(mailbox, [entry.key for entry in mailboxes.entries(mailbox)])
    assert writes(aws) == [25, 5]
    assert content(mailboxes, mailbox) == []


def taking(at_most: int) -> Callable[..., Any]:
    """DynamoDB that has no room for more than some of a batch's writes."""

    def write(RequestItems: dict[str, list[Any]]) -> dict[str, Any]:
        requests = RequestItems[MAILBOXES]
        if at_most:
            taken = {MAILBOXES: requests[:at_most]}
            real("dynamodb").batch_write_item(RequestItems=taken)
        return {"UnprocessedItems": {MAILBOXES: requests[at_most:]} if requests[at_most:] else {}}

    return write


def test_writes_that_were_not_taken_are_repeated(
    mailboxes: Mailboxes, aws: Calls, naps: list[float]
) -> None:
    aws.instead["batch_write_item"] = taking(at_most=20)
    tasks = [f"t{n}" for n in range(60)]
    mailbox = subscribe(mailboxes, "me", tasks, SOON, NOW)
    assert writes(aws) == [25, 25, 20]
    assert sum(deliver(mailboxes, a_change(task)) for task in tasks) == 60
    assert len(content(mailboxes, mailbox)) == 60


def test_after_enough_attempts_dynamodb_is_busy(
    mailboxes: Mailboxes, aws: Calls, naps: list[float]
) -> None:
    """After pauses that grow: repeating at once is what it cannot bear."""
    aws.instead["batch_write_item"] = taking(at_most=0)
    with pytest.raises(Busy):
        subscribe(mailboxes, "me", ["a"], SOON, NOW)
    assert writes(aws) == [1] * MAX_WRITE_ATTEMPTS
    assert naps[0] == 0
    assert all(later > nap for nap, later in pairwise(naps))
    assert 1 < sum(naps) < 10


def test_attempts_are_counted_anew_for_each_batch_that_went_through(
    mailboxes: Mailboxes, aws: Calls, naps: list[float]
) -> None:
    subscribe(mailboxes, "me", [f"t{n}" for n in range(500)], SOON, NOW)
    aws.forget()
    turns = iter(range(10**6))

    def every_other(**arguments: Any) -> Any:
        return taking(at_most=25 if next(turns) % 2 else 5)(**arguments)

    aws.instead["batch_write_item"] = every_other
    subscribe(mailboxes, "you", [f"t{n}" for n in range(500)], SOON, NOW)
    assert len(writes(aws)) > 4 * MAX_WRITE_ATTEMPTS


# one subscription after the other


def test_a_first_subscription_has_a_new_mailbox(mailboxes: Mailboxes) -> None:
    one = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    two = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    assert one.id != two.id
    assert one.delivered == two.delivered == {}


def test_the_next_subscription_has_the_changes_since_the_last(mailboxes: Mailboxes) -> None:
    mailbox = released(mailboxes, "a", "b")
    deliver(mailboxes, a_change("a", 2), NOW + REUSABLE_MS - 1)
    again = subscribe(mailboxes, "me", ["a"], SOON + REUSABLE_MS, NOW + REUSABLE_MS - 1)
    assert again.id == mailbox.id
    assert again.delivered["a"] == 1
    assert content(mailboxes, again) == [a_change("a", 2)]


def test_a_mailbox_released_too_long_ago_is_not_taken_over(mailboxes: Mailboxes) -> None:
    mailbox = released(mailboxes, "a")
    again = subscribe(mailboxes, "me", ["a"], SOON + REUSABLE_MS, NOW + REUSABLE_MS)
    assert again.id != mailbox.id
    assert again.delivered == {}


def test_the_mailbox_of_another_owner_is_never_taken_over(mailboxes: Mailboxes) -> None:
    mailbox = released(mailboxes, "a", client="you")
    again = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    assert again.id != mailbox.id
    assert subscribe(mailboxes, "you", ["a"], SOON, NOW).id == mailbox.id


def test_a_mailbox_of_other_tasks_is_not_taken_over(mailboxes: Mailboxes) -> None:
    mailbox = released(mailboxes, "a")
    assert subscribe(mailboxes, "me", ["b"], SOON, NOW).id != mailbox.id
    assert subscribe(mailboxes, "me", ["a"], SOON, NOW).id == mailbox.id


def test_the_mailbox_with_the_most_tasks_in_common_is_taken_over(mailboxes: Mailboxes) -> None:
    """Whatever their numbers are."""
    one = released(mailboxes, "a", "x", "y", "z")
    two = released(mailboxes, "a", "b", "c")
    three = released(mailboxes, "b")
    opened = [subscribe(mailboxes, "me", ["a", "b", "c"], SOON, NOW).id for _ in range(3)]
    assert opened[0] == two.id
    assert set(opened[1:]) == {one.id, three.id}
    last = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    assert last.id not in {one.id, two.id, three.id}, "a new one"


def test_a_mailbox_is_taken_over_once(mailboxes: Mailboxes) -> None:
    mailbox = released(mailboxes, "a")
    assert subscribe(mailboxes, "me", ["a"], SOON, NOW).id == mailbox.id
    assert subscribe(mailboxes, "me", ["a"], SOON, NOW).id != mailbox.id


@pytest.mark.parametrize("spare", [False, True])
def test_two_subscriptions_at_once_have_a_mailbox_each(
    mailboxes: Mailboxes, aws: Calls, spare: bool
) -> None:
    """Race: both see what was left before either has taken it; each would get half of the entries.

    Whoever comes second takes the next best, if there is one.
    """
    mailbox = released(mailboxes, "a", "b")
    other = released(mailboxes, "a").id if spare else None
    taken: list[Mailbox] = []

    def meanwhile(**arguments: Any) -> Any:
        del aws.instead["update_item"]
        taken.append(subscribe(mailboxes, "me", ["a", "b"], SOON, NOW))
        return real("dynamodb").update_item(**arguments)

    aws.instead["update_item"] = meanwhile
    second = subscribe(mailboxes, "me", ["a", "b"], SOON, NOW)
    (first,) = taken
    assert first.id == mailbox.id
    assert second.id != mailbox.id
    assert (second.id == other) is spare
    deliver(mailboxes, a_change("b"))
    assert content(mailboxes, first) == content(mailboxes, second) == [a_change("b")]


def test_a_mailbox_that_is_taken_over_receives_new_tasks(
    mailboxes: Mailboxes,
) -> None:
    mailbox = released(mailboxes, "a")
    again = subscribe(mailboxes, "me", ["a", "b"], SOON, NOW)
    assert again.id == mailbox.id
    deliver(mailboxes, a_change("b"))
    assert content(mailboxes, again) == [a_change("b")]


def test_a_task_that_a_subscription_left_out_is_received_when_it_is_named_again(
    mailboxes: Mailboxes,
) -> None:
    """The middle subscription, which is long, prolongs its own tasks, and only those."""
    first = released(mailboxes, "a", "b")
    middle = subscribe(mailboxes, "me", ["a"], NOW + 800_000, NOW)
    assert middle.id == first.id
    later = NOW + 700_000
    mailboxes.release(middle, later)
    last = subscribe(mailboxes, "me", ["a", "b"], later + 25_000, later)
    assert deliver(mailboxes, a_change("b", 2), later) == 1
    assert content(mailboxes, last) == [a_change("b", 2)]


def test_a_chain_of_subscriptions_receives_without_a_gap(mailboxes: Mailboxes) -> None:
    """Buffered subscriptions of 25 seconds, with pauses; changes come all the time."""
    now, came, revision = NOW, [], 1

    def pass_time(seconds: int) -> None:
        nonlocal now, revision
        for _ in range(seconds):
            now += 1000
            revision += 1
            deliver(mailboxes, a_change("a", revision), now)

    for subscription in range(15):
        mailbox = subscribe(mailboxes, "me", ["a"], now + 25_000, now)
        pass_time(25 + subscription % 2 * GRACE_MS // 1000 - subscription % 2)
        entries = mailboxes.entries(mailbox)
        came += [change.revision for change in task_changes(entries)]
        mailboxes.remove(mailbox, [entry.key for entry in entries])
        mailbox.delivered["a"] = revision
        mailboxes.release(mailbox, now)
        pass_time(subscription % 3 * 29)
    left = mailboxes.entries(subscribe(mailboxes, "me", ["a"], now + 25_000, now))
    assert [*came, *(change.revision for change in task_changes(left))] == list(
        range(2, revision + 1)
    )


def test_a_chain_of_subscriptions_seldom_writes_its_tasks(mailboxes: Mailboxes, aws: Calls) -> None:
    """A hundred writes each time would be dearer than a hundred polls."""
    tasks = [f"t{n}" for n in range(100)]
    calls, now = [], NOW
    for _ in range(6):
        aws.forget()
        mailbox = subscribe(mailboxes, "me", tasks, now + 25_000, now)
        calls.append(len(writes(aws)))
        mailbox.delivered = dict.fromkeys(tasks, 1)
        now += 25_000
        mailboxes.release(mailbox, now)
    assert set(calls) == {4, 0}
    assert calls.count(0) >= 4


def test_a_mailbox_is_kept_as_long_as_it_receives_and_no_longer(mailboxes: Mailboxes) -> None:
    """A subscription may end a little late. The mailbox misses changes after its last moment."""
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    mailbox.delivered = {"a": 1}
    mailbox.follows_until = over = SOON + REUSABLE_MS
    late = SOON + GRACE_MS - 1
    mailboxes.release(mailbox, late)
    assert deliver(mailboxes, a_change(), over - 1) == 1
    assert subscribe(mailboxes, "me", ["a"], over + 25_000, over).id != mailbox.id


def test_a_mailbox_that_is_released_too_late_is_not_taken_over(mailboxes: Mailboxes) -> None:
    """It has stopped receiving, and may have missed a change."""
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    mailbox.delivered = {"a": 1}
    late = SOON + GRACE_MS
    assert deliver(mailboxes, a_change(), late) == 0
    mailboxes.release(mailbox, late)
    assert deliver(mailboxes, a_change(), late) == 0
    assert subscribe(mailboxes, "me", ["a"], late + 25_000, late).id != mailbox.id


def test_a_subscription_within_the_extra_time_writes_no_task_again(
    mailboxes: Mailboxes, aws: Calls
) -> None:
    mailbox = released(mailboxes, "a")
    aws.forget()
    mailbox = subscribe(mailboxes, "me", ["a"], SOON + EXTRA_RECEIVE_MS, NOW)
    assert writes(aws) == []
    mailbox.delivered = {"a": 1}
    mailboxes.release(mailbox, NOW)
    aws.forget()
    again = subscribe(mailboxes, "me", ["a"], SOON + EXTRA_RECEIVE_MS + 1, NOW)
    assert writes(aws) == [1]
    assert again.follows_until >= SOON + EXTRA_RECEIVE_MS + 1 + REUSABLE_MS


def test_a_mailbox_is_opened_and_released_in_few_calls(mailboxes: Mailboxes, aws: Calls) -> None:
    mailbox = subscribe(mailboxes, "me", ["a"], SOON, NOW)
    mailbox.delivered = {"a": 1}
    mailboxes.release(mailbox, NOW)
    opened = ["get_item", "update_item", "batch_write_item"]
    assert aws.operations == [*opened, "put_item", "update_item"]
    aws.forget()
    subscribe(mailboxes, "me", ["a"], SOON, NOW)
    assert aws.operations == ["get_item", "query", "update_item"]
