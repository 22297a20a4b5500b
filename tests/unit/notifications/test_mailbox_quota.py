"""How many live mailboxes a caller has, and how fast it subscribes, in moto's DynamoDB.

tests/campaigns/conditions/table.py names, for each condition of each write, the test here that
fails without it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.notifications.changes import Change, task_topic
from mcp_tasks.notifications.live_mailboxes import MAX_LIVE, CallerMailboxes, LiveMailbox
from mcp_tasks.notifications.mailbox import GRACE_MS, REUSABLE_MS, Mailbox, Subscriber
from mcp_tasks.notifications.mailbox_quota import MAX_ATTEMPTS, SubscriptionLimits
from mcp_tasks.notifications.mailboxes import Mailboxes
from mcp_tasks.server.methods.subscriptions import STREAM_END_MS
from mcp_tasks.tasks.errors import Busy
from mcp_tasks.tasks.quotas import QuotaExceeded
from mcp_tasks.tasks.rate_limit import RateLimit, RateLimited
from tests.unit.support.aws import MAILBOXES, Calls, create_mailboxes, real, refusing
from tests.unit.support.example_task import HOUR, NOW
from tests.unit.support.push import deliver, task_changes

SOON: Final = NOW + 25_000
TWO: Final = SubscriptionLimits(2)
THREE: Final = SubscriptionLimits(rate_limit=RateLimit(3))


class Caller:
    """A caller, and the mailboxes of its clients' subscriptions."""

    def __init__(self, aws: Calls, principal: str = "alice") -> None:
        self.aws = aws
        self.principal = principal
        self.mailboxes = Mailboxes(aws.client("dynamodb"), MAILBOXES)

    def open(
        self,
        client: str,
        *task_ids: str,
        limits: SubscriptionLimits = TWO,
        now: int = NOW,
        until: int | None = None,
    ) -> Mailbox:
        """Begin a subscription of a client; to one task when none is named."""
        wanted, end = task_ids or ("t",), until or now + 25_000
        subscriber = Subscriber(self.principal, client)
        mailbox = self.mailboxes.open(subscriber, wanted, end, limits, now)
        self.mailboxes.follow(mailbox, wanted, end)
        return mailbox

    def release(self, mailbox: Mailbox, now: int = NOW) -> Mailbox:
        """End a subscription that has delivered a change of each task."""
        mailbox.delivered = mailbox.delivered or {"t": 1}
        self.mailboxes.release(mailbox, now)
        return mailbox

    def released(self, client: str, now: int = NOW) -> Mailbox:
        """A mailbox that waits for its client's next subscription."""
        return self.release(self.open(client, now=now), now)

    def other(self) -> Caller:
        """Another instance of the function, to which nothing happens."""
        return Caller(Calls(), self.principal)

    def before(self, action: Callable[[], object], nth: int = 0) -> None:
        """Let something happen just before the nth write of the caller's item."""
        writes = count()

        def update(**arguments: Any) -> Any:
            if next(writes) == nth:
                action()
            return real("dynamodb").update_item(**arguments)

        self.aws.instead["update_item"] = update

    def receivers(self, now: int = NOW, task_id: str = "t") -> set[str]:
        """The ids of the mailboxes that get a task's changes."""
        return {each.mailbox_id for each in self.mailboxes.receivers([task_topic(task_id)], now)}


@pytest.fixture
def alice(aws: Calls) -> Caller:
    create_mailboxes()
    return Caller(aws)


def ids(*mailboxes: Mailbox) -> set[str]:
    return {mailbox.id for mailbox in mailboxes}


def items(kind: str) -> list[dict[str, Any]]:
    """The items of a kind, as DynamoDB keeps them."""
    found: list[dict[str, Any]] = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    return [item for item in found if item["pk"]["S"].startswith(kind)]


# how many


def test_no_more_open_subscriptions_than_the_limit(alice: Caller) -> None:
    one, two = alice.open("one"), alice.open("two")
    with pytest.raises(QuotaExceeded):
        alice.open("three")
    assert alice.receivers() == ids(one, two)
    assert alice.open("three", limits=SubscriptionLimits(3)).number == 2


