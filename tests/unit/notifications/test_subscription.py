"""One subscription, apart from the wire (tasks.md, "Task Status Notifications").

Rows, stream and mailboxes are moto's. Time passes only while the subscription waits, and what a
test has planned for a moment happens meanwhile.

What the module promises, and the test that fails without it (checked on a copy of the library):

    the mailbox opens before rows are read   test_a_change_as_the_subscription_begins_is_not_missed
    no older state is delivered again        test_a_state_that_is_delivered_again_is_not_older
    rows are read again                      test_an_event_that_was_lost_is_found_in_the_row
    a row may have a later state             test_a_large_state_that_was_overtaken
    delivered entries are removed            test_entries_are_removed_when_they_were_delivered
    entries that stay are delivered once     test_entries_that_cannot_be_removed_are_delivered_once
    entries that wait are kept               test_a_change_that_is_held_back_is_delivered_later
    a mailbox is released for the next one   test_nothing_is_missed_between_two_subscriptions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.notifications.changes import Change
from mcp_tasks.notifications.clock import Clock as SubscriptionClock
from mcp_tasks.notifications.mailbox import Subscriber
from mcp_tasks.notifications.mailbox_quota import MailboxQuota, SubscriptionLimits
from mcp_tasks.notifications.mailboxes import Mailboxes
from mcp_tasks.notifications.reorder_buffer import GAP_TIMEOUT_MS, ROW_GAP_TIMEOUT_MS
from mcp_tasks.notifications.server_changes import ServerChange
from mcp_tasks.notifications.subscription import (
    KEEP_ALIVE_INTERVAL_MS,
    MAX_READ_INTERVAL_SECONDS,
    MIN_READ_INTERVAL_SECONDS,
    ROW_READ_INTERVAL_MS,
    Subscription,
)
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import (
    MAILBOXES,
    TABLE,
    Calls,
    create_mailboxes,
    create_table,
    real,
    refusing,
)
from tests.unit.support.example_task import NOW, a_task
from tests.unit.support.push import Push

A: Final = "c1-" + "a" * 32
B: Final = "c1-" + "b" * 32
C: Final = "c1-" + "c" * 32
BUFFERED: Final = 25_000
STREAMED: Final = 14 * 60_000
LARGE: Final = {"content": [{"type": "text", "text": "x" * 300_000}]}
FORM: Final = {"type": "object", "properties": {}}
ACCEPT: Final = {"action": "accept", "content": {}}
DONE: Final = {"content": [{"type": "text", "text": "done"}]}

Delivered = tuple[str, int]
"""A task, and a revision of it that was delivered."""


@dataclass
class Clock:
    """Time that passes only in waits, and what is to happen meanwhile."""

    now: int = NOW
    waits: list[float] = field(default_factory=list)
    _plan: list[tuple[int, Callable[[], object]]] = field(default_factory=list)

    def __call__(self) -> int:
        return self.now

    def at(self, ms: int, *actions: Callable[[], object]) -> None:
        """Do something so many milliseconds after NOW, in the wait that reaches that moment."""
        plan = [*self._plan, *((NOW + ms, action) for action in actions)]
        self._plan = sorted(plan, key=lambda planned: planned[0])

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds > 0
        self.waits.append(seconds)
        end = self.now + round(seconds * 1000)
        while self._plan and self._plan[0][0] <= end:
            moment, action = self._plan.pop(0)
            self.now = max(self.now, moment)
            action()
        self.now = max(self.now, end)


@dataclass
class World:
    """Tasks, and subscriptions to them."""

    calls: Calls
    rows: TaskTable
    mailboxes: Mailboxes
    clock: Clock = field(default_factory=Clock)
    limits: SubscriptionLimits = field(default_factory=SubscriptionLimits)

    def __post_init__(self) -> None:
        # The world's own writes are not counted with the subscriptions' calls.
        self.backstage = TaskTable(real("dynamodb"), TABLE)
        self.push = Push(clock=self.clock)

    def create(self, *task_ids: str, **changes: Any) -> None:
        """Create tasks, and deliver their changes."""
        for task_id in task_ids:
            self.backstage.create(a_task(task_id=task_id, **changes))
        self.push.run()

    def write(self, task_id: str, message: str = "on its way") -> None:
        """Change a task, without delivering the change."""
        self.backstage.report(task_id, message, self.clock())

    def report(self, task_id: str, message: str = "on its way") -> None:
        """Change a task, and deliver the change."""
        self.write(task_id, message)
        self.push.run()

    def complete(self, task_id: str, result: dict[str, Any] = DONE) -> None:
        """Complete a task, and deliver the change."""
        self.backstage.complete(task_id, result, self.clock())
        self.push.run()

    def subscribe(
        self, *task_ids: str, ms: int = STREAMED, live: bool = True, **who: str
    ) -> Running:
        """Begin a subscription."""
        subscriber = Subscriber(who.get("principal", "alice"), who.get("client", "her laptop"))
        subscription = Subscription(
            self.rows,
            self.mailboxes,
            detailed_task,
            subscriber.principal,
            clock=SubscriptionClock(self.clock, self.clock.wait),
        )
        until = self.clock() + ms
        mailbox = self.mailboxes.open(subscriber, task_ids, until, self.limits, self.clock())
        accepted = subscription.begin(mailbox, task_ids, until, all_ids)
        return Running(self, subscription, accepted, live)

    def entries(self) -> int:
        """How many entries lie in all mailboxes."""
        items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
        return sum(item["pk"]["S"].startswith("mailbox#") for item in items)

    def live(self) -> int:
        """How many mailboxes receive changes."""
        mailboxes = MailboxQuota(real("dynamodb"), MAILBOXES)
        caller = caller_key("caller", "alice")["pk"]["S"]
        return len(mailboxes.live_ids(caller, self.clock()))

    def lose(self) -> None:
        """Publish what is in the stream, and lose what is on the bus."""
        self.push.publish()
        self.push.events.clear()


def all_ids(tasks: Iterable[Task]) -> list[str]:
    """The subscriber may read each task."""
    return [task.task_id for task in tasks]


@dataclass
class Running:
    """A subscription that has begun."""

    world: World
    subscription: Subscription
    accepted: list[str]
    live: bool

    def __post_init__(self) -> None:
        self.changes: list[Change] = []
        self.silences = 0
        self._changes = self.subscription.changes(self.live)

    def __iter__(self) -> Iterator[Change | None]:
        for change in self._changes:
            assert not isinstance(change, ServerChange)
            yield change

    def receive(self) -> list[Delivered]:
        """Receive the changes to the end; returns their tasks and revisions."""
        for change in self:
            if change is None:
                self.silences += 1
            else:
                self.changes.append(change)
        self.subscription.end()
        return [(change.task_id, change.revision) for change in self.changes]


@pytest.fixture
def world(aws: Calls) -> World:
    """No tasks yet."""
    client = aws.client("dynamodb")
    return World(aws, TaskTable(client, create_table()), Mailboxes(client, create_mailboxes()))


def of(task_id: str, delivered: list[Delivered]) -> list[int]:
    """The revisions of one task that were delivered."""
    return [revision for each, revision in delivered if each == task_id]


# what is accepted


def test_existing_tasks_of_the_principal_are_accepted(world: World) -> None:
    """In the order given, and each once. Nothing is said of the other tasks."""
    world.create(A, B)
    world.create(C, principal="mallory")
    unknown = "c1-" + "d" * 32

    def in_any_order(**arguments: Any) -> Any:
        answer = real("dynamodb").batch_get_item(**arguments)
        answer["Responses"][TABLE].sort(key=lambda item: item["taskId"]["S"])
        return answer

    world.calls.instead["batch_get_item"] = in_any_order
    assert world.subscribe(B, unknown, A, C, B).accepted == [B, A]


def test_an_expired_task_is_not_accepted(world: World) -> None:
    world.create(A)
    world.create(B, ttl_ms=5_000)
    world.clock.now += 5_000
    assert world.subscribe(A, B).accepted == [A]


@pytest.mark.parametrize("task_ids", [["c1-" + "d" * 32], [C]])
def test_without_an_accepted_task_it_ends_at_once(world: World, task_ids: list[str]) -> None:
    world.create(C, principal="mallory")
    world.calls.forget()
    subscription = world.subscribe(*task_ids)
    assert subscription.accepted == []
    assert subscription.receive() == []
    assert world.clock.waits == []
    opened, closed = ["get_item", "update_item"], ["update_item"]
    assert world.calls.operations == [*opened, "batch_get_item", *closed]
    assert world.live() == 0


# the beginning


def test_the_current_states_come_first(world: World) -> None:
    world.create(A, B, C)
    world.report(A)
    world.complete(C)
    subscription = world.subscribe(A, B, C, ms=1_000)
    assert sorted(subscription.receive()) == [(A, 2), (B, 1), (C, 2)]
    assert {c.params["status"] for c in subscription.changes} == {"working", "completed"}


def test_a_state_is_what_a_poll_would_return(world: World) -> None:
    world.create(A)
    world.complete(A)
    world.clock.now += 30_000
    subscription = world.subscribe(A)
    subscription.receive()
    (change,) = subscription.changes
    assert change.params == detailed_task(world.backstage.get(A, world.clock()), world.clock())


def test_a_change_as_the_subscription_begins_is_not_missed(world: World) -> None:
    """Race: the task changes between the subscription and the reading of its row, and is delivered
    at that moment. Either the mailbox is there in time, or the row has the change."""
    world.create(A)
    write, reads = real("dynamodb").batch_write_item, 0

    def subscribe(**arguments: Any) -> Any:
        del world.calls.instead["batch_write_item"]
        world.complete(A)
        return write(**arguments)

    def read(**arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return real("dynamodb").batch_get_item(**arguments)

    world.calls.instead["batch_write_item"] = subscribe
    world.calls.instead["batch_get_item"] = read
    subscription = world.subscribe(A)
    assert subscription.receive() == [(A, 2)]
    assert world.clock.waits == []
    assert reads == 2, "to accept it, and after the mailbox was opened"


def test_a_change_before_the_subscription_that_arrives_after_it(world: World) -> None:
    """The row has a later state than the entry. No older state follows a newer one."""
    world.create(A)
    world.write(A)
    world.push.publish()
    subscription = world.subscribe(A, ms=5_000)
    world.push.deliver()
    delivered = subscription.receive()
    assert delivered in ([(A, 2)], [(A, 1), (A, 2)])


def test_an_old_entry_does_not_hold_back_the_current_state(world: World) -> None:
    """The bus brought the first of three changes last, just after the subscription.

    The changes between it and the row's state were delivered before, and will not come again.
    """
    world.create(A)
    for _ in range(3):
        world.write(A)
    world.push.publish()
    late = world.push.events.pop(0)
    world.push.deliver()
    subscription = world.subscribe(A, ms=5_000)
    world.push.events.append(late)
    world.push.deliver()
    assert of(A, subscription.receive())[-1] == 4


# while it lasts


def test_every_change_of_every_task_is_delivered_in_order_and_once(world: World) -> None:
    world.create(A, B)
    for n in range(1, 9):
        world.clock.at(n * 700, lambda: world.report(A))
        world.clock.at(n * 900, lambda: world.report(B))
    world.clock.at(9_000, lambda: world.complete(A))
    world.clock.at(9_500, lambda: world.complete(B))
    delivered = world.subscribe(A, B).receive()
    assert of(A, delivered) == of(B, delivered) == list(range(1, 11))
    assert world.clock.now < NOW + 9_500 + 2 * MAX_READ_INTERVAL_SECONDS * 1000


def test_repeated_and_reordered_events_are_put_in_order(world: World) -> None:
    world.create(A, B)

    def shuffled() -> None:
        for task_id in (A, B, A, A, B):
            world.write(task_id)
        world.push.publish()
        world.push.events.reverse()
        world.push.events.extend([world.push.events[0], world.push.events[3]])
        world.push.deliver()

    def again() -> None:
        for detail in world.push.heard[2:]:
            world.push.events.append(detail)
        world.push.deliver()

    world.clock.at(1_000, shuffled)
    world.clock.at(4_000, again)
    world.clock.at(5_000, lambda: world.complete(A), lambda: world.complete(B))
    delivered = world.subscribe(A, B).receive()
    assert of(A, delivered) == [1, 2, 3, 4, 5]
    assert of(B, delivered) == [1, 2, 3, 4]


def test_it_ends_when_all_tasks_are_terminal_and_not_before(world: World) -> None:
    world.create(A, B)
    world.clock.at(2_000, lambda: world.complete(A))
    world.clock.at(7_000, lambda: world.complete(B))
    subscription = world.subscribe(A, B)
    assert subscription.receive()[-2:] == [(A, 2), (B, 2)]
    assert [change.params.get("result") is not None for change in subscription.changes[-2:]] == [
        True
    ] * 2
    assert NOW + 7_000 <= world.clock.now <= NOW + 8_000


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("ms", [1, 30, 10_000, BUFFERED])
def test_it_ends_when_its_time_is_up(world: World, live: bool, ms: int) -> None:
    world.create(A)
    assert world.subscribe(A, ms=ms, live=live).receive() == [(A, 1)]
    assert world.clock.now == NOW + ms


def test_a_live_subscription_goes_on_after_news(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.report(A))
    world.clock.at(5_000, lambda: world.report(A))
    assert world.subscribe(A, ms=10_000).receive() == [(A, 1), (A, 2), (A, 3)]


def test_a_buffered_subscription_ends_with_the_first_news(world: World) -> None:
    """With every change that has arrived by then."""
    world.create(A, B)
    world.clock.at(3_000, lambda: world.report(A), lambda: world.report(B), lambda: world.report(A))
    world.clock.at(9_000, lambda: world.report(A))
    delivered = world.subscribe(A, B, ms=BUFFERED, live=False).receive()
    assert of(A, delivered) == [1, 2, 3]
    assert of(B, delivered) == [1, 2]
    assert world.clock.now <= NOW + 3_000 + MAX_READ_INTERVAL_SECONDS * 1000


def test_the_current_state_is_no_news(world: World) -> None:
    """Otherwise each subscription would be a poll."""
    world.create(A)
    world.subscribe(A, ms=BUFFERED, live=False).receive()
    began = world.clock.now
    assert world.subscribe(A, ms=BUFFERED, live=False).receive() == [(A, 1)]
    assert world.clock.now == began + BUFFERED


def test_a_change_between_two_subscriptions_is_news(world: World) -> None:
    world.create(A, B)
    world.subscribe(A, B, ms=BUFFERED, live=False).receive()
    world.report(A)
    began = world.clock.now
    delivered = world.subscribe(A, B, ms=BUFFERED, live=False).receive()
    assert sorted(delivered) == [(A, 2), (B, 1)]
    assert world.clock.now == began


def test_a_state_that_is_delivered_again_is_not_older(world: World) -> None:
    """Race: the task changes after its row was read, and the entry is there at once."""
    world.create(A)
    world.subscribe(A, ms=1_000).receive()
    reads = 0

    def read(**arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        answer = real("dynamodb").batch_get_item(**arguments)
        if reads == 2:  # the first is to accept the task
            world.report(A)
        return answer

    world.calls.instead["batch_get_item"] = read
    delivered = world.subscribe(A, ms=1_000).receive()
    assert delivered in ([(A, 1), (A, 2)], [(A, 2)])


def test_reads_slow_down_without_changes_and_are_fast_after_one(world: World) -> None:
    world.create(A)
    world.clock.at(10_000, lambda: world.report(A))
    world.subscribe(A, ms=15_000).receive()
    waits = world.clock.waits
    faster = [n for n, (before, after) in enumerate(pairwise(waits)) if after < before]
    assert waits[0] == MIN_READ_INTERVAL_SECONDS
    assert max(waits) == MAX_READ_INTERVAL_SECONDS
    assert waits[faster[0] + 1] == MIN_READ_INTERVAL_SECONDS
    assert len(faster) <= 2, "once after the news, and perhaps for the very last moment"
    assert len(waits) < 30


def test_a_keep_alive_is_due_after_a_time_without_changes(world: World) -> None:
    """For None, the server writes a comment. The interval begins anew after a change."""
    world.create(A)
    world.clock.at(20_000, lambda: world.report(A))
    heard: list[tuple[int, bool]] = []
    for change in world.subscribe(A, ms=60_000):
        heard.append((world.clock.now - NOW, change is None))
    spoken = [moment for moment, _ in heard]
    silences = [moment for moment, silent in heard if silent]
    assert KEEP_ALIVE_INTERVAL_MS <= silences[0] < 20_000
    assert silences[1] >= 20_000 + KEEP_ALIVE_INTERVAL_MS
    assert all(
        later - moment <= KEEP_ALIVE_INTERVAL_MS + MAX_READ_INTERVAL_SECONDS * 1000
        for moment, later in pairwise(spoken)
    )
    assert len(silences) == 3


# what went wrong on the way


def test_an_event_that_was_lost_is_found_in_the_row(world: World) -> None:
    world.create(A)
    world.clock.at(
        1_000, lambda: world.backstage.complete(A, DONE, world.clock()), lambda: world.lose()
    )
    subscription = world.subscribe(A)
    assert subscription.receive() == [(A, 1), (A, 2)]
    assert subscription.changes[-1].params["result"]["content"] == DONE["content"]
    assert world.clock.now <= NOW + ROW_READ_INTERVAL_MS + MAX_READ_INTERVAL_SECONDS * 1000


def test_an_outage_of_minutes_delays_and_loses_nothing(world: World) -> None:
    """A state that is found in a row waits for the changes that `publish` catches up on."""
    world.create(A)
    for second in range(10, 180, 7):
        world.clock.at(second * 1000, lambda: world.write(A))
    world.clock.at(180_000, lambda: world.push.run())
    world.clock.at(200_000, lambda: world.complete(A))
    delivered = world.subscribe(A).receive()
    assert delivered == [(A, revision) for revision in range(1, 27 + 1)]


def test_a_state_that_was_only_in_the_row_is_delivered_in_the_end(world: World) -> None:
    """After ROW_GAP_TIMEOUT_MS, the missing change is skipped."""
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.write(A))
    delivered = world.subscribe(A, ms=ROW_GAP_TIMEOUT_MS + 2 * ROW_READ_INTERVAL_MS)
    assert delivered.receive() == [(A, 1), (A, 3)]


def test_an_event_that_was_lost_among_others_delays_them_only(world: World) -> None:
    """Later changes wait for it, for GAP_TIMEOUT_MS."""
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.lose())
    world.clock.at(5_000, lambda: world.report(A))
    world.clock.at(9_000, lambda: world.complete(A))
    assert world.subscribe(A).receive() == [(A, 1), (A, 3), (A, 4)]
    assert world.clock.now >= NOW + 5_000 + GAP_TIMEOUT_MS
    assert world.clock.now <= NOW + 9_000 + GAP_TIMEOUT_MS + MAX_READ_INTERVAL_SECONDS * 1000


def test_an_event_that_is_late_holds_back_the_end(world: World) -> None:
    """A failing function is called again; meanwhile the task has ended."""
    world.create(A)
    late: list[dict[str, Any]] = []

    def fail() -> None:
        world.write(A)
        world.push.publish()
        late.append(world.push.events.pop())

    def repeat() -> None:
        world.push.events.extend(late)
        world.push.deliver()

    world.clock.at(1_000, fail)
    world.clock.at(2_000, lambda: world.complete(A))
    world.clock.at(30_000, repeat)
    assert world.subscribe(A).receive() == [(A, 1), (A, 2), (A, 3)]
    assert NOW + 30_000 <= world.clock.now <= NOW + 32_000


@pytest.mark.parametrize("live", [True, False])
def test_an_end_behind_a_gap_is_delivered_within_the_timeout(world: World, live: bool) -> None:
    """By one subscription, or by one after the other."""
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.lose())
    world.clock.at(2_000, lambda: world.report(A))
    world.clock.at(3_000, lambda: world.complete(A))
    delivered: list[Delivered] = []
    while (A, 4) not in delivered:
        assert world.clock.now <= NOW + 2_000 + GAP_TIMEOUT_MS
        delivered += world.subscribe(A, ms=BUFFERED, live=live).receive()
    assert set(delivered) == {(A, 1), (A, 3), (A, 4)}
    assert world.clock.now <= NOW + 2_000 + GAP_TIMEOUT_MS + MAX_READ_INTERVAL_SECONDS * 1000


def test_a_result_that_was_left_out_comes_from_the_row(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.complete(A, LARGE))
    subscription = world.subscribe(A)
    assert subscription.receive() == [(A, 1), (A, 2)]
    assert subscription.changes[-1].params["result"]["content"] == LARGE["content"]
    assert subscription.changes[-1].left_out == ()
    assert world.clock.now < NOW + 3_000


def test_a_large_state_that_was_overtaken(world: World) -> None:
    """The row has a later state when it is read. That state is delivered, and once."""
    world.create(A)
    ask = open_ask("token", {"sure": FormQuestion("?" * 300_000, FORM)})
    (key,) = ask.names

    def asked_and_answered() -> None:
        world.backstage.ask(A, ask, world.clock())
        task = world.backstage.get(A, world.clock())
        world.backstage.answer(task, {ask.id: {key: ACCEPT}}, world.clock())
        world.push.run()

    world.clock.at(1_000, asked_and_answered)
    world.clock.at(3_000, lambda: world.complete(A))
    subscription = world.subscribe(A)
    assert subscription.receive() == [(A, 1), (A, 3), (A, 4)]
    assert [change.params["status"] for change in subscription.changes] == [
        "working",
        "working",
        "completed",
    ]


def test_a_task_that_expires_ends_the_subscription(world: World) -> None:
    """No state of an expired task is delivered."""
    world.create(A, ttl_ms=30_000)
    assert world.subscribe(A).receive() == [(A, 1)]
    assert NOW + 30_000 <= world.clock.now <= NOW + 30_000 + ROW_READ_INTERVAL_MS + 1_000


def test_a_large_change_of_a_task_that_has_expired_is_not_delivered(world: World) -> None:
    world.create(A, ttl_ms=3_000)
    world.create(B)

    def complete_and_expire() -> None:
        world.complete(A, LARGE)
        world.clock.now = NOW + 3_000

    world.clock.at(2_900, complete_and_expire)
    world.clock.at(6_000, lambda: world.complete(B))
    delivered = world.subscribe(A, B).receive()
    assert sorted(delivered) == [(A, 1), (B, 1), (B, 2)]
    assert world.clock.now < NOW + 8_000, "and A does not hold back the end"


@pytest.mark.parametrize("operation", ["query", "batch_get_item"])
def test_an_error_of_dynamodb_is_for_the_caller(world: World, operation: str) -> None:
    """The server reports it to the client, which subscribes again."""
    world.create(A)
    subscription = world.subscribe(A)
    world.clock.at(1_000, lambda: world.report(A))
    delivered = iter(subscription)
    assert next(delivered) is not None
    world.calls.instead[operation] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(ClientError, match="InternalServerError"):
        list(delivered)


def test_entries_that_cannot_be_removed_are_delivered_once(world: World) -> None:
    """Removing them only saves reads."""
    world.create(A)
    for ms in (1_000, 4_000):
        world.clock.at(ms, lambda: world.report(A))
    subscription = world.subscribe(A, ms=6_000)
    world.calls.instead["batch_write_item"] = refusing("dynamodb", "InternalServerError")
    assert subscription.receive() == [(A, 1), (A, 2), (A, 3)]
    assert world.entries() == 2
    del world.calls.instead["batch_write_item"]
    assert world.subscribe(A, ms=1_000).receive() == [(A, 3)]
    assert world.entries() == 0


# one subscription after the other


@pytest.mark.parametrize("pause", [0, 50_000])
def test_nothing_is_missed_between_two_subscriptions(world: World, pause: int) -> None:
    world.create(A, B)
    for n in range(8):
        world.clock.at(1_000 + n * 5_000, lambda: world.report(A))
        world.clock.at(1_500 + n * 6_000, lambda: world.report(B), lambda: world.report(B))
    world.clock.at(55_000, lambda: world.complete(A), lambda: world.complete(B))
    delivered: list[Delivered] = []
    open_tasks = [A, B]
    while open_tasks:
        subscription = world.subscribe(*open_tasks, ms=BUFFERED, live=False)
        delivered += subscription.receive()
        ended = {change.task_id for change in subscription.changes if change.terminal}
        open_tasks = [task_id for task_id in open_tasks if task_id not in ended]
        if pause:
            world.clock.wait(pause / 1000)
    for task_id, last in ((A, 10), (B, 18)):
        assert list(dict.fromkeys(of(task_id, delivered))) == list(range(1, last + 1))
        assert of(task_id, delivered) == sorted(of(task_id, delivered))


def test_a_change_that_is_held_back_is_delivered_later(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.push.publish())
    late: list[dict[str, Any]] = []
    world.clock.at(1_001, lambda: late.append(world.push.events.pop()))
    world.clock.at(2_000, lambda: world.report(A))
    assert world.subscribe(A, ms=5_000).receive() == [(A, 1)]
    assert world.entries() == 1
    world.push.events.extend(late)
    world.push.deliver()
    assert world.subscribe(A, ms=5_000).receive() == [(A, 2), (A, 3)]
    assert world.entries() == 0


def test_entries_are_removed_when_they_were_delivered(world: World) -> None:
    world.create(A, B)
    for ms in (1_000, 2_000, 3_000):
        world.clock.at(ms, lambda: world.report(A), lambda: world.report(B))
    world.subscribe(A, B, ms=10_000).receive()
    assert world.entries() == 0


def test_entries_that_are_too_late_are_removed_too(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.report(A))
    world.clock.at(5_000, lambda: world.push.events.extend(world.push.heard))
    world.clock.at(5_001, lambda: world.push.deliver())
    assert world.subscribe(A, ms=10_000).receive() == [(A, 1), (A, 2)]
    assert world.entries() == 0


def test_a_subscription_that_is_cut_short_is_continued(world: World) -> None:
    """The server stops when a response is full; the next subscription gets the rest."""
    world.create(A)
    subscription = world.subscribe(A)
    delivered = iter(subscription)
    world.clock.at(1_000, *[lambda: world.report(A)] * 4)
    heard = [change.revision for change in (next(delivered) for _ in range(3)) if change]
    subscription.subscription.end()
    assert heard == [1, 2, 3]
    assert world.subscribe(A, ms=5_000).receive() == [(A, 4), (A, 5)]


def test_a_subscription_that_is_cut_short_goes_on_with_the_undelivered_tasks(world: World) -> None:
    """The first states alone may fill a response, and the client names all tasks again.

    States that are repeated must leave room for those that were not delivered yet.
    """
    tasks = [f"c1-{n:032x}" for n in range(6)]
    world.create(*tasks)
    for task_id in tasks:
        world.complete(task_id)
    seen: set[str] = set()
    for _ in range(3):
        subscription = world.subscribe(*tasks)
        delivered = iter(subscription)
        seen |= {change.task_id for change in (next(delivered) for _ in range(2)) if change}
        subscription.subscription.end()
    assert seen == set(tasks)


def test_a_subscription_whose_tasks_are_terminal_releases_no_mailbox(world: World) -> None:
    """There is no next one. DynamoDB removes the items by their TTL, at no cost."""
    world.create(A)
    world.clock.at(1_000, lambda: world.complete(A))
    world.subscribe(A).receive()
    assert world.calls.operations.count("batch_write_item") == 1, "to subscribe"
    assert world.live() == 0
    items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    assert [item for item in items if item["sk"]["S"].startswith("released#")] == []


def test_two_subscriptions_of_a_client_at_once_get_every_change_each(world: World) -> None:
    world.create(A)
    first, second = world.subscribe(A, ms=10_000), world.subscribe(A, ms=20_000)
    world.clock.at(1_000, lambda: world.report(A))
    world.clock.at(2_000, lambda: world.report(A))
    assert first.receive() == [(A, 1), (A, 2), (A, 3)]
    assert second.receive()[-1] == (A, 3)


# what it costs


def test_a_read_without_changes_is_one_query(world: World) -> None:
    """Only the mailbox is read, however many tasks there are; and no entry is read twice."""
    tasks = [f"c1-{n:032x}" for n in range(30)]
    world.create(*tasks)
    world.clock.at(1_000, lambda: world.report(tasks[0]))
    calls: list[str] = []
    waits: list[int] = []
    world.clock.at(
        2_500, lambda: waits.append(len(world.clock.waits)), lambda: world.calls.forget()
    )
    world.clock.at(
        15_000,
        lambda: waits.append(len(world.clock.waits)),
        lambda: calls.extend(world.calls.operations),
    )
    world.subscribe(*tasks, ms=BUFFERED).receive()
    reads = waits[1] - waits[0]
    assert reads > 10
    assert calls == ["query"] * reads


def test_entries_of_tasks_that_were_left_out_are_removed(world: World) -> None:
    """The mailbox goes on receiving the changes of the previous subscription's tasks."""
    world.create(A, B)
    world.subscribe(A, B, ms=5_000).receive()
    subscription = world.subscribe(A, ms=10_000)
    began = world.clock.now - NOW
    world.clock.at(began + 1_000, lambda: world.report(B))
    assert subscription.receive() == [(A, 1)]
    assert world.entries() == 0


