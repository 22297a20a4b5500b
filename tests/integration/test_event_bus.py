"""An EventBridge rule on the stack's bus matches every change of every task."""

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
    """The URL of a queue that a rule on the stack's bus sends tasks' changes to."""
    sqs, events = aws("sqs"), aws("events")
    url: str = sqs.create_queue(QueueName="task-changes")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    rule = {"Name": "task-changes", "EventBusName": stack.outputs["EventBus"]}
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


def changes_of(aws: Any, queue: str, task_id: str) -> list[dict[str, Any]]:
    """The events of a task, up to its end."""
    received: list[dict[str, Any]] = []
    deadline = time.monotonic() + 30
    while not received or received[-1]["detail"]["status"] != "completed":
        assert time.monotonic() < deadline, received
        answer = aws("sqs").receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        for message in answer.get("Messages", []):
            event = json.loads(message["Body"])
            if event["detail"]["taskId"] == task_id:
                received.append(event)
            aws("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return received


def test_every_change_reaches_a_queue(client: Client, aws: Any, queue: str) -> None:
    """An event's detail is the params of `notifications/tasks`: what `tasks/get` returned then."""
    task_id = client.start("count_up", to=3)
    final = client.end(task_id)
    received = changes_of(aws, queue, task_id)
    assert [e["detail"].get("statusMessage") for e in received] == [None, "1", "2", "3", None]
    assert {e["detail-type"] for e in received} == {"notifications/tasks"}
    detail = {k: v for k, v in received[-1]["detail"].items() if k != "_meta"}
    polled = {k: v for k, v in final.items() if k not in ("_meta", "resultType")}
    assert detail == polled
    (resource,) = received[-1]["resources"]
    assert resource.endswith(f":execution:mcp-test-count_up:{task_id}")


def test_a_result_that_no_event_can_carry_is_left_out_and_said(
    client: Client, aws: Any, queue: str
) -> None:
    """PutEvents takes integers of 64 bits. The emulator takes all."""
    task_id = client.start("count_atoms")
    assert client.end(task_id)["result"]["structuredContent"] == {"atoms": 10**30}
    detail = changes_of(aws, queue, task_id)[-1]["detail"]
    assert "result" not in detail
    assert detail["_meta"]["mcp-tasks/leftOut"] == ["result"]
