"""A tool that calls AWS without permission."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError
from botocore.session import get_session

from mcp_tasks import tool

EXISTS = {"ConditionExpression": "attribute_exists(taskId)"}
"""So that nothing is written where it is allowed."""


def setting(*attributes: str) -> dict[str, Any]:
    """What sets attributes of a row."""
    return EXISTS | {
        "UpdateExpression": "SET " + ", ".join(f"{name} = :v" for name in attributes),
        "ExpressionAttributeValues": {":v": {"S": "forged"}},
    }


@tool(task="optional", poll_every=timedelta(milliseconds=200), without_tasks="request")
def overreach() -> dict[str, str]:
    """Call AWS without having declared a permission. Return the errors."""
    rows = {"TableName": os.environ["TASKS_TABLE"]}
    key = {"taskId": {"S": "c1-00000000000000000000000000000000"}}
    calls: dict[str, tuple[str, str, dict[str, Any]]] = {
        "read a task": ("dynamodb", "get_item", {**rows, "Key": key}),
        "read all tasks": ("dynamodb", "scan", rows),
        "remove a task": ("dynamodb", "delete_item", {**rows, "Key": key}),
        "write another attribute": (
            "dynamodb",
            "update_item",
            {**rows, "Key": key, **setting("tool", "principal", "input", "stateMachineArn")},
        ),
        "write into the schedule": (
            "dynamodb",
            "update_item",
            {**rows, "Key": key, **setting("reconcileAt", "reconcileShard")},
        ),
        "read a row by a write": (
            "dynamodb",
            "update_item",
            {**rows, "Key": key, **setting("statusMessage"), "ReturnValues": "ALL_OLD"},
        ),
        "hide an attribute behind a name": (
            "dynamodb",
            "update_item",
            {
                **rows,
                **EXISTS,
                "Key": key,
                "UpdateExpression": "SET #n = :v",
                "ExpressionAttributeNames": {"#n": "principal"},
                "ExpressionAttributeValues": {":v": {"S": "mallory"}},
            },
        ),
        "put a row": ("dynamodb", "put_item", {**rows, **EXISTS, "Item": key}),
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
