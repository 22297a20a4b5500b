"""The function `publish`: from the tables stream's records to events on the bus.

EventBridge is moto's, with a rule of a fork's own that sends every event to a queue.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from mcp_tasks import metrics
from mcp_tasks.notifications.event_bus import NotPublished
from mcp_tasks.tasks.task_table import TaskTable
from tests.paths import EVENTS
from tests.unit.support.aws import ACCOUNT, REGION, Calls, real, refusing
from tests.unit.support.cloud import Context
from tests.unit.support.emf import metrics_in
from tests.unit.support.example_task import ID, NOW, a_task
from tests.unit.support.push import Push

BUS: Final = "unit-bus"
QUEUE: Final = "heard-of-tasks"
RESULT: Final = {"content": [{"type": "text", "text": "a private result"}]}

Handler = Callable[[dict[str, Any]], Any]


@pytest.fixture
def publish(aws: Calls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Handler]:
    """The function as it is loaded, on a bus with a rule."""
    events, sqs = real("events"), real("sqs")
    events.create_event_bus(Name=BUS)
    pattern = {"source": ["mcp.tasks"], "detail-type": ["notifications/tasks"]}
    events.put_rule(Name=QUEUE, EventBusName=BUS, EventPattern=json.dumps(pattern))
    sqs.create_queue(QueueName=QUEUE)
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{QUEUE}"
    events.put_targets(Rule=QUEUE, EventBusName=BUS, Targets=[{"Id": "1", "Arn": arn}])
    monkeypatch.setenv("EVENT_BUS", BUS)
    sys.modules.pop("publish.handler", None)
    module = importlib.import_module("publish.handler")
    monkeypatch.setattr(module.deployment, "_client", lambda service, config: aws.client(service))
    yield lambda event: module.handler(event, Context())
    del sys.modules["publish.handler"]


@pytest.fixture
def log(publish: Handler, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the function logs."""
    text = io.StringIO()
    handler = sys.modules["publish.handler"].logger.registered_handler
    monkeypatch.setattr(handler, "stream", text)
    return text


def heard() -> list[dict[str, Any]]:
    """The events that the rule has sent to its queue."""
    sqs = real("sqs")
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [json.loads(message["Body"]) for message in messages]


def sample() -> dict[str, Any]:
    """The stream's event in events/: new, answered, invisible, removed."""
    event: dict[str, Any] = json.loads((EVENTS / "publish-changes.json").read_text())
    return event


def test_each_visible_change_becomes_an_event(publish: Handler) -> None:
    records = sample()["Records"]
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "MODIFY", "REMOVE"]
    publish(sample())
    details = [event["detail"] for event in heard()]
    assert [(d["taskId"], d["status"], d["_meta"]["mcp-tasks/revision"]) for d in details] == [
        (records[0]["dynamodb"]["Keys"]["taskId"]["S"], "working", 1),
        (records[1]["dynamodb"]["Keys"]["taskId"]["S"], "working", 3),
    ]


def test_any_rule_gets_a_change(publish: Handler, rows: TaskTable) -> None:
    """Of the task as `tasks/get` gives it, its tool and the time; no client has to listen."""
    push = Push()
    rows.create(a_task(created_at=NOW, last_updated_at=NOW))
    publish({"Records": push.records()})
    (event,) = heard()
    assert event["source"] == "mcp.tasks"
    assert event["detail-type"] == "notifications/tasks"
    assert event["resources"] == [f"arn:aws:states:us-east-1:123456789012:execution:count:{ID}"]
    assert event["time"] == "2023-11-14T22:13:20Z"
    assert event["detail"]["createdAt"] == "2023-11-14T22:13:20.000Z"


def test_an_event_without_changes_calls_nothing(publish: Handler, aws: Calls) -> None:
    publish({"Records": sample()["Records"][2:]})
    assert aws.operations == []


def test_a_failed_call_fails_the_function(publish: Handler, aws: Calls) -> None:
    """Lambda then repeats the batch, and its halves; what is returned otherwise is passed."""
    aws.instead["put_events"] = refusing("events", "InternalException")
    with pytest.raises(ClientError, match="InternalException"):
        publish(sample())


def test_a_refused_entry_fails_the_function(publish: Handler, aws: Calls) -> None:
    refused = [{"EventId": "1"}, {"ErrorCode": "ThrottlingException", "ErrorMessage": "no"}]
    aws.instead["put_events"] = lambda Entries: {"FailedEntryCount": 1, "Entries": refused}
    with pytest.raises(NotPublished, match=r"^ThrottlingException$"):
        publish(sample())


def test_the_log_has_counts_and_nothing_of_the_tasks(
    publish: Handler, rows: TaskTable, log: io.StringIO
) -> None:
    push = Push()
    rows.create(a_task(input='{"argument":"a private argument"}'))
    rows.complete(ID, RESULT, NOW + 1)
    publish({"Records": push.records()})
    lines = log.getvalue().splitlines()
    logged = [
        entry for line in lines if (entry := json.loads(line))["message"] == "changes published"
    ]
    assert [(entry["changes"], entry["records"]) for entry in logged] == [(2, 2)]
    assert "private" not in "".join(lines)


def test_tasks_are_counted_once_the_batch_is_published(
    publish: Handler, aws: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch that fails comes again, as a whole or in halves: nothing of it has counted yet."""
    aws.instead["put_events"] = refusing("events", "InternalException")
    with pytest.raises(ClientError):
        publish(sample())
    assert metrics_in(capsys.readouterr().out) == []
    del aws.instead["put_events"]
    publish(sample())
    (line,) = metrics_in(capsys.readouterr().out)
    assert line.members["tool"] == "count_words"
    assert line.values == {metrics.TASKS_CREATED: [1], metrics.INPUT_WAIT: [59.2]}


@pytest.mark.parametrize("trace", [None, "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"])
def test_an_event_carries_the_trace_that_its_task_has_kept(
    publish: Handler, rows: TaskTable, aws: Calls, trace: str | None
) -> None:
    """EventBridge hands it to the rules' targets. A task that has kept none changes nothing."""
    push, sent = Push(), []
    rows.create(a_task(client_context={"xray": trace} if trace else {}))

    def put_events(Entries: list[dict[str, Any]]) -> dict[str, Any]:
        sent.extend(Entries)
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"} for _ in Entries]}

    aws.instead["put_events"] = put_events
    publish({"Records": push.records()})
    (entry,) = sent
    assert entry.get("TraceHeader") == trace
    assert "xray" not in entry["Detail"]
