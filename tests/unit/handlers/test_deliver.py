"""The function `deliver`: from the queue's events to the mailboxes of those who follow the task."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from mcp_tasks.notifications.mailboxes import Mailbox, Mailboxes
from mcp_tasks.tasks.task import now_ms
from tests.paths import EVENTS
from tests.unit.support.aws import MAILBOXES, Calls, create_mailboxes, real, refusing
from tests.unit.support.cloud import Context

TASK: Final = "c1-0123456789abcdef0123456789abcdef"

Handler = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def mailbox(aws: Calls) -> Mailbox:
    """The mailbox of somebody who follows the task."""
    now = now_ms()
    return Mailboxes(real("dynamodb"), create_mailboxes()).open("me", [TASK], now + 60_000, now)


@pytest.fixture
def deliver(mailbox: Mailbox, aws: Calls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handler]:
    """The function as it is loaded."""
    monkeypatch.setenv("MAILBOXES_TABLE", MAILBOXES)
    sys.modules.pop("deliver.handler", None)
    module = importlib.import_module("deliver.handler")
    monkeypatch.setattr(module.deployment, "_client", lambda service, config: aws.client(service))
    yield lambda event: module.handler(event, Context())
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
    changes = [entry.change for entry in entries]
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
    deliver: Handler, mailbox: Mailbox, aws: Calls, operation: str
) -> None:
    """Also when all fail: an exception would repeat those, too, that succeeded before."""
    aws.instead[operation] = refusing("dynamodb", "InternalServerError")
    assert failed(deliver(sample(None, None))) == ["0", "1"]
    del aws.instead[operation]
    assert failed(deliver(sample(None, None))) == []
    assert content(mailbox) == [(TASK, 2, "completed")]


def test_the_log_says_what_failed_and_nothing_of_the_task(
    deliver: Handler, aws: Calls, log: io.StringIO
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
