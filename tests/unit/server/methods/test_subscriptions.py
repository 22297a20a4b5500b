"""`subscriptions/listen` (basic/patterns/subscriptions.mdx; tasks.md, "Task Status Notifications").

Whatever is answered, `tests/wire.py` checks: acknowledged first, tagged, in order, ended.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from mcp_tasks.notifications.mailbox_quota import MailboxQuota
from mcp_tasks.notifications.server_changes import ServerChange
from mcp_tasks.server.methods.listen_filter import MAX_TASKS
from mcp_tasks.server.methods.subscriptions import (
    BUFFERED_MAX_BYTES,
    BUFFERED_MS,
    SUBSCRIBED_POLL_MS,
)
from mcp_tasks.tasks.caller_key import caller_key
from mcp_tasks.tasks.ids import new_task_id
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.task import ANYONE
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import MAILBOXES, TABLE, real, refusing
from tests.unit.support.example_task import a_task
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.push import Push
from tests.unit.support.push import deliver as deliver_change
from tests.unit.support.stack import LOGGER, TASKS, Answer, Stack
from tests.wire import LISTEN, SUBSCRIPTION_ID

REQUEST, METHOD, PARAMS, INTERNAL, CAPABILITY = -32600, -32601, -32602, -32603, -32021
ALICE, BOB = "arn:aws:iam::1:user/alice", "arn:aws:iam::1:user/bob"
HOUR: Final = 3_600_000
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
SECRET: Final = "hunter2"


class Listening:
    """A server, its tasks, and the functions that deliver their changes."""

    def __init__(self, stack: Stack, time: Time) -> None:
        self.stack = stack
        self.time = time
        self.push = Push(clock=time.read)
        self.rows = TaskTable(real("dynamodb"), TABLE)
        self.streamed = Streamed(time)

    def tasks(self, count: int, principal: str = ANYONE) -> list[str]:
        """The ids of so many new tasks."""
        task_ids = [new_task_id("c1") for _ in range(count)]
        now = self.time.now
        for task_id in task_ids:
            new = {"task_id": task_id, "created_at": now, "last_updated_at": now}
            self.rows.create(a_task(principal=principal, **new))
        return task_ids

    def report(self, task_id: str, message: str) -> None:
        """A change that is delivered at once."""
        self.rows.report(task_id, message, self.time.now)
        self.push.run()

    def complete(self, task_id: str, result: dict[str, Any] = DONE) -> None:
        """The last change."""
        self.rows.complete(task_id, result, self.time.now)
        self.push.run()

    def later(self, change: Callable[..., None], *arguments: Any) -> None:
        """Let something happen in the subscription's next pause."""
        self.time.meanwhile.append(lambda: change(*arguments))

    def live(self, principal: str = ANYONE) -> list[str]:
        """The ids of a caller's live mailboxes."""
        quota = MailboxQuota(real("dynamodb"), MAILBOXES)
        caller = caller_key("caller", principal)["pk"]["S"]
        return sorted(quota.live_ids(caller, self.time.now))

    def mailboxes(self, kind: str = "") -> list[str]:
        """The keys of what the mailboxes' table holds."""
        items = real("dynamodb").scan(TableName=MAILBOXES)["Items"]
        return sorted(item["pk"]["S"] for item in items if item["pk"]["S"].startswith(kind))


