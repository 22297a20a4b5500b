"""`finish`: from an execution's end to its task's row."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks import environment

from .alarms import metrics_namespace
from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .event_bus import RULE_MAX_AGE, RULE_RETRIES
from .function_code import FunctionCode
from .grants import allow, allow_executions
from .payloads_bucket import PayloadsBucket
from .tables import Tables
from .tool_workflows import ToolWorkflows

END_STATUSES: Final = ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
MAX_EVENT_AGE: Final = Duration.hours(6)
"""How long Lambda keeps a call that is throttled: its maximum."""


class FinishFunction(Construct):
    """EventBridge rules for ended executions, the function they call, and a dead-letter queue.

    The queue takes what EventBridge could not hand to Lambda, and what the function failed at three
    times.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        tables: Tables,
        payloads: PayloadsBucket,
        workflows: ToolWorkflows,
    ) -> None:
        super().__init__(scope, construct_id)
        function = code.function(
            self,
            "finish",
            description="Ends a task when its execution has ended",
            environment={
                environment.TASKS_TABLE: tables.tasks.name,
                environment.JOURNAL_TABLE: tables.journal.name,
                environment.PAYLOADS_BUCKET: payloads.name,
                **metrics_namespace(self),
            },
            timeout=Duration.seconds(30),
            # It checks a workflow's output, which may be large, against the tool's result type.
            memory_mb=1024,
        )
        tables.allow_ending(function)
        payloads.allow(function, ["s3:GetObject", "s3:PutObject"], "")
        _allow_executions(function, workflows)
        workflows.allow_reading_executions(function, code.encryption)
        dead_letters = DeadLetterQueue(
            self,
            "DeadLetterQueue",
            code.encryption,
            "`finish` was not called when executions ended, or it failed three times; the sweeper "
            "ends their tasks later",
        )
        acknowledge(
            dead_letters, "AwsSolutions-SQS3", "The dead-letter queue of a rule and a function"
        )
        dead_letters.keep_failed_calls(self, function, MAX_EVENT_AGE)
        self._rules(function, workflows, dead_letters)

    def _rules(
        self, function: lambda_.Function, workflows: ToolWorkflows, dead_letters: DeadLetterQueue
    ) -> None:
        target = targets.LambdaFunction(
            function,
            dead_letter_queue=dead_letters,
            max_event_age=RULE_MAX_AGE,
            retry_attempts=RULE_RETRIES,
        )
        for number, state_machines in enumerate(workflows.event_patterns, start=1):
            events.Rule(
                self,
                "ExecutionEnded" if number == 1 else f"ExecutionEnded{number}",
                event_pattern=events.EventPattern(
                    source=["aws.states"],
                    detail_type=["Step Functions Execution Status Change"],
                    detail={
                        "status": list(END_STATUSES),
                        "stateMachineArn": state_machines,
                        # A state machine that exists elsewhere also has executions that are no
                        # tasks.
                        "name": [{"prefix": workflows.execution_prefix}],
                    },
                ),
                targets=[target],
            )


def _allow_executions(function: lambda_.Function, workflows: ToolWorkflows) -> None:
    """Allow to read how an execution ended; to start the one that undoes what a task did, or in
    which a long task goes on; to let the parent of a subtask go on; and to stop the subtasks of a
    task whose execution has ended."""
    allow_executions(
        function, ["states:DescribeExecution", "states:StopExecution"], workflows.executions
    )
    allow(function, ["states:StartExecution", "states:SendTaskSuccess"], workflows.own)
