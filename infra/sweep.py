"""The sweeper: reconciles, every minute, the tasks whose time has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from mcp_tasks import environment
from mcp_tasks.notifications.server_changes import LISTS

from .alarms import alarm_for_missing_invocations, alarm_for_reconcile_delay, metrics_namespace
from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .event_bus import TaskEvents
from .function_code import FunctionCode
from .grants import allow, allow_executions
from .payloads_bucket import PayloadsBucket
from .tables import Tables
from .tool_workflows import ToolWorkflows

INTERVAL: Final = Duration.minutes(1)
TIMEOUT: Final = Duration.seconds(120)
SCHEDULE_RETRIES: Final = 5
MAX_EVENT_AGE: Final = Duration.minutes(10)
"""How long EventBridge Scheduler and Lambda retry one run. It is longer than Lambda's three
attempts take, and not much longer: the next runs do the same work."""
ALARM_MINUTES: Final = 5
"""Minutes without a run, until the alarm. Failed runs are in the dead-letter queue instead."""
ALARM_DELAY: Final = Duration.hours(6)
"""How late a task may be reconciled, until the alarm. A task that waits is reconciled once an hour;
when there are more of them than the sweeper can reconcile, each waits longer."""


@dataclass(frozen=True, slots=True)
class SweptStores:
    """Where the sweeper finds what it compares."""

    tables: Tables
    payloads: PayloadsBucket

    @property
    def environment(self) -> dict[str, str]:
        """Their names, for the function."""
        return {
            environment.TASKS_TABLE: self.tables.tasks.name,
            environment.JOURNAL_TABLE: self.tables.journal.name,
            environment.MAILBOXES_TABLE: self.tables.mailboxes.name,
            environment.PAYLOADS_BUCKET: self.payloads.name,
        }


class SweepFunction(Construct):
    """A schedule, the function that it calls, a dead-letter queue, and two alarms.

    Runs may overlap or be skipped: a run takes the tasks whose time has come, and claims each row
    before it reconciles it. A failed run does not need to be repeated; it is kept in the
    dead-letter queue for its alarm.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        stored: SweptStores,
        workflows: ToolWorkflows,
        task_events: TaskEvents,
    ) -> None:
        super().__init__(scope, construct_id)
        function = code.function(
            self,
            "sweep",
            description="Reconciles tasks with their executions; announces changed lists",
            environment={
                **stored.environment,
                environment.EVENT_BUS: task_events.name,
                environment.STATE_MACHINE_PREFIX: workflows.arn_prefix,
                **metrics_namespace(self),
            },
            timeout=TIMEOUT,
            memory_mb=1024,  # it may do what `finish` does
        )
        _allow_reconciling(function, stored, workflows)
        stored.tables.mailboxes.grant(function, "dynamodb:Query", "dynamodb:PutItem")
        task_events.allow_announcing(function, *LISTS.values())
        workflows.allow_reading_executions(function, code.encryption)
        dead_letters = DeadLetterQueue(
            self,
            "DeadLetterQueue",
            code.encryption,
            "The sweeper could not be called, or failed three times in a row",
        )
        acknowledge(
            dead_letters, "AwsSolutions-SQS3", "The dead-letter queue of a schedule and a function"
        )
        dead_letters.keep_failed_calls(self, function, MAX_EVENT_AGE)
        group = scheduler.CfnScheduleGroup(self, "ScheduleGroup")
        self._schedule(function, group, dead_letters)
        self._alarms(function)

    def _schedule(
        self,
        function: lambda_.Function,
        group: scheduler.CfnScheduleGroup,
        dead_letters: DeadLetterQueue,
    ) -> None:
        schedule = scheduler.CfnSchedule
        schedule(
            self,
            "Schedule",
            description="Calls the sweeper",
            group_name=group.ref,
            schedule_expression=f"rate({INTERVAL.to_minutes():.0f} minute)",
            flexible_time_window=schedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=schedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._schedule_role(function, group, dead_letters).role_arn,
                retry_policy=schedule.RetryPolicyProperty(
                    maximum_retry_attempts=SCHEDULE_RETRIES,
                    maximum_event_age_in_seconds=MAX_EVENT_AGE.to_seconds(),
                ),
                dead_letter_config=schedule.DeadLetterConfigProperty(arn=dead_letters.queue_arn),
            ),
        )

    def _schedule_role(
        self,
        function: lambda_.Function,
        group: scheduler.CfnScheduleGroup,
        dead_letters: DeadLetterQueue,
    ) -> iam.Role:
        """A role that only schedules of the group may use (EventBridge Scheduler user guide,
        "Confused deputy prevention"), to call the function and to send to its dead-letter queue.
        """
        source = {"aws:SourceAccount": Stack.of(self).account, "aws:SourceArn": group.attr_arn}
        role = iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": source}
            ),
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[function.function_arn]
            )
        )
        dead_letters.allow_sending(role)
        return role

    def _alarms(self, function: lambda_.Function) -> None:
        """For a schedule that is gone or disabled, and for a sweeper that is too slow."""
        alarm_for_missing_invocations(
            self,
            function,
            ALARM_MINUTES,
            f"The sweeper has not been called for {ALARM_MINUTES} minutes",
        )
        alarm_for_reconcile_delay(
            self,
            "sweep",
            ALARM_DELAY,
            f"A task is reconciled more than {ALARM_DELAY.to_hours():.0f} hours late: the sweeper "
            "has too many tasks, or cannot reach Step Functions",
        )


def _allow_reconciling(
    function: lambda_.Function, stored: SweptStores, workflows: ToolWorkflows
) -> None:
    """Allow to start what never started, to send answers that never arrived, to stop, to end."""
    stored.tables.tasks.allow_query_of_reconcile_schedule(function)
    stored.tables.allow_ending(function)
    allow(
        function,
        ["states:StartExecution", "states:SendTaskSuccess", "states:SendTaskHeartbeat"],
        workflows.state_machines,
    )
    allow_executions(
        function, ["states:DescribeExecution", "states:StopExecution"], workflows.executions
    )
    workflows.allow_seeing_removal(function)
    stored.payloads.allow(function, ["s3:GetObject", "s3:PutObject"], "")