@pytest.fixture
def live(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Listening:
    """A server whose answers come as a whole."""
    time = Time()
    time.rule(monkeypatch)
    return Listening(stack, time)


@pytest.fixture(params=["buffered", "streamed"])
def each(live: Listening, request: pytest.FixtureRequest) -> Listening:
    """A server with each of the two response channels."""
    if request.param == "streamed":
        live.stack.way = live.streamed
    return live


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the function logs, at its most talkative."""
    text, level = io.StringIO(), LOGGER.log_level
    monkeypatch.setattr(LOGGER.registered_handler, "stream", text)
    LOGGER.setLevel(logging.DEBUG)
    yield text
    LOGGER.setLevel(level)


def accepted(answer: Answer) -> Any:
    """The acknowledged filter."""
    return answer.notifications[0]["params"]["notifications"]


def told(answer: Answer) -> list[dict[str, Any]]:
    """The tasks' states, without the tag."""
    found = [message["params"] for message in answer.notifications[1:]]
    return [{k: v for k, v in params.items() if k != "_meta"} for params in found]


def said(answer: Answer) -> list[tuple[str, str]]:
    """Task and status message of each state; its status where it has none."""
    return [(task["taskId"], task.get("statusMessage", task["status"])) for task in told(answer)]


# what is refused

NO_FILTERS: Final[list[Any]] = [None, [], "c1", 1, 1.5, True]


@pytest.mark.parametrize("task_ids", [[], [f"c1-{'0' * 32}"], None, "c1", [1]])
@pytest.mark.parametrize("capabilities", [{}, {"extensions": {}}, {"extensions": {TASKS: None}}])
def test_tasks_are_followed_by_clients_of_the_extension_only(
    each: Listening, task_ids: Any, capabilities: Any
) -> None:
    """tasks.md, "Task Status Notifications"; before anything else is said of the ids."""
    params = {"notifications": {"taskIds": task_ids}}
    answer = each.stack.post(LISTEN, params, capabilities=capabilities)
    assert (answer.status, answer.code, answer.notifications) == (400, CAPABILITY, [])
    assert answer.error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert each.stack.calls.made == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        *({"notifications": value} for value in NO_FILTERS),
        *({"notifications": {"taskIds": value}} for value in NO_FILTERS if value != []),
        *({"notifications": {"taskIds": [value]}} for value in NO_FILTERS if value != "c1"),
        {"notifications": {"taskIds": {}}},
        {"notifications": {"taskIds": [f"c1-{'0' * 32}", 1]}},
        {"notifications": {"taskIds": [f"c1-{'0' * 32}"] * (MAX_TASKS + 1)}},
        {"notifications": {"taskIds": [""] * (MAX_TASKS + 1)}},
    ],
    ids=lambda params: json.dumps(params)[:60],
)
def test_what_is_no_filter_is_invalid_and_costs_nothing(
    each: Listening, params: dict[str, Any]
) -> None:
    answer = each.stack.post(LISTEN, params)
    assert (answer.status, answer.code, answer.notifications) == (400, PARAMS, [])
    assert "notifications" in answer.error["message"]
    assert each.stack.calls.made == []


@pytest.mark.parametrize("accept", ["application/json", "application/*", "text/html"])
def test_a_subscription_needs_a_client_that_accepts_event_streams(
    each: Listening, accept: str
) -> None:
    """RFC 9110, section 15.5.7; there is no answer that is no stream."""
    task_ids = each.tasks(1)
    each.stack.calls.forget()
    answer = each.stack.listen(task_ids, headers={"Accept": accept})
    assert (answer.status, answer.code, answer.notifications) == (406, REQUEST, [])
    assert "text/event-stream" in answer.error["message"]
    assert each.stack.calls.made == []


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_an_older_revision_has_no_subscriptions(each: Listening, revision: str) -> None:
    answer = each.stack.post(LISTEN, {"notifications": {"taskIds": []}}, revision=revision)
    assert (answer.status, answer.code) == (200, METHOD)
    assert each.stack.calls.made == []


@pytest.mark.parametrize("request_id", [None, True, 1.5, [], {}])
def test_a_subscription_without_a_valid_id_is_refused(each: Listening, request_id: Any) -> None:
    answer = each.stack.listen([], request_id=request_id)
    assert (answer.status, answer.code) == (400, REQUEST)


# what is acknowledged


