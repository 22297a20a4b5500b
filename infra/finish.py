"""From an execution's end to its task's row."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .event_bus import RULE_TRIES, RULE_TRIES_FOR
from .function_code import FunctionCode
from .grants import allow_executions
from .payloads_bucket import PayloadsBucket
from .table import TasksTable
from .tool_workflows import ToolWorkflows

ENDS = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
THROTTLED_FOR = Duration.hours(6)
"""Lambda's longest."""


class FinishFunction(Construct):
    """An EventBridge rule, the function it calls, and a queue for what both could not deliver."""

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
        undelivered = DeadLetterQueue(
            self,
            "Undelivered",
            code.encryption,
            "Executions ended, and their tasks were not told",
        )
        acknowledge(
            undelivered, "AwsSolutions-SQS3", "A dead-letter queue itself, of a rule and a function"
        )
        function = code.function(
            self,
            "finish",
            description="Ends a task when its execution has ended",
            environment={"TASKS_TABLE": table.name, "PAYLOADS_BUCKET": payloads.name},
            timeout=Duration.seconds(30),
            # It checks a workflow's output, which may be large, against the tool's result type.
            memory_mb=1024,
        )
        table.grant(function, "dynamodb:GetItem", "dynamodb:UpdateItem")
        payloads.allow(function, ["s3:GetObject", "s3:PutObject"], "")
        allow_executions(function, ["states:DescribeExecution"], workflows.executions)
        code.encryption.allow_reading_executions(function, workflows.own)
        # The function failed three times: throttled, or a fault of ours.
        undelivered.keep_failed_calls(self, function, THROTTLED_FOR)
        events.Rule(
            self,
            "ExecutionEnded",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "status": ENDS,
                    "stateMachineArn": workflows.event_patterns,
                    # A state machine that exists already also runs for others.
                    "name": [{"prefix": workflows.execution_prefix}],
                },
            ),
            targets=[
                # EventBridge could not hand the event to Lambda.
                targets.LambdaFunction(
                    function,
                    dead_letter_queue=undelivered,
                    max_event_age=RULE_TRIES_FOR,
                    retry_attempts=RULE_TRIES,
                )
            ],
        )
