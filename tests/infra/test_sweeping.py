"""The sweeper: an index, a schedule, a function, and its alarms."""

from __future__ import annotations

from mcp_tasks.tasks import reconcile_schedule
from tests.infra.assembly import Assembly


def test_the_reconcile_schedule_is_an_index_that_holds_only_keys(on_aws: Assembly) -> None:
    table = on_aws.resources("AWS::DynamoDB::Table")["Tasks/Table"]
    schedule = table["GlobalSecondaryIndexes"][0]
    assert schedule == {
        "IndexName": reconcile_schedule.INDEX,
        "KeySchema": [
            {"AttributeName": "reconcileShard", "KeyType": "HASH"},
            {"AttributeName": "reconcileAt", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    kinds = {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]}
    assert (kinds["reconcileShard"], kinds["reconcileAt"]) == ("S", "N")


def test_the_sweeper_is_called_every_minute(on_aws: Assembly) -> None:
    schedule = on_aws.resources("AWS::Scheduler::Schedule")["Sweep/Schedule"]
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["GroupName"] == "<Sweep/ScheduleGroup>"
    assert "State" not in schedule, "enabled, which is the default"
    assert schedule["Target"] == {
        "Arn": "<Sweep/Function.Arn>",
        "RoleArn": "<Sweep/ScheduleRole.Arn>",
        "RetryPolicy": {"MaximumRetryAttempts": 5, "MaximumEventAgeInSeconds": 600},
        "DeadLetterConfig": {"Arn": "<Sweep/DeadLetterQueue.Arn>"},
    }


def test_a_run_is_retried_until_later_runs_have_done_its_work(on_aws: Assembly) -> None:
    """But not before Lambda called it three times, with one minute and then two between (Lambda
    developer guide, "How Lambda handles errors and retries with asynchronous invocation").
    """
    config = on_aws.resources("AWS::Lambda::EventInvokeConfig")["Sweep/OnFailure"]
    assert config == {
        "FunctionName": "<Sweep/Function>",
        "Qualifier": "$LATEST",
        "MaximumRetryAttempts": 2,
        "MaximumEventAgeInSeconds": 600,
        "DestinationConfig": {"OnFailure": {"Destination": "<Sweep/DeadLetterQueue.Arn>"}},
    }
    timeout = on_aws.resources("AWS::Lambda::Function")["Sweep/Function"]["Timeout"]
    assert config["MaximumEventAgeInSeconds"] > 2 * timeout + 60 + 120


def test_an_alarm_rings_when_the_sweeper_is_not_called_for_five_minutes(on_aws: Assembly) -> None:
    """Lambda has no data then, and missing data rings. A failed run is in the dead-letter queue."""
    alarm = on_aws.resources("AWS::CloudWatch::Alarm")["Sweep/NotInvoked"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Invocations")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": "<Sweep/Function>"}]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Sum", 60, 5)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "breaching"


def test_an_alarm_rings_when_tasks_are_reconciled_hours_late(on_aws: Assembly) -> None:
    """The sweeper writes the metric as log lines (CloudWatch embedded metric format)."""
    alarm = on_aws.resources("AWS::CloudWatch::Alarm")["Sweep/ReconcileDelay"]
    environment = on_aws.resources("AWS::Lambda::Function")["Sweep/Function"]["Environment"]
    names = environment["Variables"]
    assert alarm["Namespace"] == names["POWERTOOLS_METRICS_NAMESPACE"] == on_aws.stack
    assert alarm["MetricName"] == "ReconcileDelay"
    assert alarm["Dimensions"] == [{"Name": "service", "Value": names["POWERTOOLS_SERVICE_NAME"]}]
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Maximum", 6 * 3600)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["TreatMissingData"] == "notBreaching", "NotInvoked rings for missing runs"


def test_the_sweeper_can_read_any_end_that_finish_can(on_aws: Assembly) -> None:
    functions = on_aws.resources("AWS::Lambda::Function")
    assert functions["Sweep/Function"]["MemorySize"] >= functions["Finish/Function"]["MemorySize"]