@pytest.mark.parametrize(
    "notifications",
    [
        {},
        {"toolsListChanged": False},
        {"resourceSubscriptions": [], "somethingNew": True},
        {"resourceSubscriptions": ["docs://nothing", "x" * 3000]},
    ],
)
def test_a_subscription_to_nothing_ends_at_once(
    each: Listening, notifications: dict[str, Any]
) -> None:
    """ "Acknowledgment": what a server does not support is omitted. Tasks are not even named."""
    answer = each.stack.post(LISTEN, {"notifications": notifications}, capabilities={})
    assert accepted(answer).get("resourceSubscriptions", []) == []
    assert told(answer) == []
    assert each.stack.calls.made == []
    assert each.time.waits == []
    with_tasks = each.stack.post(LISTEN, {"notifications": {**notifications, "taskIds": []}})
    assert accepted(with_tasks)["taskIds"] == []


HANDBOOK: Final = "docs://handbook"


def announce(each: Listening, method: str, uri: str | None = None, event_id: str = "1") -> None:
    """What `deliver` does with an event."""
    change = ServerChange(method, event_id, {"uri": uri} if uri else {})
    deliver_change(each.stack.deployment.mailboxes, change, each.time.now)


def test_changes_of_resources_and_lists_are_sent(each: Listening) -> None:
    wanted = {"resourceSubscriptions": [HANDBOOK, HANDBOOK], "toolsListChanged": True}
    tools = "notifications/tools/list_changed"

    def happen() -> None:
        announce(each, "notifications/resources/updated", "docs://chapters/1")
        announce(each, "notifications/prompts/list_changed")
        announce(each, "notifications/resources/updated", HANDBOOK)
        announce(each, "notifications/resources/updated", HANDBOOK)  # the same event again
        announce(each, tools)

    each.time.meanwhile.append(happen)
    answer = each.stack.post(LISTEN, {"notifications": wanted}, capabilities={})
    is_streamed = isinstance(each.stack.way, Streamed)
    lists = {"toolsListChanged": True} if is_streamed else {}
    assert accepted(answer) == {"resourceSubscriptions": [HANDBOOK], **lists}
    sent = [n for n in answer.notifications[1:] if n["method"] != "notifications/tasks"]
    told_of = ["notifications/resources/updated", *([tools] if is_streamed else [])]
    assert sorted(n["method"] for n in sent) == told_of
    assert all(n["params"]["_meta"] for n in sent)


def test_a_change_between_two_subscriptions_is_not_lost(each: Listening) -> None:
    wanted = {"notifications": {"resourceSubscriptions": [HANDBOOK]}}
    each.stack.post(LISTEN, wanted, capabilities={})
    announce(each, "notifications/resources/updated", HANDBOOK)
    answer = each.stack.post(LISTEN, wanted, capabilities={})
    assert [n["method"] for n in answer.notifications[1:]] == ["notifications/resources/updated"]
    again = each.stack.post(LISTEN, wanted, capabilities={})
    assert again.notifications[1:] == []


@pytest.mark.parametrize(
    "filters",
    [
        {"resourceSubscriptions": HANDBOOK},
        {"resourceSubscriptions": [1]},
        {"resourceSubscriptions": [HANDBOOK] * 101},
        {"toolsListChanged": "yes"},
    ],
)
def test_what_is_no_filter_is_refused(each: Listening, filters: dict[str, Any]) -> None:
    answer = each.stack.post(LISTEN, {"notifications": filters}, capabilities={})
    assert (answer.status, answer.code) == (400, -32602)


def test_an_id_that_comes_twice_is_followed_once(each: Listening) -> None:
    (task_id,) = each.tasks(1)
    each.complete(task_id)
    answer = each.stack.listen([task_id] * MAX_TASKS)
    assert accepted(answer) == {"taskIds": [task_id]}
    assert len(told(answer)) == 1


def test_as_many_tasks_are_followed_as_may_be(live: Listening) -> None:
    live.stack.way = Streamed(live.time, remaining_ms=0)
    task_ids = live.tasks(MAX_TASKS)
    answer = live.stack.listen(task_ids)
    assert accepted(answer) == {"taskIds": task_ids}
    assert sorted(task["taskId"] for task in told(answer)) == sorted(task_ids)