def test_a_subscription_reads_its_tasks_twice_and_then_seldom(world: World) -> None:
    world.create(A)
    world.calls.forget()
    world.subscribe(A, ms=65_000).receive()
    assert world.calls.operations.count("batch_get_item") == 2 + 1
    assert world.calls.operations.count("batch_write_item") == 1
    assert world.calls.operations[-2:] == ["put_item", "update_item"]


def test_the_mailbox_with_the_latest_revisions_is_taken_over(world: World) -> None:
    """A client that hung up is not noticed, so an older subscription may end after a newer one."""
    world.create(A)
    abandoned, second = world.subscribe(A, ms=20_000), world.subscribe(A, ms=50_000)
    changes = iter(abandoned)
    next(changes)

    def end() -> None:
        assert list(changes) == []
        abandoned.subscription.end()

    world.clock.at(10_000, lambda: world.report(A))
    world.clock.at(20_000, end)
    world.clock.at(30_000, lambda: world.report(A))
    assert second.receive() == [(A, 1), (A, 2), (A, 3)]
    assert world.subscribe(A, ms=5_000).receive() == [(A, 3)]


def test_a_task_that_did_not_fit_is_not_waited_for(world: World) -> None:
    """It changes before the next subscription; no entry has its states from before the first."""
    world.create(A, B)
    world.report(A)
    world.report(B)
    subscription = world.subscribe(A, B, ms=BUFFERED, live=False)
    first = next(iter(subscription))
    assert first
    subscription.subscription.end()
    other = B if first.task_id == A else A
    world.clock.wait(1)
    world.report(other)
    begun = world.clock.now
    assert (other, 3) in world.subscribe(A, B, ms=BUFFERED, live=False).receive()
    assert world.clock.now - begun < BUFFERED