def test_callers_do_not_share_a_quota(alice: Caller, aws: Calls) -> None:
    alice.open("one")
    alice.open("two")
    Caller(aws, "bob").open("one", "another task")
    assert len(alice.receivers()) == 2


def test_sessions_of_a_role_share_a_quota_where_it_is_the_roles(aws: Calls) -> None:
    """And no mailbox: each session has tasks of its own."""
    create_mailboxes()
    role = "arn:aws:sts::111122223333:assumed-role/deploy"
    sessions = [Caller(aws, f"{role}/{name}") for name in ("one", "two", "three")]
    for caller in sessions:
        caller.mailboxes = Mailboxes(real("dynamodb"), MAILBOXES, per_role=True)
    one, two, three = sessions
    first, second = one.open("one"), two.open("two", "u")
    with pytest.raises(QuotaExceeded):
        three.open("three")
    assert one.receivers(task_id="t") == ids(first)
    assert one.receivers(task_id="u") == ids(second)
    separate = Caller(aws, f"{role}/three")
    assert separate.open("three").caller not in {first.caller, second.caller}


def test_two_take_the_last_number_at_once(alice: Caller) -> None:
    """Each finds the limit not reached. One of them gets the number."""
    one = alice.open("one")
    taken: list[Mailbox] = []
    alice.before(lambda: taken.append(alice.other().open("two")))
    with pytest.raises(QuotaExceeded):
        alice.open("three")
    assert alice.receivers() == ids(one, *taken)


def test_two_are_a_callers_first_at_once(alice: Caller) -> None:
    """Each finds that there is no item yet. The second does not overwrite the first's mailbox."""
    first: list[Mailbox] = []
    alice.before(lambda: first.append(alice.other().open("one")))
    second = alice.open("two")
    assert alice.receivers() == ids(second, *first)
    assert len(alice.receivers()) == 2


def test_a_mailbox_is_closed_while_another_is_opened(alice: Caller) -> None:
    """The write of what was read before must not bring it back."""
    one = alice.open("one")
    alice.before(lambda: alice.other().mailboxes.close(one))
    two = alice.open("two")
    assert alice.receivers() == ids(two)


def test_a_closed_mailbox_frees_its_number(alice: Caller) -> None:
    one, two = alice.open("one"), alice.open("two")
    alice.mailboxes.close(one)
    assert alice.receivers() == ids(two)
    three = alice.open("three")
    assert one.number == three.number
    assert alice.receivers() == ids(two, three)


def test_a_mailbox_that_nobody_closes_stops_after_its_subscription(alice: Caller) -> None:
    """Its function died. No function lives for longer after a subscription's end."""
    mailbox = alice.open("one", until=SOON)
    assert alice.receivers(SOON + GRACE_MS - 1) == ids(mailbox)
    assert alice.receivers(SOON + GRACE_MS) == set()
    assert GRACE_MS >= STREAM_END_MS
    alice.open("two", until=SOON)
    late = SOON + GRACE_MS
    third, fourth = alice.open("three", now=late), alice.open("four", now=late)
    assert alice.receivers(late) == ids(third, fourth)


def test_without_a_limit_as_many_as_an_item_holds(alice: Caller) -> None:
    a_mailbox, new = (LiveMailbox("id", name, "tasks", SOON, "0f") for name in ("old", "new"))
    live = dict.fromkeys(range(MAX_LIVE - 1), a_mailbox)
    assert CallerMailboxes(True, live).number_for(new, 0, NOW, 0) == MAX_LIVE - 1
    live[MAX_LIVE - 1] = a_mailbox
    with pytest.raises(QuotaExceeded):
        CallerMailboxes(True, live).number_for(new, 0, NOW, 0)


def test_a_caller_may_have_more_than_it_may(alice: Caller) -> None:
    """A deployment has lowered the limit."""
    for n in range(4):
        alice.open(str(n), limits=SubscriptionLimits(4))
    with pytest.raises(QuotaExceeded):
        alice.open("five")


