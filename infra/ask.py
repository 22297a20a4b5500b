"""`ask`: the function that puts a workflow's questions to the task's client."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from constructs import Construct

from mcp_tasks import environment

from .function_code import FunctionCode
from .grants import allow_executions
from .tables import TasksTable


class AskFunction(Construct):
    """Writes questions and task tokens to task rows. States that wait for answers call it."""

    def __init__(
        self, scope: Construct, construct_id: str, code: FunctionCode, table: TasksTable
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = code.function(
            self,
            "ask",
            description="Puts questions to a task's client",
            environment={environment.TASKS_TABLE: table.name},
            timeout=Duration.seconds(30),
        )
        table.grant(
            self.function, "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"
        )

    def allow_stop(self, executions: Sequence[str]) -> None:
        """Allow to stop the execution of a task whose client cannot answer the questions."""
        allow_executions(self.function, ["states:StopExecution"], executions)