def test_a_result_that_cannot_be_read_at_the_moment_is_delivered_later(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.complete(A, LARGE))
    subscription = world.subscribe(A)
    world.calls.instead["get_item"] = refusing("dynamodb", "ThrottlingException")
    world.clock.at(2_500, lambda: world.calls.instead.pop("get_item"))
    assert subscription.receive() == [(A, 1), (A, 2)]
    assert subscription.changes[-1].params["result"]["content"] == LARGE["content"]


def test_states_that_were_delivered_before_are_delivered_after_an_error(world: World) -> None:
    """The rows were read, and the mailbox was not: the first read is repeated."""
    world.create(A, B)
    world.clock.at(1_000, lambda: world.complete(A))
    world.subscribe(A, B, ms=5_000).receive()
    again = world.subscribe(A, B, ms=5_000)
    world.calls.instead["query"] = refusing("dynamodb", "ThrottlingException")
    world.clock.at(6_000, lambda: world.calls.instead.pop("query"))
    assert sorted(again.receive()) == [(A, 2), (B, 1)]


@pytest.mark.parametrize("asks", [False, True])
def test_a_first_state_that_needs_the_client_is_delivered_at_once(world: World, asks: bool) -> None:
    """An open question, or a terminal task: the client does not wait 25 seconds for it."""
    world.create(A, B)
    if asks:
        form = {"type": "object", "properties": {}}
        ask = open_ask("token", {"q": FormQuestion("?", form)})
        world.backstage.ask(B, ask, world.clock())
    else:
        world.complete(B)
    begun = world.clock.now
    delivered = world.subscribe(A, B, ms=BUFFERED, live=False).receive()
    assert sorted(delivered) == [(A, 1), (B, 2)]
    assert world.clock.now == begun