def test_ten_mailboxes_are_one_write_unit(alice: Caller) -> None:
    """Each begin and each end of a subscription writes all of them."""
    limits = SubscriptionLimits(10, RateLimit(300))
    for n in range(10):
        client = f"{n:08x}"
        alice.release(alice.open(client, *(f"c1-{n:032x}" for n in range(n)), limits=limits))
    (item,) = [each for each in items("caller#") if each["sk"] == {"S": "mailboxes"}]

    def size(value: dict[str, Any]) -> int:
        """Amazon DynamoDB developer guide, "DynamoDB item sizes and formats"."""
        ((kind, content),) = value.items()
        if kind == "M":
            return 3 + sum(1 + len(name) + size(each) for name, each in content.items())
        if kind == "BOOL":
            return 1
        return len(content) if kind == "S" else len(content) // 2 + 2

    total = sum(len(name) + size(value) for name, value in item.items())
    assert total <= 1024, total


# who gives way


def test_at_the_limit_the_oldest_released_mailbox_gives_way(alice: Caller) -> None:
    first, second = alice.released("one"), alice.released("two", NOW + 1)
    third = alice.open("three", now=NOW + 2)
    assert alice.receivers(NOW + 2) == ids(second, third)
    assert third.number == first.number
    fourth = alice.open("four", now=NOW + 3)
    assert alice.receivers(NOW + 3) == ids(third, fourth)


def test_a_released_mailbox_gives_way_before_an_open_one_of_the_same_client(
    alice: Caller,
) -> None:
    released, mine = alice.released("other"), alice.open("me")
    again = alice.open("me")
    assert alice.receivers() == ids(mine, again)
    assert released.number == again.number


def test_below_the_limit_a_client_may_have_two_subscriptions_to_the_same(alice: Caller) -> None:
    """Two programs of one user may look the same."""
    assert alice.receivers() == set()
    one, two = alice.open("me"), alice.open("me")
    assert alice.receivers() == ids(one, two)
    assert not replaced(alice, one)


def replaced(caller: Caller, mailbox: Mailbox) -> bool:
    """Whether a subscription learns that it was replaced."""
    caller.mailboxes.entries(mailbox)
    return mailbox.replaced


def test_at_the_limit_a_client_that_comes_back_replaces_itself(alice: Caller) -> None:
    """Its connection was lost, of which the function heard nothing. The order of the ids does not
    matter."""
    old, other = alice.open("me", "t", "u"), alice.open("other")
    new = alice.open("me", "u", "t")
    assert alice.receivers() == ids(other, new)
    assert [replaced(alice, each) for each in (old, other, new)] == [True, False, False]


def test_what_was_replaced_stays_replaced(alice: Caller) -> None:
    """Its subscription ends later, and must not take the number back."""
    old, other = alice.open("me"), alice.open("other")
    new = alice.open("me")
    alice.release(old)
    assert alice.receivers() == ids(other, new)
    alice.mailboxes.close(old)
    assert alice.receivers() == ids(other, new)
    alice.release(new)
    assert alice.open("me").id == new.id, "and what it delivered is not known for another's"


@pytest.mark.parametrize(
    ("client", "task_id"), [("stranger", "t"), ("me", "another task"), ("stranger", "u")]
)
def test_nobody_else_ends_an_open_subscription(alice: Caller, client: str, task_id: str) -> None:
    """Without authentication all callers are one, and many look the same. Who names the same tasks
    knows their ids."""
    mine, other = alice.open("me"), alice.open("other")
    with pytest.raises(QuotaExceeded):
        alice.open(client, task_id)
    assert alice.receivers() == ids(mine, other)


def test_the_items_of_a_task_do_not_accumulate(alice: Caller) -> None:
    """`deliver` reads all of them, and DynamoDB removes them days late."""
    for n in range(20):
        alice.released(str(n), NOW + n)
    assert len(items("task#")) == 2
    assert len(items("caller#")) == 3


def test_a_mailbox_does_not_get_what_one_of_its_number_followed(alice: Caller) -> None:
    only = SubscriptionLimits(1)
    alice.mailboxes.close(alice.open("one", "t", limits=only))
    second = alice.open("two", "u", limits=only)
    assert alice.receivers(task_id="t") == set()
    assert alice.receivers(task_id="u") == ids(second)


# one after the other


def test_a_released_mailbox_stops_after_its_minute(alice: Caller) -> None:
    """However long its subscription might have lasted."""
    mailbox = alice.release(alice.open("one", until=NOW + HOUR))
    assert alice.receivers(NOW + REUSABLE_MS - 1) == ids(mailbox)
    assert alice.receivers(NOW + REUSABLE_MS) == set()


