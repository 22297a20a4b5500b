"""One listen, apart from the wire (tasks.md, "Task Status Notifications").

Rows, stream and mailboxes are moto's. Time passes only while the listen waits, and what a test has
planned for a moment happens on the way.

What the module promises, and the test that fails without it (checked on a copy of the library):

    the mailbox opens before rows are read       test_a_change_as_the_listen_begins_is_not_missed
    no older state is told again                 test_what_is_told_again_is_not_older
    rows are read again                          test_an_event_that_was_lost_is_found_in_the_row
    a row may be further than its event          test_a_large_state_that_was_overtaken
    entries are removed once they were told      test_entries_are_removed_when_they_were_told
    entries that stay are not told again         test_entries_that_cannot_be_removed_are_told_once
    entries that wait are kept                   test_what_is_held_back_is_told_by_the_next_listen
    a mailbox is left for the next listen        test_nothing_is_missed_between_two_listens
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.notifications import subscription
from mcp_tasks.notifications.changes import Change
from mcp_tasks.notifications.mailboxes import Mailboxes
from mcp_tasks.notifications.reorder_buffer import GAP_TIMEOUT_MS, ROW_GAP_TIMEOUT_MS
from mcp_tasks.notifications.subscription import (
    KEEP_ALIVE_INTERVAL_MS,
    MAX_READ_INTERVAL_SECONDS,
    MIN_READ_INTERVAL_SECONDS,
    ROW_READ_INTERVAL_MS,
    Subscriber,
    Subscription,
)
from mcp_tasks.server.methods.task_wire_format import detailed_task
from mcp_tasks.tasks.questions import FormQuestion, open_ask
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

Told = tuple[str, int]
"""A task, and the revision that was told of it."""


@dataclass
class Clock:
    """Time that passes when somebody waits, and what is to happen on the way."""

    now: int = NOW
    waits: list[float] = field(default_factory=list)
    _plan: list[tuple[int, Callable[[], object]]] = field(default_factory=list)

    def __call__(self) -> int:
        return self.now

    def at(self, ms: int, *actions: Callable[[], object]) -> None:
        """Do something so many milliseconds after NOW, as soon as somebody waits that long."""
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
    """Tasks, and those who follow them."""

    calls: Calls
    rows: TaskTable
    mailboxes: Mailboxes
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        # The world's own writes are not counted with the listens' calls.
        self.backstage = TaskTable(real("dynamodb"), TABLE)
        self.push = Push(clock=self.clock)

    def create(self, *task_ids: str, **changes: Any) -> None:
        """Create tasks, and let it be heard."""
        for task_id in task_ids:
            self.backstage.create(a_task(task_id=task_id, **changes))
        self.push.run()

    def write(self, task_id: str, message: str = "on its way") -> None:
        """Change a task; nobody hears of it yet."""
        self.backstage.report(task_id, message, self.clock())

    def report(self, task_id: str, message: str = "on its way") -> None:
        """Change a task, and let it be heard."""
        self.write(task_id, message)
        self.push.run()

    def complete(self, task_id: str, result: dict[str, Any] = DONE) -> None:
        """Complete a task, and let it be heard."""
        self.backstage.complete(task_id, result, self.clock())
        self.push.run()

    def listen(self, *task_ids: str, ms: int = STREAMED, live: bool = True, **who: str) -> Listen:
        """Begin a listen."""
        following = Subscription(
            self.rows,
            self.mailboxes,
            detailed_task,
            Subscriber(who.get("principal", "alice"), who.get("owner", "her laptop")),
            clock=subscription.Clock(self.clock, self.clock.wait),
        )
        accepted = following.begin(task_ids, self.clock() + ms)
        return Listen(self, following, accepted, live)

    def entries(self) -> int:
        """How many entries lie in all mailboxes."""
        items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
        return sum(item["pk"]["S"].startswith("mailbox#") for item in items)

    def lose(self) -> None:
        """Publish what is in the stream, and lose what is on the bus."""
        self.push.publish()
        self.push.events.clear()


@dataclass
class Listen:
    """A listen that has begun."""

    world: World
    following: Subscription
    accepted: list[str]
    live: bool

    def __post_init__(self) -> None:
        self.changes: list[Change] = []
        self.silences = 0
        self._told = self.following.changes(self.live)

    def __iter__(self) -> Iterator[Change | None]:
        return self._told

    def hear(self) -> list[Told]:
        """Hear it to its end, and end it; what is told."""
        for change in self:
            if change is None:
                self.silences += 1
            else:
                self.changes.append(change)
        self.following.end()
        return [(change.task_id, change.revision) for change in self.changes]


@pytest.fixture
def world(aws: Calls) -> World:
    """Nothing yet."""
    client = aws.client("dynamodb")
    return World(aws, TaskTable(client, create_table()), Mailboxes(client, create_mailboxes()))


def of(task_id: str, told: list[Told]) -> list[int]:
    """What was told of one task."""
    return [revision for each, revision in told if each == task_id]


# what is accepted


def test_what_exists_and_is_the_clients_own_is_accepted(world: World) -> None:
    """In the order given, each once, and never a word on the others."""
    world.create(A, B)
    world.create(C, principal="mallory")
    unknown = "c1-" + "d" * 32

    def in_any_order(**arguments: Any) -> Any:
        answer = real("dynamodb").batch_get_item(**arguments)
        answer["Responses"][TABLE].sort(key=lambda item: item["taskId"]["S"])
        return answer

    world.calls.instead["batch_get_item"] = in_any_order
    assert world.listen(B, unknown, A, C, B).accepted == [B, A]


def test_what_has_expired_is_not_accepted(world: World) -> None:
    world.create(A)
    world.create(B, ttl_ms=5_000)
    world.clock.now += 5_000
    assert world.listen(A, B).accepted == [A]


@pytest.mark.parametrize("task_ids", [[], [C]])
def test_with_nothing_to_follow_it_is_over_at_once(world: World, task_ids: list[str]) -> None:
    world.create(C, principal="mallory")
    world.calls.forget()
    listen = world.listen(*task_ids)
    assert listen.accepted == []
    assert listen.hear() == []
    assert world.clock.waits == []
    assert world.calls.operations == ["batch_get_item"] * len(task_ids)


# the beginning


def test_the_current_states_come_first(world: World) -> None:
    world.create(A, B, C)
    world.report(A)
    world.complete(C)
    listen = world.listen(A, B, C, ms=1_000)
    assert sorted(listen.hear()) == [(A, 2), (B, 1), (C, 2)]
    assert {c.params["status"] for c in listen.changes} == {"working", "completed"}


def test_a_state_is_told_as_a_poll_would_tell_it(world: World) -> None:
    world.create(A)
    world.complete(A)
    world.clock.now += 30_000
    listen = world.listen(A)
    listen.hear()
    (change,) = listen.changes
    assert change.params == detailed_task(world.backstage.get(A, world.clock()), world.clock())


def test_a_change_as_the_listen_begins_is_not_missed(world: World) -> None:
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
    listen = world.listen(A)
    assert listen.hear() == [(A, 2)]
    assert world.clock.waits == []
    assert reads == 2, "to accept it, and after the mailbox was opened"


def test_a_change_before_the_subscription_that_is_heard_after_it(world: World) -> None:
    """The row is further than the entry; which of them is told first, it goes forwards."""
    world.create(A)
    world.write(A)
    world.push.publish()
    listen = world.listen(A, ms=5_000)
    world.push.deliver()
    told = listen.hear()
    assert told in ([(A, 2)], [(A, 1), (A, 2)])


def test_an_old_entry_does_not_hold_back_the_current_state(world: World) -> None:
    """The bus brought the first of three changes last, just after the subscription.

    What lies between it and the row's state was delivered before, and will not come any more.
    """
    world.create(A)
    for _ in range(3):
        world.write(A)
    world.push.publish()
    late = world.push.events.pop(0)
    world.push.deliver()
    listen = world.listen(A, ms=5_000)
    world.push.events.append(late)
    world.push.deliver()
    assert of(A, listen.hear())[-1] == 4


# while it lasts


def test_every_change_of_every_task_is_told_in_order_and_once(world: World) -> None:
    world.create(A, B)
    for n in range(1, 9):
        world.clock.at(n * 700, lambda: world.report(A))
        world.clock.at(n * 900, lambda: world.report(B))
    world.clock.at(9_000, lambda: world.complete(A))
    world.clock.at(9_500, lambda: world.complete(B))
    told = world.listen(A, B).hear()
    assert of(A, told) == of(B, told) == list(range(1, 11))
    assert world.clock.now < NOW + 9_500 + 2 * MAX_READ_INTERVAL_SECONDS * 1000


def test_what_the_bus_repeats_and_reorders_is_put_right(world: World) -> None:
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
    told = world.listen(A, B).hear()
    assert of(A, told) == [1, 2, 3, 4, 5]
    assert of(B, told) == [1, 2, 3, 4]


def test_it_ends_when_all_tasks_are_over_and_not_before(world: World) -> None:
    world.create(A, B)
    world.clock.at(2_000, lambda: world.complete(A))
    world.clock.at(7_000, lambda: world.complete(B))
    listen = world.listen(A, B)
    assert listen.hear()[-2:] == [(A, 2), (B, 2)]
    assert [change.params.get("result") is not None for change in listen.changes[-2:]] == [True] * 2
    assert NOW + 7_000 <= world.clock.now <= NOW + 8_000


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("ms", [1, 30, 10_000, BUFFERED])
def test_it_ends_when_its_time_is_up(world: World, live: bool, ms: int) -> None:
    world.create(A)
    assert world.listen(A, ms=ms, live=live).hear() == [(A, 1)]
    assert world.clock.now == NOW + ms


def test_a_live_listen_goes_on_after_news(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.report(A))
    world.clock.at(5_000, lambda: world.report(A))
    assert world.listen(A, ms=10_000).hear() == [(A, 1), (A, 2), (A, 3)]


def test_a_listen_that_nobody_sees_ends_with_the_first_news(world: World) -> None:
    """With everything that is there by then."""
    world.create(A, B)
    world.clock.at(3_000, lambda: world.report(A), lambda: world.report(B), lambda: world.report(A))
    world.clock.at(9_000, lambda: world.report(A))
    told = world.listen(A, B, ms=BUFFERED, live=False).hear()
    assert of(A, told) == [1, 2, 3]
    assert of(B, told) == [1, 2]
    assert world.clock.now <= NOW + 3_000 + MAX_READ_INTERVAL_SECONDS * 1000


def test_the_current_state_is_no_news(world: World) -> None:
    """Or each listen would be a poll."""
    world.create(A)
    world.listen(A, ms=BUFFERED, live=False).hear()
    began = world.clock.now
    assert world.listen(A, ms=BUFFERED, live=False).hear() == [(A, 1)]
    assert world.clock.now == began + BUFFERED


def test_what_changed_between_two_listens_is_news(world: World) -> None:
    world.create(A, B)
    world.listen(A, B, ms=BUFFERED, live=False).hear()
    world.report(A)
    began = world.clock.now
    told = world.listen(A, B, ms=BUFFERED, live=False).hear()
    assert sorted(told) == [(A, 2), (B, 1)]
    assert world.clock.now == began


def test_what_is_told_again_is_not_older(world: World) -> None:
    """Race: the task changes after its row was read, and the entry is there at once."""
    world.create(A)
    world.listen(A, ms=1_000).hear()
    reads = 0

    def read(**arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        answer = real("dynamodb").batch_get_item(**arguments)
        if reads == 2:  # the first is to accept the task
            world.report(A)
        return answer

    world.calls.instead["batch_get_item"] = read
    told = world.listen(A, ms=1_000).hear()
    assert told in ([(A, 1), (A, 2)], [(A, 2)])


def test_the_beat_slows_down_in_silence_and_is_fast_after_news(world: World) -> None:
    world.create(A)
    world.clock.at(10_000, lambda: world.report(A))
    world.listen(A, ms=15_000).hear()
    waits = world.clock.waits
    quickened = [n for n, (before, after) in enumerate(pairwise(waits)) if after < before]
    assert waits[0] == MIN_READ_INTERVAL_SECONDS
    assert max(waits) == MAX_READ_INTERVAL_SECONDS
    assert waits[quickened[0] + 1] == MIN_READ_INTERVAL_SECONDS
    assert len(quickened) <= 2, "once after the news, and perhaps for the very last moment"
    assert len(waits) < 30


def test_a_long_silence_is_broken(world: World) -> None:
    """None makes the wire write a comment; a change starts the silence anew."""
    world.create(A)
    world.clock.at(20_000, lambda: world.report(A))
    heard: list[tuple[int, bool]] = []
    for change in world.listen(A, ms=60_000):
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
    listen = world.listen(A)
    assert listen.hear() == [(A, 1), (A, 2)]
    assert listen.changes[-1].params["result"]["content"] == DONE["content"]
    assert world.clock.now <= NOW + ROW_READ_INTERVAL_MS + MAX_READ_INTERVAL_SECONDS * 1000


def test_an_outage_of_minutes_delays_and_loses_nothing(world: World) -> None:
    """What is found in the rows meanwhile waits for what comes when `publish` works again."""
    world.create(A)
    for second in range(10, 180, 7):
        world.clock.at(second * 1000, lambda: world.write(A))
    world.clock.at(180_000, lambda: world.push.run())
    world.clock.at(200_000, lambda: world.complete(A))
    told = world.listen(A).hear()
    assert told == [(A, revision) for revision in range(1, 27 + 1)]


def test_an_outage_that_does_not_end_is_passed_over(world: World) -> None:
    """A state that was only ever found in the row is told in the end."""
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.write(A))
    told = world.listen(A, ms=ROW_GAP_TIMEOUT_MS + 2 * ROW_READ_INTERVAL_MS)
    assert told.hear() == [(A, 1), (A, 3)]


def test_an_event_that_was_lost_among_others_delays_them_only(world: World) -> None:
    """What comes after it waits for it, and no longer than it could still come."""
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.lose())
    world.clock.at(5_000, lambda: world.report(A))
    world.clock.at(9_000, lambda: world.complete(A))
    assert world.listen(A).hear() == [(A, 1), (A, 3), (A, 4)]
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
    assert world.listen(A).hear() == [(A, 1), (A, 2), (A, 3)]
    assert NOW + 30_000 <= world.clock.now <= NOW + 32_000


@pytest.mark.parametrize("live", [True, False])
def test_an_end_behind_a_gap_is_told_within_the_patience(world: World, live: bool) -> None:
    """By one listen, or by one after the other."""
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.lose())
    world.clock.at(2_000, lambda: world.report(A))
    world.clock.at(3_000, lambda: world.complete(A))
    told: list[Told] = []
    while (A, 4) not in told:
        assert world.clock.now <= NOW + 2_000 + GAP_TIMEOUT_MS
        told += world.listen(A, ms=BUFFERED, live=live).hear()
    assert set(told) == {(A, 1), (A, 3), (A, 4)}
    assert world.clock.now <= NOW + 2_000 + GAP_TIMEOUT_MS + MAX_READ_INTERVAL_SECONDS * 1000


def test_a_result_that_was_left_out_comes_from_the_row(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.complete(A, LARGE))
    listen = world.listen(A)
    assert listen.hear() == [(A, 1), (A, 2)]
    assert listen.changes[-1].params["result"]["content"] == LARGE["content"]
    assert listen.changes[-1].left_out == ()
    assert world.clock.now < NOW + 3_000


def test_a_large_state_that_was_overtaken(world: World) -> None:
    """The row is further by the time it is read: that is told, and once."""
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
    listen = world.listen(A)
    assert listen.hear() == [(A, 1), (A, 3), (A, 4)]
    assert [change.params["status"] for change in listen.changes] == [
        "working",
        "working",
        "completed",
    ]


def test_a_task_that_expires_ends_the_listen(world: World) -> None:
    """Expired, it is as if it never was: nothing is told of it."""
    world.create(A, ttl_ms=30_000)
    assert world.listen(A).hear() == [(A, 1)]
    assert NOW + 30_000 <= world.clock.now <= NOW + 30_000 + ROW_READ_INTERVAL_MS + 1_000


def test_a_large_change_of_a_task_that_has_expired_is_not_told(world: World) -> None:
    world.create(A, ttl_ms=3_000)
    world.create(B)

    def complete_and_expire() -> None:
        world.complete(A, LARGE)
        world.clock.now = NOW + 3_000

    world.clock.at(2_900, complete_and_expire)
    world.clock.at(6_000, lambda: world.complete(B))
    told = world.listen(A, B).hear()
    assert sorted(told) == [(A, 1), (B, 1), (B, 2)]
    assert world.clock.now < NOW + 8_000, "and A does not hold back the end"


@pytest.mark.parametrize("operation", ["query", "batch_get_item"])
def test_an_error_of_dynamodb_is_for_the_caller(world: World, operation: str) -> None:
    """Who says it on the wire; the client listens again."""
    world.create(A)
    listen = world.listen(A)
    world.clock.at(1_000, lambda: world.report(A))
    told = iter(listen)
    assert next(told) is not None
    world.calls.instead[operation] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(ClientError, match="InternalServerError"):
        list(told)


def test_entries_that_cannot_be_removed_are_told_once(world: World) -> None:
    """To remove them saves money, and nothing else."""
    world.create(A)
    for ms in (1_000, 4_000):
        world.clock.at(ms, lambda: world.report(A))
    listen = world.listen(A, ms=6_000)
    world.calls.instead["batch_write_item"] = refusing("dynamodb", "InternalServerError")
    assert listen.hear() == [(A, 1), (A, 2), (A, 3)]
    assert world.entries() == 2
    del world.calls.instead["batch_write_item"]
    assert world.listen(A, ms=1_000).hear() == [(A, 3)]
    assert world.entries() == 0


# one listen after the other


@pytest.mark.parametrize("pause", [0, 50_000])
def test_nothing_is_missed_between_two_listens(world: World, pause: int) -> None:
    world.create(A, B)
    for n in range(8):
        world.clock.at(1_000 + n * 5_000, lambda: world.report(A))
        world.clock.at(1_500 + n * 6_000, lambda: world.report(B), lambda: world.report(B))
    world.clock.at(55_000, lambda: world.complete(A), lambda: world.complete(B))
    told: list[Told] = []
    following = [A, B]
    while following:
        listen = world.listen(*following, ms=BUFFERED, live=False)
        told += listen.hear()
        over = {change.task_id for change in listen.changes if change.terminal}
        following = [task_id for task_id in following if task_id not in over]
        if pause:
            world.clock.wait(pause / 1000)
    for task_id, last in ((A, 10), (B, 18)):
        assert list(dict.fromkeys(of(task_id, told))) == list(range(1, last + 1))
        assert of(task_id, told) == sorted(of(task_id, told))


def test_what_is_held_back_is_told_by_the_next_listen(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.write(A), lambda: world.push.publish())
    late: list[dict[str, Any]] = []
    world.clock.at(1_001, lambda: late.append(world.push.events.pop()))
    world.clock.at(2_000, lambda: world.report(A))
    assert world.listen(A, ms=5_000).hear() == [(A, 1)]
    assert world.entries() == 1
    world.push.events.extend(late)
    world.push.deliver()
    assert world.listen(A, ms=5_000).hear() == [(A, 2), (A, 3)]
    assert world.entries() == 0


def test_entries_are_removed_when_they_were_told(world: World) -> None:
    world.create(A, B)
    for ms in (1_000, 2_000, 3_000):
        world.clock.at(ms, lambda: world.report(A), lambda: world.report(B))
    world.listen(A, B, ms=10_000).hear()
    assert world.entries() == 0


def test_entries_that_are_too_late_are_removed_too(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.report(A))
    world.clock.at(5_000, lambda: world.push.events.extend(world.push.heard))
    world.clock.at(5_001, lambda: world.push.deliver())
    assert world.listen(A, ms=10_000).hear() == [(A, 1), (A, 2)]
    assert world.entries() == 0


def test_a_listen_that_is_cut_short_is_continued(world: World) -> None:
    """The wire stops when a message was large enough; the rest is for the next listen."""
    world.create(A)
    listen = world.listen(A)
    told = iter(listen)
    world.clock.at(1_000, *[lambda: world.report(A)] * 4)
    heard = [change.revision for change in (next(told) for _ in range(3)) if change]
    listen.following.end()
    assert heard == [1, 2, 3]
    assert world.listen(A, ms=5_000).hear() == [(A, 4), (A, 5)]


def test_a_listen_that_is_cut_short_goes_on_with_what_was_not_told(world: World) -> None:
    """The first states alone may be too much for one answer, and the client names all tasks again.

    What is told once more may not crowd out what was not told at all.
    """
    tasks = [f"c1-{n:032x}" for n in range(6)]
    world.create(*tasks)
    for task_id in tasks:
        world.complete(task_id)
    seen: set[str] = set()
    for _ in range(3):
        listen = world.listen(*tasks)
        told = iter(listen)
        seen |= {change.task_id for change in (next(told) for _ in range(2)) if change}
        listen.following.end()
    assert seen == set(tasks)


def test_a_listen_whose_tasks_are_over_leaves_nothing_behind(world: World) -> None:
    """There is no next one; and what DynamoDB removes in its own time costs nothing."""
    world.create(A)
    world.clock.at(1_000, lambda: world.complete(A))
    world.listen(A).hear()
    assert world.calls.operations.count("batch_write_item") == 1, "to subscribe"
    items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
    assert [item for item in items if item["pk"]["S"].startswith("owner#")] == []


def test_two_listens_of_a_client_at_once_hear_everything_each(world: World) -> None:
    world.create(A)
    first, second = world.listen(A, ms=10_000), world.listen(A, ms=20_000)
    world.clock.at(1_000, lambda: world.report(A))
    world.clock.at(2_000, lambda: world.report(A))
    assert first.hear() == [(A, 1), (A, 2), (A, 3)]
    assert second.hear()[-1] == (A, 3)


# what it costs


def test_a_quiet_beat_is_one_query(world: World) -> None:
    """Of the mailbox alone, however many tasks it follows; and entries are not read twice."""
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
    world.listen(*tasks, ms=BUFFERED).hear()
    beats = waits[1] - waits[0]
    assert beats > 10
    assert calls == ["query"] * beats


def test_what_is_not_followed_any_more_costs_no_reading(world: World) -> None:
    """The mailbox goes on receiving what the listen before this one followed."""
    world.create(A, B)
    world.listen(A, B, ms=5_000).hear()
    listen = world.listen(A, ms=10_000)
    began = world.clock.now - NOW
    world.clock.at(began + 1_000, lambda: world.report(B))
    assert listen.hear() == [(A, 1)]
    assert world.entries() == 0


def test_a_listen_reads_its_tasks_twice_and_then_seldom(world: World) -> None:
    world.create(A)
    world.calls.forget()
    world.listen(A, ms=65_000).hear()
    assert world.calls.operations.count("batch_get_item") == 2 + 1
    assert world.calls.operations.count("batch_write_item") == 1
    assert world.calls.operations[-1] == "put_item"


def test_the_mailbox_that_knows_most_is_taken_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that hung up is not noticed, so an older listen may end after a newer one."""
    ids = iter(["ff" * 16, "00" * 16])
    monkeypatch.setattr("mcp_tasks.notifications.mailboxes.secrets.token_hex", lambda _: next(ids))
    world.create(A)
    abandoned, second = world.listen(A, ms=20_000), world.listen(A, ms=50_000)
    unheard = iter(abandoned)
    next(unheard)

    def end() -> None:
        assert list(unheard) == []
        abandoned.following.end()

    world.clock.at(10_000, lambda: world.report(A))
    world.clock.at(20_000, end)
    world.clock.at(30_000, lambda: world.report(A))
    assert second.hear() == [(A, 1), (A, 2), (A, 3)]
    assert world.listen(A, ms=5_000).hear() == [(A, 3)]