def test_not_a_word_is_said_of_what_the_caller_may_not_see(
    each: Listening, log: io.StringIO
) -> None:
    """tasks.md, "Security Considerations": nobody learns that a task exists."""
    (mine,) = each.tasks(1, ALICE)
    (bobs,) = each.tasks(1, BOB)
    each.time.now -= 2 * HOUR
    (expired,) = each.tasks(1, ALICE)
    each.time.now += 2 * HOUR
    hidden = {
        "unknown": f"c1-{'0' * 32}",
        "another's": bobs,
        "expired": expired,
        "another cell's": f"c2-{mine.partition('-')[2]}",
        "capitals": mine.upper(),
        "more": f"{mine}0",
        "a line": f"{mine}\n",
        "nothing": "",
        "long": "c1-" + "0" * 10_000,
    }
    LOGGER.clear_state()  # as before each request
    log.truncate(0)
    answer = each.stack.listen([*hidden.values(), mine], user_arn=ALICE)
    assert accepted(answer) == {"taskIds": [mine]}
    assert [task["taskId"] for task in told(answer)] == [mine]
    heard = json.dumps([answer.notifications, answer.message])
    for task_id in filter(None, hidden.values()):
        assert json.dumps(task_id)[1:-1] not in heard
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    audited = {line["task_id"]: "refused" in line for line in lines if line["message"] == "audit"}
    # What could be no task of this cell was not looked for.
    assert audited == {hidden["unknown"]: True, bobs: True, expired: True, mine: False}
    assert each.mailboxes("task#") == [f"task#{mine}"]


def test_ids_that_cannot_be_of_this_cell_cost_no_read(each: Listening) -> None:
    answer = each.stack.listen([f"c2-{'0' * 32}", "nonsense", f"c1-{'0' * 31}"])
    assert accepted(answer) == {"taskIds": []}
    assert each.stack.calls.made == []
    assert each.time.waits == []


def test_a_caller_with_no_task_to_follow_is_not_kept_waiting(each: Listening) -> None:
    answer = each.stack.listen([f"c1-{'0' * 32}"])
    assert accepted(answer) == {"taskIds": []}
    assert (each.time.waits, each.mailboxes("task#"), each.live()) == ([], [], [])


@pytest.mark.parametrize("request_id", ["1", "", "ä\n", 1, 0, -7, 2**53])
def test_every_message_is_tagged_with_the_id_in_its_type(each: Listening, request_id: Any) -> None:
    """ "Receiving Notifications": what `tests/wire.py` compares, type and all."""
    (task_id,) = each.tasks(1)
    each.complete(task_id)
    answer = each.stack.listen([task_id], request_id=request_id)
    assert len(answer.notifications) == 2
    assert answer.message["id"] == request_id
    assert answer.result["_meta"][SUBSCRIPTION_ID] == request_id
    assert type(answer.result["_meta"][SUBSCRIPTION_ID]) is type(request_id)


# what is sent


def test_each_state_is_what_a_poll_would_give(each: Listening) -> None:
    """tasks.md: "identical to what `tasks/get` would have returned", but for when to poll again."""
    task_ids = working, asking, completed, failed, cancelled = each.tasks(5)
    each.rows.report(working, "half-way", each.time.now)
    form = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    ask = open_ask("token", {"sure": FormQuestion("Sure?", form)})
    each.rows.ask(asking, ask, each.time.now)
    each.rows.complete(completed, DONE, each.time.now)
    each.rows.fail(failed, {"code": INTERNAL, "message": "It broke"}, each.time.now)
    each.rows.cancel(cancelled, each.time.now, ANYONE)
    polls = {task_id: each.stack.task(task_id) for task_id in task_ids}
    states = told(each.stack.listen(task_ids))
    assert len(states) == 5
    for state in states:
        poll = polls[state["taskId"]]
        intervals = state.pop("pollIntervalMs"), poll.pop("pollIntervalMs")
        over = state["status"] in ("completed", "failed", "cancelled")
        assert intervals == (2_000 if over else SUBSCRIBED_POLL_MS, 2_000)
        assert {**state, "resultType": "complete", "_meta": poll["_meta"]} == poll


