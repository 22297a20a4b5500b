"""boto3 for an emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import boto3

from local.deployment import LocalStack
from local.emulator import Emulator


def client_of(emulator: Emulator) -> Callable[..., Any]:
    """`boto3.client` for an emulator."""
    environment = emulator.environment
    session = boto3.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    )

    def client(service: str, **options: Any) -> Any:
        return session.client(service, endpoint_url=emulator.url, **options)  # type: ignore[call-overload]

    return client


def listed(client: Any, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
    """Yield what an operation lists under a key, from all of its pages."""
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page[key]


def rows(stack: LocalStack, dynamodb: Any) -> dict[str, dict[str, Any]]:
    """All rows of a stack's tasks table in DynamoDB's JSON, by task id."""
    about = {"TableName": stack.outputs["TasksTable"], "ConsistentRead": True}
    return {item["taskId"]["S"]: item for item in listed(dynamodb, "scan", "Items", **about)}


def functions(stack: LocalStack, lambda_: Any) -> dict[str, dict[str, Any]]:
    """The configuration of each of a stack's functions, by the function's name."""
    return {
        function["FunctionName"]: function
        for function in listed(lambda_, "list_functions", "Functions")
        if function["FunctionName"].startswith(f"{stack.name}-")
    }


def variables(function: dict[str, Any]) -> dict[str, str]:
    """The environment variables in a function's configuration."""
    found: dict[str, str] = function.get("Environment", {}).get("Variables", {})
    return found


def function_name(stack: LocalStack, lambda_: Any, construct: str) -> str:
    """The name of one of the platform's functions by its construct, such as `Api`."""
    prefix = f"{stack.name}-{construct}Function"
    (name,) = (name for name in functions(stack, lambda_) if name.startswith(prefix))
    return name


def event_source(lambda_: Any, function: str) -> dict[str, Any]:
    """The only event source mapping of a function."""
    about = {"FunctionName": function}
    found: dict[str, Any]
    (found,) = listed(lambda_, "list_event_source_mappings", "EventSourceMappings", **about)
    return found


def executions(stack: LocalStack, stepfunctions: Any, tool: str = "") -> Iterator[dict[str, Any]]:
    """All executions of a stack's state machines, or of a tool's, also those that have ended."""
    for machine in listed(stepfunctions, "list_state_machines", "stateMachines"):
        if machine["name"].startswith(f"{stack.name}-{tool}"):
            about = {"stateMachineArn": machine["stateMachineArn"]}
            yield from listed(stepfunctions, "list_executions", "executions", **about)


def log_groups(logs: Any) -> list[str]:
    """The names of all log groups."""
    return [group["logGroupName"] for group in listed(logs, "describe_log_groups", "logGroups")]


def log_lines(logs: Any, group: str, **arguments: Any) -> Iterator[str]:
    """The messages of a log group. `arguments` are FilterLogEvents', such as `startTime`.

    A group that was removed since it was listed has none: another test's stack may be in change.
    """
    with suppress(logs.exceptions.ResourceNotFoundException):
        for event in listed(logs, "filter_log_events", "events", logGroupName=group, **arguments):
            yield event["message"]
