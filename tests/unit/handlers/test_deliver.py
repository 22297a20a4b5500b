"""The function `deliver`: from the queue's events to the mailboxes of those who follow the task."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks import metrics
from mcp_tasks.notifications.clock import Clock
from mcp_tasks.notifications.delivery import MAX_FAILURES
from mcp_tasks.notifications.mailbox import Mailbox, Subscriber
from mcp_tasks.notifications.mailbox_quota import SubscriptionLimits
from mcp_tasks.notifications.mailboxes import Mailboxes
from mcp_tasks.tasks.task import now_ms
from tests.paths import EVENTS
from tests.unit.support.aws import MAILBOXES, Calls, create_mailboxes, real, refusing
from tests.unit.support.cloud import Context
from tests.unit.support.emf import metrics_in
from tests.unit.support.push import task_changes

TASK: Final = "c1-0123456789abcdef0123456789abcdef"

FUNCTION_MS: Final = 5_000
"""The function's timeout (`infra/deliver.py`)."""

Handler = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def mailbox(aws: Calls) -> Mailbox:
    """The mailbox of somebody who follows the task."""
    create_mailboxes()
    return subscribe("alice", TASK)


def subscribe(principal: str, task_id: str, client: str = "her laptop") -> Mailbox:
    """A mailbox of a caller's client that follows one of its tasks."""
    mailboxes, now = Mailboxes(real("dynamodb"), MAILBOXES), now_ms()
    until = now + 60_000
    subscriber = Subscriber(principal, client)
    mailbox = mailboxes.open(subscriber, [task_id], until, SubscriptionLimits(), now)
    mailboxes.follow(mailbox, [task_id], until)
    return mailbox


class Limited(Context):
    """A call that has so much time left, which passes only in pauses."""

    def __init__(self, remaining_ms: int) -> None:
        self.remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@dataclass