def test_a_tool_that_wants_polling_slower_is_followed_no_faster(each: Listening) -> None:
    (task_id,) = each.tasks(1)
    real("dynamodb").update_item(
        TableName=TABLE,
        Key={"taskId": {"S": task_id}},
        UpdateExpression="SET pollIntervalMs = :slow",
        ExpressionAttributeValues={":slow": {"N": "900000"}},
    )
    (state,) = told(each.stack.listen([task_id]))
    assert state["pollIntervalMs"] == 900_000


def test_every_change_is_sent_in_order_until_all_tasks_have_ended(live: Listening) -> None:
    live.stack.way = live.streamed
    one, two = live.tasks(2)
    for change, *arguments in (
        (live.report, one, "a"),
        (live.report, two, "b"),
        (live.report, one, "c"),
        (live.complete, one),
        (live.report, two, "d"),
        (live.complete, two),
    ):
        live.later(change, *arguments)
    live.later(pytest.fail, "nothing is waited for at the end")
    changes = said(live.stack.listen([one, two]))
    assert sorted(changes[:2]) == sorted([(one, "working"), (two, "working")])
    assert changes[2:] == [
        *[(one, "a"), (two, "b"), (one, "c")],
        *[(one, "completed"), (two, "d"), (two, "completed")],
    ]
    # A mailbox is kept for tasks that go on; DynamoDB removes the rest.
    assert live.mailboxes("owner#") == []


def test_a_stream_brings_each_change_before_the_next_one_happens(live: Listening) -> None:
    live.stack.way = live.streamed
    (task_id,) = live.tasks(1)
    arrived: list[int] = []

    def next_one(message: str) -> None:
        arrived.append(live.streamed.taken.text.count("notifications/tasks"))
        live.report(task_id, message)

    for message in "abc":
        live.later(next_one, message)
        live.later(lambda: None)
    live.later(live.complete, task_id)
    live.stack.listen([task_id])
    assert arrived == [1, 2, 3]


def test_a_buffered_subscription_ends_at_the_first_change(live: Listening) -> None:
    """Nobody sees a change before the answer is whole."""
    one, two = live.tasks(2)
    began = live.time.now
    for _ in range(4):
        live.later(lambda: None)
    live.later(live.report, one, "a")
    live.later(pytest.fail, "the listen goes on")
    assert (one, "a") in said(live.stack.listen([one, two]))
    assert live.time.now - began < BUFFERED_MS
    assert len(live.time.waits) == 5


def test_a_quiet_subscription_ends_when_its_time_is_up(each: Listening) -> None:
    """ "Graceful Closure", and not a timeout of the gateway's."""
    (task_id,) = each.tasks(1)
    began = each.time.now
    assert said(each.stack.listen([task_id])) == [(task_id, "working")]
    held = each.time.now - began
    streaming = each.stack.way is each.streamed
    assert held == (each.streamed.remaining_ms - 10_000 if streaming else BUFFERED_MS)


def test_a_stream_that_says_nothing_is_kept_alive(live: Listening) -> None:
    live.stack.way = live.streamed
    live.streamed.remaining_ms = 10_000 + 40_000
    (task_id,) = live.tasks(1)
    live.stack.listen([task_id])
    kept = [piece for piece in live.streamed.taken.pieces if piece.startswith(b":")]
    assert kept == [b": keep-alive\n\n"] * 2


def test_a_task_that_expires_meanwhile_ends_the_subscription(live: Listening) -> None:
    live.stack.way = live.streamed
    live.streamed.remaining_ms = 2 * HOUR
    (task_id,) = live.tasks(1)

    def go_on() -> None:
        live.time.now += HOUR

    live.later(go_on)
    began = live.time.now
    assert said(live.stack.listen([task_id])) == [(task_id, "working")]
    assert live.time.now - began < HOUR + 60_000


@pytest.mark.parametrize("size", [200_000, 390_000])
def test_a_result_too_large_for_an_event_is_sent_from_its_row(each: Listening, size: int) -> None:
    (task_id,) = each.tasks(1)
    result = {"content": [{"type": "text", "text": "a" * size}]}
    each.later(each.complete, task_id, result)
    _, state = told(each.stack.listen([task_id]))
    assert state["result"] == {"resultType": "complete", **result}
    assert ("result" in each.push.heard[-1]) == (size == 200_000)


