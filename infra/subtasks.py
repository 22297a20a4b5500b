"""`subtasks`: the function that starts the subtasks of tools which call other tools."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from constructs import Construct

from mcp_tasks import environment

from .function_code import FunctionCode
from .grants import allow, allow_executions
from .payloads_bucket import PayloadsBucket
from .tables import Tables


class SubtasksFunction(Construct):
    """Writes the rows of subtasks, and starts their executions. State machines call it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        tables: Tables,
        payloads: PayloadsBucket,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = code.function(
            self,
            "subtasks",
            description="Starts the subtasks that tools call",
            environment={
                environment.TASKS_TABLE: tables.tasks.name,
                environment.JOURNAL_TABLE: tables.journal.name,
                environment.PAYLOADS_BUCKET: payloads.name,
            },
            timeout=Duration.seconds(60),
            memory_mb=512,
        )
        tables.tasks.grant(
            self.function,
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        )
        tables.journal.grant(self.function, "dynamodb:PutItem", "dynamodb:Query")
        payloads.allow(self.function, ["s3:GetObject", "s3:PutObject"], "")

    def allow_starting(
        self, arn_prefix: str, state_machines: Sequence[str], own: Sequence[str]
    ) -> None:
        """Allow to start the executions of all tools, and to let a parent go on, whose state
        machine is the stack's own, when its subtask has ended before its turn.

        `arn_prefix` is the beginning of the ARNs of the stack's own state machines.
        """
        self.function.add_environment(environment.STATE_MACHINE_PREFIX, arn_prefix)
        allow(self.function, ["states:StartExecution"], state_machines)
        allow(self.function, ["states:SendTaskSuccess"], own)

    def allow_stopping(self, executions: Sequence[str]) -> None:
        """Allow to stop the subtasks of a task that cannot be started."""
        allow_executions(self.function, ["states:StopExecution"], executions)
