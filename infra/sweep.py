"""What looks after tasks about which nobody hears anything."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .function_code import FunctionCode
from .grants import allow, allow_executions
from .payloads_bucket import PayloadsBucket
from .table import TasksTable
from .tool_workflows import ToolWorkflows

EVERY: Final = Duration.minutes(1)
TIMEOUT: Final = Duration.seconds(120)
SCHEDULE_TRIES: Final = 5
TRIES_FOR: Final = Duration.minutes(10)
"""How long one run is tried for, by EventBridge Scheduler and by Lambda, which choose when. Longer
than Lambda's three attempts take; not much longer, for there are other runs by then."""
IDLE: Final = 5
"""Minutes without a run, until the alarm. Of runs that fail, the dead-letter queue rings."""
LATE: Final = Duration.hours(6)
"""How long the first of all tasks may have been due, until the alarm. A task that does nothing but
wait is due once an hour; where there are more of them than looks, they are looked at later."""


class SweepFunction(Construct):
    """A schedule and the function that it calls, every minute.

    Runs may overlap, or be left out: each does what is due then, and claims every row before it
    touches it. A run that failed needs no other, therefore; it is in the dead-letter queue so that
    somebody hears of it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        payloads: PayloadsBucket,
        workflows: ToolWorkflows,
    ) -> None:
        super().__init__(scope, construct_id)
        function = code.function(
            self,
            "sweep",
            description="Looks after tasks of which nothing was heard",
            environment={
                "TASKS_TABLE": table.name,
                "PAYLOADS_BUCKET": payloads.name,
                "POWERTOOLS_METRICS_NAMESPACE": Stack.of(self).stack_name,
            },
            timeout=TIMEOUT,
            memory_mb=1024,  # it may do what `finish` does
        )
        table.allow_finding_due(function)
        table.grant(function, "dynamodb:GetItem", "dynamodb:UpdateItem")
        # For a start that never happened, and for answers that were stored and never arrived.
        allow(
            function,
            ["states:StartExecution", "states:SendTaskSuccess", "states:SendTaskHeartbeat"],
            workflows.state_machines,
        )
        allow_executions(
            function, ["states:DescribeExecution", "states:StopExecution"], workflows.executions
        )
        code.encryption.allow_reading_executions(function, workflows.own)
        payloads.allow(function, ["s3:GetObject", "s3:PutObject"], "")
        failed = DeadLetterQueue(
            self,
            "Failed",
            code.encryption,
            "The sweeper could not be called, or failed three times in a row",
        )
        acknowledge(
            failed, "AwsSolutions-SQS3", "A dead-letter queue itself, of a schedule and a function"
        )
        failed.keep_failed_calls(self, function, TRIES_FOR)
        self._schedule(function, failed)
        self._alarms(function)

    def _schedule(self, function: lambda_.Function, failed: DeadLetterQueue) -> None:
        # Only schedules of a group of the stack's own may use the role (EventBridge Scheduler user
        # guide, "Confused deputy prevention").
        group = scheduler.CfnScheduleGroup(self, "Schedules")
        role = iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {
                        "aws:SourceAccount": Stack.of(self).account,
                        "aws:SourceArn": group.attr_arn,
                    }
                },
            ),
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[function.function_arn]
            )
        )
        # Scheduler sends with this role, too, and uses the queue's key with it.
        failed.allow_sending(role)
        scheduler.CfnSchedule(
            self,
            "Schedule",
            description="Calls the sweeper",
            group_name=group.ref,
            schedule_expression=f"rate({EVERY.to_minutes():.0f} minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=role.role_arn,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=SCHEDULE_TRIES,
                    maximum_event_age_in_seconds=TRIES_FOR.to_seconds(),
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=failed.queue_arn
                ),
            ),
        )

    def _alarms(self, function: lambda_.Function) -> None:
        """Nothing failed, and yet nothing is done: a schedule that is gone or off, for instance.
        Or it is done, and too slowly.
        """
        calls = function.metric_invocations(period=Duration.minutes(1), statistic="Sum")
        calls.create_alarm(
            self,
            "Idle",
            alarm_description=f"The sweeper has not been called for {IDLE} minutes",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=IDLE,
            # Lambda tells nothing of a function that nobody calls.
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        late = cloudwatch.Metric(
            namespace=Stack.of(self).stack_name,
            metric_name="Late",
            dimensions_map={"service": "sweep"},
            period=Duration.minutes(5),
            statistic="Maximum",
        )
        late.create_alarm(
            self,
            "Late",
            alarm_description=f"A task has been due for {LATE.to_hours():.0f} hours: there are too "
            "many for the sweeper, or it cannot reach Step Functions",
            threshold=LATE.to_seconds(),
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