def test_events_that_are_repeated_and_reordered_make_no_difference(live: Listening) -> None:
    live.stack.way = live.streamed
    (task_id,) = live.tasks(1)

    def deliver(*revisions: int) -> None:
        by_revision = {event["_meta"]["mcp-tasks/revision"]: event for event in live.push.heard}
        live.push.events[:] = [by_revision[revision] for revision in revisions]
        live.push.deliver()

    def change() -> None:
        for message in "abc":
            live.rows.report(task_id, message, live.time.now)
        live.rows.complete(task_id, DONE, live.time.now)
        live.push.publish()
        deliver(4, 1, 3)

    live.later(change)
    live.later(deliver, 3, 2, 2, 1)
    live.later(deliver, 5, 4, 2, 5)
    live.later(pytest.fail, "all was told")
    messages = [message for _, message in said(live.stack.listen([task_id]))]
    assert messages == ["working", "a", "b", "c", "completed"]


# listening again and again


def test_nothing_is_missed_between_two_subscriptions(live: Listening) -> None:
    one, two = live.tasks(2)
    live.later(live.report, one, "a")
    first = said(live.stack.listen([one, two]))
    assert first[2:] == [(one, "a")]
    for message in "bcd":
        live.report(one, message)
    live.complete(two)
    live.time.waits.clear()
    second = said(live.stack.listen([one, two]))
    # A new subscription begins with the current states: that of `one` was sent before.
    changes = [change for change in second if change != (one, "a")]
    assert [message for task_id, message in changes if task_id == one] == ["b", "c", "d"]
    assert [message for task_id, message in changes if task_id == two] == ["completed"]
    assert live.time.waits == []
    live.later(live.complete, one)
    third = said(live.stack.listen([one]))
    assert third == [(one, "d"), (one, "completed")]


LARGE: Final = 30