class Time:
    """A clock that pauses move, and calls to DynamoDB that take longer than usual."""

    now: int = field(default_factory=now_ms)
    pauses: list[float] = field(default_factory=list)

    def read(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += round(seconds * 1000)


@pytest.fixture
def time(deliver: Handler, monkeypatch: pytest.MonkeyPatch) -> Time:
    """The function's clock."""
    found = Time()
    module = sys.modules["deliver.handler"]
    monkeypatch.setattr(module, "now_ms", found.read)
    run = partial(module.deliver_all, clock=Clock(found.read, found.sleep))
    monkeypatch.setattr(module, "deliver_all", run)
    return found


@pytest.fixture
def deliver(mailbox: Mailbox, aws: Calls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handler]:
    """The function as it is loaded."""
    monkeypatch.setenv("MAILBOXES_TABLE", MAILBOXES)
    sys.modules.pop("deliver.handler", None)
    module = importlib.import_module("deliver.handler")
    monkeypatch.setattr(module.deployment, "_client", lambda service, config: aws.client(service))
    yield lambda event: module.handler(event, Limited(FUNCTION_MS))
    del sys.modules["deliver.handler"]


@pytest.fixture
def log(deliver: Handler, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the function logs."""
    text = io.StringIO()
    handler = sys.modules["deliver.handler"].logger.registered_handler
    monkeypatch.setattr(handler, "stream", text)
    return text


def sample(*bodies: str | None) -> dict[str, Any]:
    """The queue's event in events/, once for each body, with the bodies that are given."""
    event: dict[str, Any] = json.loads((EVENTS / "deliver.json").read_text())
    (record,) = event["Records"]
    event["Records"] = [
        {**record, "messageId": str(n), "body": record["body"] if body is None else body}
        for n, body in enumerate(bodies)
    ]
    return event


def failed(answer: dict[str, Any]) -> list[str]:
    """The messages that the queue is to bring again."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def content(mailbox: Mailbox) -> list[tuple[str, int, str]]:
    """The changes in the mailbox: whose, which, and to what."""
    entries = Mailboxes(real("dynamodb"), MAILBOXES).entries(mailbox)
    changes = task_changes(entries)
    return [(change.task_id, change.revision, change.params["status"]) for change in changes]


def test_an_event_is_put_into_the_mailboxes(deliver: Handler, mailbox: Mailbox) -> None:
    before = now_ms()
    assert deliver(sample(None)) == {"batchItemFailures": []}
    assert content(mailbox) == [(TASK, 2, "completed")]
    (entry,) = Mailboxes(real("dynamodb"), MAILBOXES).entries(mailbox)
    assert before <= entry.arrived_at <= now_ms()
    body = json.loads(sample(None)["Records"][0]["body"])
    assert json.loads(entry.change.detail()) == body["detail"]


def test_an_event_that_comes_twice_is_there_once(deliver: Handler, mailbox: Mailbox) -> None:
    """SQS standard queues and EventBridge: at least once."""
    assert failed(deliver(sample(None, None))) == []
    assert failed(deliver(sample(None))) == []
    assert len(content(mailbox)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "not JSON",
        "[]",
        "{}",
        '{"detail": {}}',
        '{"detail": {"taskId": "c1-0", "status": "working", "_meta": {}}}',
        '{"detail": null}',
    ],
)
def test_what_cannot_be_delivered_does_not_keep_the_rest(
    deliver: Handler, mailbox: Mailbox, body: str
) -> None:
    """Lambda developer guide, "Reporting batch item failures": only that one comes again, and goes
    to the dead-letter queue in the end."""
    assert failed(deliver(sample(body, None))) == ["0"]
    assert content(mailbox) == [(TASK, 2, "completed")]


@pytest.mark.parametrize("operation", ["query", "batch_write_item"])
def test_a_failure_of_dynamodb_is_for_the_queue_to_repeat(
    deliver: Handler, mailbox: Mailbox, aws: Calls, time: Time, operation: str
) -> None:
    """Also when all fail: an exception would repeat those, too, that succeeded before."""
    aws.instead[operation] = refusing("dynamodb", "InternalServerError")
    assert failed(deliver(sample(None, None))) == ["0", "1"]
    del aws.instead[operation]
    assert failed(deliver(sample(None, None))) == []
    assert content(mailbox) == [(TASK, 2, "completed")]


def test_a_message_s_age_is_told_at_every_attempt(
    deliver: Handler, aws: Calls, time: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQS tells it no more after three of them."""
    event = sample(None, None)
    for record, age_ms in zip(event["Records"], (500, 90_000), strict=True):
        sent = str(time.now - age_ms)
        more = {"SentTimestamp": sent, "ApproximateReceiveCount": "7"}
        record["attributes"] = record["attributes"] | more
    assert failed(deliver(event)) == []
    aws.instead["batch_write_item"] = refusing("dynamodb", "InternalServerError")
    assert failed(deliver(event)) == ["0", "1"]
    delivered, not_delivered = metrics_in(capsys.readouterr().out)
    assert delivered.values == {metrics.DELIVERY_DELAY: [0.5, 90]}
    assert (delivered.dimensions, delivered.members) == ([["service"]], {"service": "mcp-tasks"})
    assert max(not_delivered.values[metrics.DELIVERY_DELAY]) >= 90


def test_the_log_says_what_failed_and_nothing_of_the_task(
    deliver: Handler, aws: Calls, time: Time, log: io.StringIO
) -> None:
    aws.instead["batch_write_item"] = refusing("dynamodb", "InternalServerError")
    deliver(sample('{"detail": {"taskId": "a private text"}}', None))
    del aws.instead["batch_write_item"]
    deliver(sample(None))
    out = log.getvalue()
    logged = [json.loads(line) for line in out.splitlines()]
    assert [
        entry["error"] for entry in logged if entry["message"] == "change could not be delivered"
    ] == [
        "KeyError",
        "InternalServerError",
    ]
    (delivered,) = [entry for entry in logged if entry["message"] == "change delivered"]
    assert (delivered["task_id"], delivered["revision"], delivered["mailboxes"]) == (TASK, 2, 1)
    assert "private" not in out
    assert "done" not in out


# callers do not wait for one another

OTHERS: Final = "c1-" + "b" * 32


def an_event(task_id: str, revision: int = 2, message: str = "on its way") -> str:
    """A message of the queue: a task has changed."""
    detail = {"taskId": task_id, "status": "working", "statusMessage": message}
    return json.dumps({"detail": {**detail, "_meta": {"mcp-tasks/revision": revision}}})


def throttled(aws: Calls, *mailboxes: Mailbox) -> None:
    """Let DynamoDB have no capacity for these mailboxes, but for all others."""
    hot = {f"mailbox#{mailbox.id}" for mailbox in mailboxes}

    def write(RequestItems: dict[str, list[Any]]) -> dict[str, Any]:
        requests = RequestItems[MAILBOXES]
        left = [each for each in requests if each["PutRequest"]["Item"]["pk"]["S"] in hot]
        taken = [each for each in requests if each not in left]
        if not taken:
            refusing("dynamodb", "ProvisionedThroughputExceededException")()
        real("dynamodb").batch_write_item(RequestItems={MAILBOXES: taken})
        return {"UnprocessedItems": {MAILBOXES: left} if left else {}}

    aws.instead["batch_write_item"] = write


def test_a_caller_whose_mailboxes_are_throttled_delays_nobody(
    deliver: Handler, mailbox: Mailbox, aws: Calls, time: Time
) -> None:
    """Nine messages of one caller, with ten mailboxes each, before one of another caller."""
    hers = [mailbox, *(subscribe("alice", TASK, f"laptop {n}") for n in range(9))]
    his = subscribe("bob", OTHERS)
    throttled(aws, *hers)
    delivered_at: list[int] = []
    write = aws.instead["batch_write_item"]

    def noted(RequestItems: dict[str, list[Any]]) -> Any:
        answer = write(RequestItems=RequestItems)
        delivered_at.append(time.now)
        return answer

    aws.instead["batch_write_item"] = noted
    began = time.now
    bodies = [an_event(TASK, revision, "x" * 100_000) for revision in range(2, 11)]
    assert failed(deliver(sample(*bodies, an_event(OTHERS)))) == [str(n) for n in range(9)]
    assert content(his) == [(OTHERS, 2, "working")]
    assert delivered_at == [began], "his, and before the first pause"
    assert time.now - began < FUNCTION_MS - 3_000, "there is time left to say which have failed"


@pytest.mark.parametrize("first", [0, 1])
def test_a_large_delivery_comes_after_the_small_ones(
    deliver: Handler, mailbox: Mailbox, aws: Calls, first: int
) -> None:
    for n in range(9):
        subscribe("alice", TASK, f"laptop {n}")
    his = subscribe("bob", OTHERS)
    bodies = [an_event(TASK, 2, "x" * 200_000), an_event(OTHERS)]
    assert failed(deliver(sample(*(bodies if first else reversed(bodies))))) == []
    batches = [
        [
            write["PutRequest"]["Item"]["pk"]["S"]
            for write in call.arguments["RequestItems"][MAILBOXES]
        ]
        for call in aws.made
        if call.operation == "batch_write_item"
    ]
    assert batches[0] == [f"mailbox#{his.id}"]
    assert [len(batch) for batch in batches] == [1, 4, 4, 2], "no call is larger than 1 MB"


def test_what_takes_too_long_is_repeated_and_the_rest_is_not(
    deliver: Handler, mailbox: Mailbox, aws: Calls, time: Time
) -> None:
    """A function that is stopped would return all its messages to the queue."""
    his = subscribe("bob", OTHERS)

    def slow(RequestItems: dict[str, list[Any]]) -> Any:
        time.now += 1_100
        return real("dynamodb").batch_write_item(RequestItems=RequestItems)

    aws.instead["batch_write_item"] = slow
    began = time.now
    bodies = [an_event(TASK, revision) for revision in range(2, 8)]
    assert failed(deliver(sample(an_event(OTHERS), *bodies))) == ["2", "3", "4", "5", "6"]
    assert len(content(his)) == len(content(mailbox)) == 1
    assert time.now - began < FUNCTION_MS


def test_what_dynamodb_left_undone_is_repeated_in_time(
    deliver: Handler, mailbox: Mailbox, aws: Calls, time: Time
) -> None:
    """Capacity comes back after a moment, and nothing has to wait for the queue."""
    throttled(aws, mailbox)
    write = aws.instead["batch_write_item"]

    def for_a_while(**arguments: Any) -> Any:
        if len(time.pauses) < 3:
            return write(**arguments)
        return real("dynamodb").batch_write_item(**arguments)

    aws.instead["batch_write_item"] = for_a_while
    assert failed(deliver(sample(None))) == []
    assert time.pauses == [0.04, 0.08, 0.16]
    assert len(content(mailbox)) == 1


def test_a_delivery_is_given_up_after_a_while(
    deliver: Handler, mailbox: Mailbox, aws: Calls, time: Time
) -> None:
    throttled(aws, mailbox)
    aws.forget()
    assert failed(deliver(sample(None))) == ["0"]
    assert aws.operations.count("batch_write_item") == MAX_FAILURES
    assert 1 < sum(time.pauses) < 2


def test_an_error_that_will_not_pass_is_not_repeated(
    deliver: Handler, mailbox: Mailbox, aws: Calls, time: Time
) -> None:
    aws.instead["batch_write_item"] = refusing("dynamodb", "AccessDeniedException")
    assert failed(deliver(sample(None))) == ["0"]
    assert time.pauses == []


def test_a_mailbox_of_the_version_before_gets_its_changes(deliver: Handler, aws: Calls) -> None:
    """Subscriptions that were open during a deployment: their items name no caller."""
    until = now_ms() + 60_000
    for name, time_left in (("old", 0), ("older", -60_001)):
        item = {"pk": {"S": f"task#{TASK}"}, "sk": {"S": name}}
        item |= {"receivesUntil": {"N": str(until + time_left)}}
        real("dynamodb").put_item(TableName=MAILBOXES, Item=item)
    assert failed(deliver(sample(None))) == []
    found = [
        item["pk"]["S"]
        for item in real("dynamodb").scan(TableName=MAILBOXES)["Items"]
        if item["pk"]["S"].startswith("mailbox#")
    ]
    assert "mailbox#old" in found
    assert "mailbox#older" not in found
