"""Beyond clients: any EventBridge rule hears of every change of every task."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from local.deployment import LocalStack
from tests.integration.support.client import Client

PATTERN = {"source": ["mcp.tasks"], "detail-type": ["notifications/tasks"]}


@pytest.fixture
def queue(stack: LocalStack, aws: Any) -> Iterator[str]:
    """A queue that gets the events of one tool's tasks, as a fork would have it; its URL."""
    sqs, events = aws("sqs"), aws("events")
    url: str = sqs.create_queue(QueueName="heard-of-tasks")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    rule = {"Name": "heard-of-tasks", "EventBusName": stack.outputs["EventBus"]}
    events.put_rule(EventPattern=json.dumps(PATTERN), **rule)
    events.put_targets(
        Rule=rule["Name"],
        EventBusName=rule["EventBusName"],
        Targets=[{"Id": "1", "Arn": arn["QueueArn"]}],
    )
    yield url
    events.remove_targets(Rule=rule["Name"], EventBusName=rule["EventBusName"], Ids=["1"])
    events.delete_rule(**rule)
    sqs.delete_queue(QueueUrl=url)


def test_a_queue_hears_of_every_change(client: Client, aws: Any, queue: str) -> None:
    """The detail is the notification's params: the task as `tasks/get` gave it at that moment."""
    task_id = client.start("count_up", to=3)
    final = client.end(task_id)
    heard: list[dict[str, Any]] = []
    deadline = time.monotonic() + 30
    while not heard or heard[-1]["detail"]["status"] != "completed":
        assert time.monotonic() < deadline, heard
        answer = aws("sqs").receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        for message in answer.get("Messages", []):
            event = json.loads(message["Body"])
            if event["detail"]["taskId"] == task_id:
                heard.append(event)
            aws("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert [e["detail"].get("statusMessage") for e in heard] == [None, "1", "2", "3", None]
    assert {e["detail-type"] for e in heard} == {"notifications/tasks"}
    detail = {k: v for k, v in heard[-1]["detail"].items() if k != "_meta"}
    polled = {k: v for k, v in final.items() if k not in ("_meta", "resultType")}
    assert detail == polled
    (resource,) = heard[-1]["resources"]
    assert resource.endswith(f":execution:mcp-test-count_up:{task_id}")