@pytest.mark.parametrize("again", ["the rest", "all"])
@pytest.mark.parametrize("size", [10, 200_000])
def test_a_full_answer_is_continued_by_the_next_one(live: Listening, size: int, again: str) -> None:
    """Lambda answers 6 MB; whether or not the client leaves out the tasks whose end it knows."""
    task_ids = live.tasks(LARGE)
    for task_id in task_ids:
        text = task_id + "a" * size
        live.rows.complete(task_id, {"content": [{"type": "text", "text": text}]}, live.time.now)
    known: dict[str, str] = {}
    for _ in range(LARGE * size // BUFFERED_MAX_BYTES + 1):
        left = [task_id for task_id in task_ids if task_id not in known]
        answer = live.stack.listen(task_ids if again == "all" else left)
        assert len(json.dumps(answer.notifications)) < 1.5 * BUFFERED_MAX_BYTES
        for task in told(answer):
            known[task["taskId"]] = task["result"]["content"][0]["text"][: len(task["taskId"])]
    assert known == {task_id: task_id for task_id in task_ids}
    assert live.time.waits == []


def test_changes_that_fill_an_answer_are_continued_by_the_next_one(live: Listening) -> None:
    """Tasks that ask have not ended, so a client goes on to follow them."""
    task_ids = live.tasks(LARGE)
    text = {"type": "string", "description": "a" * 199_000}
    form = {"type": "object", "properties": {"name": text}}

    def ask_all() -> None:
        for task_id in task_ids:
            ask = open_ask("token", {"name": FormQuestion("Who?", form)})
            live.rows.ask(task_id, ask, live.time.now)
        live.push.run()

    live.later(ask_all)
    asked: set[str] = set()
    for _ in range(LARGE * 199_000 // BUFFERED_MAX_BYTES + 1):
        states = told(live.stack.listen(task_ids))
        asked |= {state["taskId"] for state in states if "inputRequests" in state}
    assert asked == set(task_ids)
    assert len(live.time.waits) == 1


def test_a_task_that_was_left_out_for_a_while_is_followed_again(live: Listening) -> None:
    """The mailbox is the same, and follows the task no longer than it was asked to at first."""
    one, two = live.tasks(2)
    for task_ids in ([one, two], [one], [one], [one], [one, two]):
        live.stack.listen(task_ids)
    changed = live.time.now + 22_000

    def change() -> None:
        if live.time.now < changed:
            live.time.meanwhile.append(change)
            return
        live.report(two, "a")
        live.report(two, "b")

    live.later(change)
    states = [*said(live.stack.listen([one, two])), *said(live.stack.listen([one, two]))]
    assert [message for task_id, message in states if task_id == two] == ["working", "a", "b", "b"]


# whose mailbox it is


def told_in_between(live: Listening, first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether a second listen goes on with the first one's mailbox: it hears of a state that had
    come and gone before it began."""
    (task_id,) = live.tasks(1)
    live.later(live.report, task_id, "heard")
    live.stack.listen([task_id], **first)
    (mailbox,) = live.live()
    live.report(task_id, "in between")
    live.report(task_id, "now")
    states = said(live.stack.listen([task_id], **second))
    assert states[-1] == (task_id, "now")
    again = (task_id, "in between") in states
    assert (live.live() == [mailbox]) == again
    return again


def listener(name: str = "one", version: str = "1", agent: str | None = "agent/1") -> Any:
    """Options of a request that say who the client is."""
    return {"client": {"name": name, "version": version}, "headers": {"User-Agent": agent}}


def test_the_same_client_goes_on_where_it_stopped(
    live: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told_in_between(live, {}, {})


@pytest.mark.parametrize(
    ("second", "same"),
    [
        (listener(), True),
        (listener(name="two"), False),
        (listener(version="2"), False),
        (listener(agent="agent/2"), False),
        (listener(agent=None), False),
    ],
    ids=["the same", "another name", "another version", "another agent", "no agent"],
)
def test_a_client_that_looks_the_same_gets_the_mailbox(
    live: Listening, monkeypatch: pytest.MonkeyPatch, second: dict[str, Any], same: bool
) -> None:
    listen = live.stack.listen

    def as_client(task_ids: list[str], client: dict[str, Any], **options: Any) -> Answer:
        notifications = {"taskIds": task_ids}
        params = {"notifications": notifications, "_meta": {CLIENT_INFO: client}}
        return live.stack.post(LISTEN, params, **options)

    monkeypatch.setattr(live.stack, "listen", as_client)
    assert told_in_between(live, listener(), second) == same
    monkeypatch.setattr(live.stack, "listen", listen)


def test_principals_never_share_a_mailbox(live: Listening) -> None:
    """Though nothing else tells their clients apart."""
    for user in (ALICE, BOB, ANYONE):
        live.stack.listen(live.tasks(1, user), user_arn=None if user == ANYONE else user)
    assert [len(live.live(user)) for user in (ALICE, BOB, ANYONE)] == [1, 1, 1]


def test_a_mailbox_names_nobody(live: Listening) -> None:
    live.stack.listen(live.tasks(1, ALICE), user_arn=ALICE, headers={"User-Agent": SECRET})
    stored = json.dumps(real("dynamodb").scan(TableName=MAILBOXES)["Items"])
    assert "alice" not in stored
    assert SECRET not in stored


def test_two_subscriptions_at_once_both_get_everything(live: Listening) -> None:
    """The second one cannot have the mailbox that the first one has taken over."""
    (task_id,) = live.tasks(1)
    live.later(live.report, task_id, "a")
    live.stack.listen([task_id])
    inner: list[Answer] = []

    def listen() -> None:
        live.time.meanwhile.insert(0, lambda: live.complete(task_id))
        inner.append(live.stack.listen([task_id]))

    live.later(listen)
    outer = live.stack.listen([task_id])
    assert said(outer)[-1] == said(inner[0])[-1] == (task_id, "completed")


# when something fails


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "AccessDenied"])
def test_a_mailbox_that_cannot_be_kept_does_not_spoil_the_answer(
    each: Listening, log: io.StringIO, code: str
) -> None:
    (task_id,) = each.tasks(1)
    each.stack.calls.instead["put_item"] = refusing("dynamodb", code, "PutItem")
    answer = each.stack.listen([task_id])
    assert said(answer) == [(task_id, "working")]
    assert answer.result["resultType"] == "complete"
    assert "Mailbox was not kept" in log.getvalue()
    assert each.live() == [], "nothing is left that costs"


@pytest.mark.parametrize(
    "operation", ["get_item", "update_item", "batch_get_item", "batch_write_item"]
)
def test_what_fails_before_the_acknowledgement_is_an_error_alone(
    each: Listening, operation: str
) -> None:
    (task_id,) = each.tasks(1)
    code = "ProvisionedThroughputExceededException"
    each.stack.calls.instead[operation] = refusing("dynamodb", code)
    answer = each.stack.listen([task_id])
    assert (answer.status, answer.code, answer.notifications) == (503, INTERNAL, [])
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Content-Type"] == "application/json"


def test_rows_that_dynamodb_goes_on_leaving_out_are_asked_for_later(
    each: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is no error, and holds nothing: the table is busy."""
    (task_id,) = each.tasks(1)
    monkeypatch.setattr("mcp_tasks.tasks.batch_read.time.sleep", lambda seconds: None)
    each.stack.calls.instead["batch_get_item"] = lambda RequestItems: {
        "Responses": {},
        "UnprocessedKeys": RequestItems,
    }
    answer = each.stack.listen([task_id])
    assert (answer.status, answer.code) == (503, INTERNAL)
    assert answer.headers["Retry-After"] == "1"


def fail(each: Listening, operation: str) -> None:
    """Let every call of this operation fail from now on."""
    code = "ProvisionedThroughputExceededException"
    each.stack.calls.instead[operation] = refusing("dynamodb", code)


@pytest.mark.parametrize("operation", ["query", "batch_get_item"])
def test_a_transient_error_only_delays(each: Listening, operation: str) -> None:
    """DynamoDB is busy, or a call takes too long: the next look into the mailbox finds it all."""
    (task_id,) = each.tasks(1)

    def mend() -> None:
        del each.stack.calls.instead[operation]
        each.complete(task_id)

    each.later(fail, each, operation)
    each.time.meanwhile += [lambda: None, mend]
    answer = each.stack.listen([task_id])
    assert said(answer) == [(task_id, "working"), (task_id, "completed")]


def test_a_lasting_error_ends_a_stream_with_an_error(live: Listening) -> None:
    """After a minute, without a graceful end. The client listens again, and gets the states."""
    live.stack.way = live.streamed
    live.streamed.remaining_ms = 300_000
    (task_id,) = live.tasks(1)
    live.later(fail, live, "query")
    begun = live.time.now
    answer = live.stack.listen([task_id])
    assert (answer.status, answer.code) == (200, INTERNAL)
    assert 60_000 <= live.time.now - begun < 65_000
    assert said(answer) == [(task_id, "working")]
    del live.stack.calls.instead["query"]
    live.complete(task_id)
    assert said(live.stack.listen([task_id])) == [(task_id, "completed")]


def test_the_log_counts_the_changes_sent_and_quotes_none(each: Listening, log: io.StringIO) -> None:
    (task_id,) = each.tasks(1)
    form = {"type": "object", "properties": {SECRET: {"type": "string"}}}
    ask = open_ask("token", {"name": FormQuestion(SECRET, form)})
    each.rows.ask(task_id, ask, each.time.now)
    each.push.run()
    each.later(each.complete, task_id, {"content": [{"type": "text", "text": SECRET}]})
    answer = each.stack.listen([task_id], request_id=SECRET)
    assert SECRET in json.dumps(told(answer))
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (line,) = [line for line in lines if line["message"] == "subscription ended"]
    assert (line["tasks"], line["changes_sent"]) == (1, len(told(answer)))
    assert SECRET not in log.getvalue()
