"""The function that asks a task's client."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from constructs import Construct

from .function_code import FunctionCode
from .grants import allow_executions
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

    def allow_stop(self, executions: Sequence[str]) -> None:
        """Let it stop the execution of a task whose client cannot be asked."""
        allow_executions(self.function, ["states:StopExecution"], executions)
