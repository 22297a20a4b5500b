"""The account behind the endpoint: what the template asked for is there, and at work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ..deployed_stack import DeployedStack
from .check import Check, expect
from .deployed import Deployed

SWEEP_MINUTES: Final = 5


def see_no_alarm(deployed: Deployed) -> str:
    """Every alarm exists, none rings, and somebody is told."""
    stack = deployed.account()
    alarms = alarms_of(stack)
    expect(alarms, "the stack has no alarm")
    ringing = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
    expect(not ringing, f"ringing: {', '.join(ringing)}; docs/operations.md says what to do")
    silent = [alarm["AlarmName"] for alarm in alarms if not alarm["AlarmActions"]]
    told = "all notify somebody" if not silent else f"{len(silent)} notify nobody (alarms=)"
    return f"{len(alarms)} alarms, none rings; {told}"


def alarms_of(stack: DeployedStack) -> list[dict[str, Any]]:
    """The stack's alarms. Raises Problem when CloudWatch does not know one."""
    names = stack.physical_ids("AWS::CloudWatch::Alarm")
    found: list[dict[str, Any]] = []
    for start in range(0, len(names), 100):  # DescribeAlarms takes 100 names
        answer = stack.client("cloudwatch").describe_alarms(AlarmNames=names[start : start + 100])
        found += answer["MetricAlarms"]
    missing = sorted(set(names) - {alarm["AlarmName"] for alarm in found})
    expect(not missing, f"CloudWatch does not know {', '.join(missing)}")
    return found


def see_metrics(deployed: Deployed) -> str:
    """The alarms' metrics exist under the names and dimensions that the alarms ask for.

    A metric that nobody has written yet is not listed, so some may be missing on a quiet day. The
    tasks that were run before have written those of requests, functions and streams.
    """
    stack = deployed.account()
    cloudwatch = stack.client("cloudwatch")
    absent = []
    for alarm in alarms_of(stack):
        if "MetricName" not in alarm:  # of metric math
            continue
        listed = cloudwatch.list_metrics(
            Namespace=alarm["Namespace"],
            MetricName=alarm["MetricName"],
            Dimensions=[{"Name": d["Name"], "Value": d["Value"]} for d in alarm["Dimensions"]],
        )
        if not listed["Metrics"]:
            absent.append(alarm["AlarmName"])
    return f"without data so far: {', '.join(absent)}" if absent else "all have data"


def see_the_sweeper(deployed: Deployed) -> str:
    """The schedule is enabled, and called the sweeper in the last minutes."""
    stack = deployed.account()
    for schedule in stack.physical_ids("AWS::Scheduler::Schedule"):
        (group,) = stack.physical_ids("AWS::Scheduler::ScheduleGroup")
        found = stack.client("scheduler").get_schedule(Name=schedule, GroupName=group)
        expect(found["State"] == "ENABLED", f"the schedule {schedule} is {found['State']}")
    (function,) = stack.physical_ids("AWS::Lambda::Function", "SweepFunction")
    now = datetime.now(UTC)
    data = stack.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="Invocations",
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=now - timedelta(minutes=SWEEP_MINUTES),
        EndTime=now,
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    calls = int(sum(point["Sum"] for point in data))
    expect(calls, f"the sweeper was not called in the last {SWEEP_MINUTES} minutes")
    return f"called {calls} times in {SWEEP_MINUTES} minutes"


def see_event_sources(deployed: Deployed) -> str:
    """The stream and the queue call their functions."""
    stack = deployed.account()
    mappings = stack.physical_ids("AWS::Lambda::EventSourceMapping")
    for mapping in mappings:
        found = stack.client("lambda").get_event_source_mapping(UUID=mapping)
        # The emulator may leave the state out.
        state = found.get("State", "Enabled")
        expect(state == "Enabled", f"{found['EventSourceArn']} is {state}")
    return f"{len(mappings)} are enabled"


def see_state_machines(deployed: Deployed) -> str:
    """Every tool's state machine is there, and is a Standard one."""
    stack = deployed.account()
    arns = stack.physical_ids("AWS::StepFunctions::StateMachine")
    for arn in arns:
        found = stack.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
        kind, status = found.get("type", "STANDARD"), found.get("status", "ACTIVE")
        expect((kind, status) == ("STANDARD", "ACTIVE"), f"{found['name']} is {kind}, {status}")
    return f"{len(arns)} are active"


def see_tables(deployed: Deployed) -> str:
    """Items expire, the tasks can be restored, and a stream tells of their changes."""
    stack = deployed.account()
    dynamodb = stack.client("dynamodb")
    names = stack.physical_ids("AWS::DynamoDB::Table")
    for name in names:
        ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        status = ttl["TimeToLiveStatus"]
        expect(status in ("ENABLED", "ENABLING"), f"expiry of {name} is {status}")
    tasks = stack.outputs["TasksTable"]
    backups = dynamodb.describe_continuous_backups(TableName=tasks)["ContinuousBackupsDescription"]
    recovery = backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
    expect(recovery == "ENABLED", f"point-in-time recovery of {tasks} is {recovery}")
    return f"{len(names)} tables"


def see_the_bucket(deployed: Deployed) -> str:
    """The payloads bucket is private, encrypted, and its objects expire."""
    stack = deployed.account()
    bucket, s3 = stack.outputs["PayloadsBucket"], stack.client("s3")
    blocked = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    expect(all(blocked.values()), f"{bucket} may be public: {blocked}")
    rules = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    expect(rules, f"{bucket} is not encrypted by default")
    lifecycle = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    expect(any(r["Status"] == "Enabled" for r in lifecycle), f"{bucket} expires nothing")
    return "private, encrypted, with an expiry"


def see_log_groups(deployed: Deployed) -> str:
    """No log is kept for ever."""
    stack = deployed.account()
    names = stack.physical_ids("AWS::Logs::LogGroup")
    for name in names:
        group = log_group(stack, name)
        expect(group, "a log group of the stack is missing")
        expect("retentionInDays" in group, f"{name} is kept for ever")
    return f"{len(names)} log groups"


def log_group(stack: DeployedStack, name: str) -> dict[str, Any]:
    """What CloudWatch Logs says of a log group; empty when there is none."""
    found = stack.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return next((group for group in found if group["logGroupName"] == name), {})


CHECKS: Final = (
    Check("Alarms", see_no_alarm, of_stack=True),
    Check("Alarms' metrics", see_metrics, only_aws=True, of_stack=True),
    Check("The sweeper's schedule", see_the_sweeper, only_aws=True, of_stack=True),
    Check("Event sources", see_event_sources, of_stack=True),
    Check("State machines", see_state_machines, of_stack=True),
    Check("Tables", see_tables, only_aws=True, of_stack=True),
    Check("Payloads bucket", see_the_bucket, only_aws=True, of_stack=True),
    Check("Log groups", see_log_groups, of_stack=True),
)
