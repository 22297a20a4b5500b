"""A tool that calls AWS without permission."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError
from botocore.session import get_session

from mcp_tasks import tool


@tool(task="optional", poll_every=timedelta(milliseconds=200))
def overreach() -> dict[str, str]:
    """Call AWS without having declared a permission. Return the errors."""
    rows = {"TableName": os.environ["TASKS_TABLE"]}
    key = {"taskId": {"S": "c1-00000000000000000000000000000000"}}
    calls: dict[str, tuple[str, str, dict[str, Any]]] = {
        "read a task": ("dynamodb", "get_item", {**rows, "Key": key}),
        "read all tasks": ("dynamodb", "scan", rows),
        "remove a task": ("dynamodb", "delete_item", {**rows, "Key": key}),
        "list state machines": ("stepfunctions", "list_state_machines", {}),
        "list roles": ("iam", "list_roles", {}),
    }
    outcomes = {}
    for name, (service, operation, request) in calls.items():
        try:
            getattr(get_session().create_client(service), operation)(**request)
        except ClientError as error:
            outcomes[name] = error.response["Error"]["Code"].removesuffix("Exception")
        else:
            outcomes[name] = "allowed"
    return outcomes