def test_a_client_at_the_limit_takes_its_own_mailbox_over(alice: Caller) -> None:
    first, second = alice.released("one"), alice.released("two", NOW + 1)
    assert alice.open("one", now=NOW + 2).id == first.id
    assert alice.open("two", now=NOW + 2).id == second.id


def test_a_mailbox_is_replaced_while_its_client_comes_back(alice: Caller) -> None:
    """The client begins anew: what was replaced may have missed a change."""
    mailbox, other = alice.released("one"), alice.open("other")
    taken: list[Mailbox] = []
    alice.before(lambda: taken.append(alice.other().open("two")))
    with pytest.raises(QuotaExceeded):
        alice.open("one")
    assert alice.receivers() == ids(other, *taken)
    assert mailbox.id not in alice.receivers()


def test_a_mailbox_is_replaced_before_it_is_released(alice: Caller) -> None:
    """Race: its time was up, and its number is another's."""
    first = alice.open("one", until=SOON)
    alice.open("two", until=NOW + HOUR)
    late = SOON + GRACE_MS
    second = alice.open("three", now=late)
    assert second.number == first.number
    alice.release(first, late - 1)
    assert second.id in alice.receivers(late)
    assert first.id not in alice.receivers(late)


def test_what_failed_leaves_what_it_took_over(alice: Caller) -> None:
    """DynamoDB was busy when a subscription began: the next one misses nothing."""
    alice.released("me")
    again = alice.open("me")
    alice.mailboxes.give_up(again, NOW + 1)
    deliver(alice.mailboxes, Change("t", 2, {"taskId": "t", "status": "working"}), NOW + 2)
    third = alice.open("me", now=NOW + 3)
    assert (third.id, third.delivered) == (again.id, {"t": 1})
    entries = alice.mailboxes.entries(third)
    assert [change.revision for change in task_changes(entries)] == [2]


def test_what_failed_after_its_time_is_not_put_back(alice: Caller) -> None:
    """Race: its number is another's by then."""
    only = SubscriptionLimits(1)
    alice.release(alice.open("me", limits=only))
    again = alice.open("me", until=SOON, limits=only)
    late = SOON + GRACE_MS
    other = alice.open("other", now=late, limits=only)
    assert other.number == again.number
    alice.mailboxes.give_up(again, late)
    assert alice.receivers(late) == ids(other)


@pytest.mark.parametrize("removed", [False, True], ids=["new", "read"])
def test_what_failed_later_begins_anew(alice: Caller, removed: bool) -> None:
    """What was removed from a mailbox is not known to have arrived."""
    if removed:
        alice.released("me")
    mailbox = alice.open("me")
    if removed:
        alice.mailboxes.remove(mailbox, ["t#000000000001"])
    alice.mailboxes.give_up(mailbox, NOW)
    assert alice.receivers() == set()


# how fast


def test_so_many_at_once_and_then_evenly(alice: Caller) -> None:
    for n in range(3):
        alice.open(str(n), limits=THREE)
    for now, wait in ((NOW, 20_000), (NOW + 19_999, 1)):
        with pytest.raises(RateLimited) as refused:
            alice.open("more", limits=THREE, now=now)
        assert refused.value.retry_after_ms == wait
    alice.open("more", limits=THREE, now=NOW + 20_000)
    with pytest.raises(RateLimited):
        alice.open("more", limits=THREE, now=NOW + 20_000)


def test_a_client_that_goes_on_counts_as_well(alice: Caller) -> None:
    for _ in range(3):
        alice.release(alice.open("me", limits=THREE))
    with pytest.raises(RateLimited):
        alice.open("me", limits=THREE)
    assert len(alice.receivers()) == 1, "its mailbox waits for it"


def test_two_take_the_last_of_a_minute_at_once(alice: Caller) -> None:
    for n in range(2):
        alice.open(str(n), limits=THREE)
    alice.before(lambda: alice.other().open("three", limits=THREE))
    with pytest.raises(RateLimited):
        alice.open("four", limits=THREE)
    assert len(alice.receivers()) == 3