def test_a_task_that_there_was_no_room_for_is_not_waited_for(world: World) -> None:
    """It changes before the next listen: its states from before the first one are in no entry."""
    world.create(A, B)
    world.report(A)
    world.report(B)
    listen = world.listen(A, B, ms=BUFFERED, live=False)
    first = next(iter(listen))
    assert first
    listen.following.end()
    other = B if first.task_id == A else A
    world.clock.wait(1)
    world.report(other)
    begun = world.clock.now
    assert (other, 3) in world.listen(A, B, ms=BUFFERED, live=False).hear()
    assert world.clock.now - begun < BUFFERED


def test_a_result_that_cannot_be_read_at_the_moment_is_told_later(world: World) -> None:
    world.create(A)
    world.clock.at(1_000, lambda: world.complete(A, LARGE))
    listen = world.listen(A)
    world.calls.instead["get_item"] = refusing("dynamodb", "ThrottlingException")
    world.clock.at(2_500, lambda: world.calls.instead.pop("get_item"))
    assert listen.hear() == [(A, 1), (A, 2)]
    assert listen.changes[-1].params["result"]["content"] == LARGE["content"]


def test_states_that_were_told_before_are_told_after_a_fault(world: World) -> None:
    """The rows were read, and the mailbox was not: the listen begins once more."""
    world.create(A, B)
    world.clock.at(1_000, lambda: world.complete(A))
    world.listen(A, B, ms=5_000).hear()
    again = world.listen(A, B, ms=5_000)
    world.calls.instead["query"] = refusing("dynamodb", "ThrottlingException")
    world.clock.at(6_000, lambda: world.calls.instead.pop("query"))
    assert sorted(again.hear()) == [(A, 2), (B, 1)]


@pytest.mark.parametrize("asks", [False, True])
def test_a_first_state_that_needs_the_client_is_not_kept_from_it(world: World, asks: bool) -> None:
    """An open question, or one of the tasks that is over: nobody waits 25 seconds to hear of it."""
    world.create(A, B)
    if asks:
        form = {"type": "object", "properties": {}}
        ask = open_ask("token", {"q": FormQuestion("?", form)})
        world.backstage.ask(B, ask, world.clock())
    else:
        world.complete(B)
    begun = world.clock.now
    told = world.listen(A, B, ms=BUFFERED, live=False).hear()
    assert sorted(told) == [(A, 1), (B, 2)]
    assert world.clock.now == begun
