"""The path of a change: stream, `publish`, bus, rule, queue, `deliver`; and all alarms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tasks import metrics
from tests.infra.assembly import Assembly

DAY = 24 * 3600


def _mapping(assembly: Assembly, function: str) -> dict[str, Any]:
    mappings = assembly.resources("AWS::Lambda::EventSourceMapping").values()
    (found,) = [m for m in mappings if m["FunctionName"] == f"<{function}>"]
    return {name: value for name, value in found.items() if name not in ("FunctionName", "Tags")}


def test_publish_reads_the_table_s_stream_and_loses_nothing(on_aws: Assembly) -> None:
    """Lambda developer guide, "Using AWS Lambda with Amazon DynamoDB": a batch is repeated, in
    halves, until it succeeds or its records are too old.
    """
    mapping = _mapping(on_aws, "Publish/Function")
    (pattern,) = mapping.pop("FilterCriteria")["Filters"]
    assert json.loads(pattern["Pattern"]) == {"eventName": ["INSERT", "MODIFY"]}
    assert mapping == {
        "EventSourceArn": "<Tasks/Table.StreamArn>",
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 100,
        "MaximumBatchingWindowInSeconds": 0,
        "ParallelizationFactor": 10,
        "BisectBatchOnFunctionError": True,
        "MaximumRetryAttempts": -1,
        "MaximumRecordAgeInSeconds": 3600,
        "DestinationConfig": {"OnFailure": {"Destination": "<Publish/DeadLetterQueue.Arn>"}},
    }


def test_the_bus_is_the_stack_s_own_and_is_named_after_it(open_server: Assembly) -> None:
    ((path, bus),) = open_server.resources("AWS::Events::EventBus").items()
    assert bus["Name"] == "Open2"
    assert not open_server.resources("AWS::Events::Archive")
    assert not open_server.resources("AWS::Events::EventBusPolicy"), "nobody else may publish"
    variables = open_server.resources("AWS::Lambda::Function")["Publish/Function"]["Environment"]
    assert variables["Variables"]["EVENT_BUS"] == f"<{path}>"


def test_every_change_goes_into_a_queue(on_aws: Assembly) -> None:
    rule = on_aws.resources("AWS::Events::Rule")["Deliver/TaskChanged"]
    assert (rule["EventBusName"], rule["State"]) == ("<Events/Bus>", "ENABLED")
    assert rule["EventPattern"] == {
        "source": ["mcp.tasks"],
        "detail-type": ["notifications/tasks"],
    }
    (target,) = rule["Targets"]
    del target["Id"]
    assert target == {
        "Arn": "<Deliver/Queue.Arn>",
        "DeadLetterConfig": {"Arn": "<Deliver/DeadLetterQueue.Arn>"},
        "RetryPolicy": {"MaximumEventAgeInSeconds": DAY, "MaximumRetryAttempts": 185},
    }


def test_the_queue_keeps_a_change_through_eight_hours_of_failures(on_aws: Assembly) -> None:
    queue = on_aws.resources("AWS::SQS::Queue")["Deliver/Queue"]
    redrive = queue["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == "<Deliver/DeadLetterQueue.Arn>"
    assert redrive["maxReceiveCount"] * queue["VisibilityTimeout"] > 8 * 3600
    assert queue["MessageRetentionPeriod"] == DAY


def test_a_delivery_that_lambda_throttles_is_not_begun_twice(on_aws: Assembly) -> None:
    """Lambda developer guide, "Using Lambda with Amazon SQS": six times the function's timeout."""
    queue = on_aws.resources("AWS::SQS::Queue")["Deliver/Queue"]
    function = on_aws.resources("AWS::Lambda::Function")["Deliver/Function"]
    assert queue["VisibilityTimeout"] == 6 * function["Timeout"]


def test_deliver_says_which_events_failed(on_aws: Assembly) -> None:
    """Otherwise one failed event would bring back those that were delivered with it."""
    assert _mapping(on_aws, "Deliver/Function") == {
        "EventSourceArn": "<Deliver/Queue.Arn>",
        "BatchSize": 10,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 20},
    }


def test_nothing_else_calls_a_function(fork: Assembly) -> None:
    assert len(fork.resources("AWS::Lambda::EventSourceMapping")) == 2
    assert set(fork.resources("AWS::Events::Rule")) == {
        "Finish/ExecutionEnded",
        "Deliver/TaskChanged",
        "Deliver/ServerChanged",
    }


SOURCES = ["Finish", "Publish", "Deliver", "Sweep"]
"""The constructs that have a dead-letter queue."""


@pytest.mark.parametrize("source", SOURCES)
def test_a_dead_letter_queue_keeps_messages_for_two_weeks_and_has_an_alarm(
    on_aws: Assembly, source: str
) -> None:
    queue = f"{source}/DeadLetterQueue"
    properties = on_aws.resources("AWS::SQS::Queue")[queue]
    assert properties["MessageRetentionPeriod"] == 14 * DAY, "SQS's longest"
    alarm = on_aws.resources("AWS::CloudWatch::Alarm")[f"{source}/DeadLetterMessages"]
    assert (alarm["Namespace"], alarm["MetricName"]) == (
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
    )
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": f"<{queue}.QueueName>"}]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Maximum", 60, 1)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == (
        "GreaterThanOrEqualToThreshold",
        1,
    )


def test_an_alarm_rings_when_changes_are_published_late(on_aws: Assembly) -> None:
    alarm = on_aws.resources("AWS::CloudWatch::Alarm")["Publish/IteratorAge"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "IteratorAge")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": "<Publish/Function>"}]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Maximum", 60, 1)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 60_000)


def test_an_alarm_rings_when_changes_are_delivered_late(on_aws: Assembly) -> None:
    """Long before SQS moves them into the dead-letter queue."""
    alarm = on_aws.resources("AWS::CloudWatch::Alarm")["Deliver/AgeOfOldestMessage"]
    assert (alarm["Namespace"], alarm["MetricName"]) == (
        "AWS/SQS",
        "ApproximateAgeOfOldestMessage",
    )
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": "<Deliver/Queue.QueueName>"}]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Maximum", 60, 1)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 60)


def test_an_alarm_rings_when_a_delivery_fails_again_and_again(on_aws: Assembly) -> None:
    """SQS leaves such a message out of its own age after three attempts, so `deliver` tells it."""
    alarm = on_aws.resources("AWS::CloudWatch::Alarm")["Deliver/DeliveryDelay"]
    function = on_aws.resources("AWS::Lambda::Function")["Deliver/Function"]
    names = function["Environment"]["Variables"]
    assert alarm["Namespace"] == names["POWERTOOLS_METRICS_NAMESPACE"] == on_aws.stack
    assert alarm["MetricName"] == metrics.DELIVERY_DELAY
    assert alarm["Dimensions"] == [{"Name": "service", "Value": metrics.SERVICE}]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Maximum", 60, 1)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 60)
    queue = on_aws.resources("AWS::SQS::Queue")["Deliver/Queue"]
    assert queue["VisibilityTimeout"] < alarm["Period"], "each period has an attempt"


def test_queues_are_encrypted(on_aws: Assembly) -> None:
    queues = on_aws.resources("AWS::SQS::Queue")
    assert set(queues) == {"Deliver/Queue", *(f"{source}/DeadLetterQueue" for source in SOURCES)}
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