def test_two_go_ahead_of_the_clock_at_once(alice: Caller) -> None:
    alice.released("one")
    alice.before(lambda: alice.other().open("one", limits=THREE))
    alice.open("two", limits=THREE)
    (item,) = [each for each in items("caller#") if each["sk"] == {"S": "mailboxes"}]
    assert int(item["tat"]["N"]) == NOW + 2 * 20_000


def test_who_is_refused_writes_nothing(alice: Caller, aws: Calls) -> None:
    for n in range(2):
        alice.open(str(n))
    aws.forget()
    with pytest.raises(QuotaExceeded):
        alice.open("three")
    assert aws.operations == ["get_item"]
    aws.forget()
    alice.open("three", limits=SubscriptionLimits(9, RateLimit(1)))
    aws.forget()
    with pytest.raises(RateLimited):
        alice.open("four", limits=SubscriptionLimits(9, RateLimit(1)))
    assert aws.operations == ["get_item"]


# lost answers, and others that are faster


def test_a_mailbox_whose_answer_was_lost_is_one_mailbox(alice: Caller, aws: Calls) -> None:
    """botocore repeats the write, whose condition fails by then."""

    def twice(**arguments: Any) -> Any:
        real("dynamodb").update_item(**arguments)
        return real("dynamodb").update_item(**arguments)

    aws.instead["update_item"] = twice
    limits = SubscriptionLimits(1, RateLimit(2))
    mailbox = alice.open("me", limits=limits)
    assert alice.receivers() == ids(mailbox)
    del aws.instead["update_item"]
    alice.release(mailbox)
    aws.instead["update_item"] = twice
    assert alice.open("me", limits=limits).id == mailbox.id


def test_after_enough_attempts_others_were_always_faster(alice: Caller, aws: Calls) -> None:
    aws.instead["update_item"] = refusing("dynamodb", "ConditionalCheckFailedException")
    with pytest.raises(Busy):
        alice.open("me")
    assert aws.operations == ["get_item", *["update_item"] * MAX_ATTEMPTS]


@pytest.mark.parametrize("end", ["release", "close"])
def test_an_error_of_dynamodb_is_not_taken_for_a_refusal(
    alice: Caller, aws: Calls, end: str
) -> None:
    mailbox = alice.open("me")
    aws.instead["update_item"] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(ClientError, match="InternalServerError"):
        alice.open("other")
    with pytest.raises(ClientError, match="InternalServerError"):
        alice.release(mailbox) if end == "release" else alice.mailboxes.close(mailbox)


def test_an_item_that_expires_before_a_subscription_begins(alice: Caller) -> None:
    """Race: DynamoDB removed it since it was read."""
    mailbox = alice.open("one")
    key = {"pk": {"S": mailbox.caller}, "sk": {"S": "mailboxes"}}
    alice.before(lambda: real("dynamodb").delete_item(TableName=MAILBOXES, Key=key))
    assert alice.receivers() == ids(mailbox)
    other = alice.open("two")
    assert alice.receivers() == ids(other)


def test_many_begin_at_once(alice: Caller) -> None:
    """All clients of a deployment without authentication, when it has been replaced."""
    limits = SubscriptionLimits(30, RateLimit(300))
    begin = [f"client {n}" for n in range(30)]

    def begin_next() -> None:
        if begin:
            caller = alice.other()
            caller.before(begin_next)
            caller.open(begin.pop(), limits=limits)

    while begin:
        begin_next()
    assert len(alice.receivers()) == 30


def test_an_item_that_expired_is_not_brought_back(alice: Caller) -> None:
    """Race: DynamoDB removed it before the subscription ended. None that holds nothing is made."""
    mailbox = alice.open("me")
    key = {"pk": {"S": mailbox.caller}, "sk": {"S": "mailboxes"}}
    real("dynamodb").delete_item(TableName=MAILBOXES, Key=key)
    alice.mailboxes.close(mailbox)
    alice.mailboxes.release(mailbox, NOW)
    assert [each for each in items("caller#") if each["sk"] == key["sk"]] == []


def test_what_is_kept_names_nobody(alice: Caller) -> None:
    alice.released("her laptop")
    assert "alice" not in str(items(""))
