"""Where the messages of each kind of dead-letter queue are sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.sweep import TIMEOUT
from operations.deployed_stack import CLIENT_CONFIG
from operations.replay.__main__ import QueueReport
from tests.unit.operations.replay.cloud import ENDED, Cloud, dead_letters_of


def test_finish_is_called_again_with_the_end_of_an_execution(cloud: Cloud) -> None:
    """A rule leaves the event; Lambda leaves it as `requestPayload`."""
    url = cloud.source("Finish")
    cloud.fill(url, "finish")
    assert cloud.replay() == {
        "FinishDeadLetterQueueUrl": QueueReport("mcp-tasks-FinishDeadLetterQueueUrl", 2, 0)
    }
    assert cloud.lambda_.calls == [("finish", ENDED), ("finish", ENDED)]
    assert cloud.bodies(url) == []


@pytest.mark.parametrize("message", ["{", "[]", "{}", {"detail-type": "x"}, {"requestPayload": 1}])
def test_what_no_hop_leaves_behind_stays_and_is_not_printed(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], message: Any
) -> None:
    cloud.send(cloud.source("Finish"), message)
    assert cloud.replay()["FinishDeadLetterQueueUrl"].left == 1
    assert not cloud.lambda_.calls
    assert "not a message of a kind" in capsys.readouterr().out


def test_an_undelivered_event_goes_back_to_its_queue(cloud: Cloud) -> None:
    """Left by SQS, or by the rule with attributes of its own (EventBridge user guide, "Using
    dead-message queues to process undelivered events"): the body is the event, either way.
    """
    url, queue = cloud.queue("DeliverDeadLetterQueueUrl"), cloud.queue("DeliverQueueUrl")
    bodies = cloud.fill(url, "deliver")
    assert cloud.replay()["DeliverDeadLetterQueueUrl"].emptied
    assert cloud.bodies(queue) == bodies
    assert cloud.bodies(url) == []


def test_a_message_that_its_queue_does_not_take_stays(cloud: Cloud) -> None:
    url = cloud.queue("DeliverDeadLetterQueueUrl")
    cloud.outputs["DeliverQueueUrl"] = "https://sqs.us-east-1.amazonaws.com/123456789012/gone"
    cloud.send(url, "{}")
    assert cloud.replay()["DeliverDeadLetterQueueUrl"].left == 1
    assert cloud.bodies(url) == ["{}"]
    del cloud.outputs["DeliverQueueUrl"]


def test_the_sweeper_runs_once_for_all_of_its_failures(cloud: Cloud) -> None:
    url = cloud.source("Sweep")
    cloud.fill(url, "sweep")
    assert cloud.replay()["SweepDeadLetterQueueUrl"] == QueueReport(
        "mcp-tasks-SweepDeadLetterQueueUrl", 2, 0
    )
    assert cloud.lambda_.calls == [("sweep", {})]
    assert cloud.bodies(url) == []


def test_failures_of_the_sweeper_stay_while_it_fails(cloud: Cloud) -> None:
    url = cloud.source("Sweep")
    cloud.fill(url, "sweep")
    cloud.lambda_.fails = ["Sandbox.Timedout"]
    assert cloud.replay()["SweepDeadLetterQueueUrl"].left == 2
    assert len(cloud.lambda_.calls) == 1
    assert len(cloud.bodies(url)) == 2


def test_what_the_bus_could_not_decrypt_is_put_onto_it_again(cloud: Cloud) -> None:
    url = cloud.queue("EventsDeadLetterQueueUrl")
    cloud.outputs["EventBus"] = "mcp-tasks"
    message = json.loads(dead_letters_of("deliver")[0]["Body"])
    cloud.send(url, message)
    assert cloud.replay()["EventsDeadLetterQueueUrl"].emptied
    assert cloud.bus.entries == [
        {
            "EventBusName": "mcp-tasks",
            "Source": "mcp.tasks",
            "DetailType": "notifications/tasks",
            "Detail": json.dumps(message["detail"]),
            "Resources": message["resources"],
            "Time": message["time"],
        }
    ]


@pytest.mark.parametrize("known", [True, False])
def test_what_the_bus_does_not_take_stays(cloud: Cloud, known: bool) -> None:
    """PutEvents answers 200 with a count of what failed."""
    url = cloud.queue("EventsDeadLetterQueueUrl")
    cloud.outputs["EventBus"] = "mcp-tasks"
    cloud.send(url, ENDED if known else {})
    cloud.bus.error = "InternalFailure"
    assert cloud.replay()["EventsDeadLetterQueueUrl"].left == 1
    assert len(cloud.bus.entries) == known


def test_what_the_bus_refuses_for_good_is_put_onto_it_without_its_content(cloud: Cloud) -> None:
    """It would otherwise come back with every replay, and end in nothing."""
    url = cloud.queue("EventsDeadLetterQueueUrl")
    cloud.outputs["EventBus"] = "mcp-tasks"
    message = json.loads(dead_letters_of("deliver")[0]["Body"])
    message["detail"]["result"] = {"content": [], "structuredContent": {"atoms": 10**30}}
    cloud.send(url, message)
    assert cloud.replay()["EventsDeadLetterQueueUrl"].emptied
    _, taken = (json.loads(entry["Detail"]) for entry in cloud.bus.entries)
    assert "result" not in taken
    assert "result" in taken["_meta"]["mcp-tasks/leftOut"]


@pytest.mark.parametrize("detail", [{}, [], {"taskId": "x"}])
def test_what_is_no_change_of_a_task_stays(cloud: Cloud, detail: Any) -> None:
    url = cloud.queue("EventsDeadLetterQueueUrl")
    cloud.outputs["EventBus"] = "mcp-tasks"
    cloud.send(url, {**json.loads(dead_letters_of("deliver")[0]["Body"]), "detail": detail})
    assert cloud.replay()["EventsDeadLetterQueueUrl"].left == 1
    assert cloud.bus.entries == []


def test_a_hop_of_which_nothing_is_known_is_named(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a fork, for instance."""
    url = cloud.queue("ResizeDeadLetterQueueUrl")
    assert cloud.replay()["ResizeDeadLetterQueueUrl"].emptied, "there is nothing to do"
    cloud.send(url, ENDED)
    assert cloud.replay()["ResizeDeadLetterQueueUrl"].left == 1
    assert "neither an output ResizeQueueUrl nor ResizeFunctionName" in capsys.readouterr().out


def test_a_call_is_waited_for_until_its_function_has_ended() -> None:
    """Otherwise a function that takes its time is called again while it runs, by boto3."""
    assert CLIENT_CONFIG.read_timeout > TIMEOUT.to_seconds()  # type: ignore[attr-defined]
