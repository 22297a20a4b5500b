"""The function that asks a task's client."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from .functions import FunctionCode
from .table import TasksTable


class AskFunction(Construct):
    """Writes questions and task tokens to task rows; called by states that wait for an answer."""

    def __init__(
        self, scope: Construct, construct_id: str, code: FunctionCode, table: TasksTable
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = code.function(
            self,
            "ask",
            description="Asks a task's client for input",
            environment={"TASKS_TABLE": table.name},
            timeout=Duration.seconds(30),
        )
        table.grant(self.function, "dynamodb:GetItem", "dynamodb:UpdateItem")

    def grant_stop(self, executions: list[str]) -> None:
        """Let it stop a task whose client cannot be asked."""
        if executions:
            self.function.add_to_role_policy(
                iam.PolicyStatement(actions=["states:StopExecution"], resources=executions)
            )
