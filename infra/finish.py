"""From an execution's end to its task's row."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .functions import FunctionCode
from .nag import acknowledge
from .table import TasksTable
from .tools import ToolWorkflows

ENDS = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]


class FinishFunction(Construct):
    """An EventBridge rule, the function it calls, and a queue for what both could not deliver."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        workflows: ToolWorkflows,
    ) -> None:
        super().__init__(scope, construct_id)
        undelivered = sqs.Queue(
            self,
            "Undelivered",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        acknowledge(undelivered, "AwsSolutions-SQS3", "This is a dead-letter queue itself")
        function = code.function(
            self,
            "finish",
            description="Ends a task when its execution has ended",
            environment={"TASKS_TABLE": table.name},
            timeout=Duration.seconds(30),
        )
        # The function failed three times: throttled, or a fault of ours.
        function.configure_async_invoke(
            retry_attempts=2, on_failure=destinations.SqsDestination(undelivered)
        )
        table.grant(function, "dynamodb:GetItem", "dynamodb:UpdateItem")
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["states:DescribeExecution"], resources=workflows.executions
            )
        )
        events.Rule(
            self,
            "ExecutionEnded",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={"status": ENDS, "stateMachineArn": workflows.event_patterns},
            ),
            targets=[
                # EventBridge could not hand the event to Lambda.
                targets.LambdaFunction(
                    function,
                    dead_letter_queue=undelivered,
                    max_event_age=Duration.hours(24),
                    retry_attempts=185,
                )
            ],
        )
