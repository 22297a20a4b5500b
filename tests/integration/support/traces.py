"""A stack's rows and executions, read directly from AWS and not through the server."""

from __future__ import annotations

import json
import time
from typing import Any

from local.deployment import LocalStack
from tests.integration.support.aws import executions


class Traces:
    """A stack's task rows and executions."""

    def __init__(self, stack: LocalStack, aws: Any) -> None:
        self._table = stack.outputs["TasksTable"]
        self._stack = stack
        self._dynamodb = aws("dynamodb")
        self._stepfunctions = aws("stepfunctions")

    def rows(self) -> int:
        """The number of rows in the tasks table."""
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._table, Select="COUNT", ConsistentRead=True
        )
        return sum(page["Count"] for page in pages)

    def row(self, task_id: str) -> dict[str, Any]:
        """A task's row in DynamoDB's JSON."""
        response = self._dynamodb.get_item(
            TableName=self._table, Key={"taskId": {"S": task_id}}, ConsistentRead=True
        )
        item: dict[str, Any] = response["Item"]
        return item

    def executions(self) -> int:
        """The number of executions that were started."""
        return len(list(executions(self._stack, self._stepfunctions)))

    def execution_input(self, task_id: str) -> dict[str, Any]:
        """The input of a task's execution."""
        arn = self.row(task_id)["stateMachineArn"]["S"].replace(":stateMachine:", ":execution:")
        execution = self._stepfunctions.describe_execution(executionArn=f"{arn}:{task_id}")
        found: dict[str, Any] = json.loads(execution["input"])
        return found

    def until_execution(self, task_id: str, status: str) -> None:
        """Wait until a task's execution has a status: it is stopped after its row is written."""
        arn = self.row(task_id)["stateMachineArn"]["S"].replace(":stateMachine:", ":execution:")
        deadline = time.monotonic() + 10
        while True:
            execution = self._stepfunctions.describe_execution(executionArn=f"{arn}:{task_id}")
            if execution["status"] == status:
                return
            assert time.monotonic() < deadline, execution["status"]
            time.sleep(0.05)
