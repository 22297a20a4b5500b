"""Secrets reach the tools that declare them, and nothing else (`@tool(secrets=...)`)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from local.deployment import LocalStack
from local.environment import STATE
from local.gateway import Gateway
from local.secret_values import write_values
from tests.integration.support.aws import functions, log_groups, log_lines, variables
from tests.integration.support.client import Client
from tests.integration.support.traces import Traces

VALUES = {"tests/api-key": "canary-one-7f3b", "/tests/token": "canary-two-9c1d"}
DIGESTS = {
    "API_KEY": hashlib.sha256(VALUES["tests/api-key"].encode()).hexdigest(),
    "TOKEN": hashlib.sha256(VALUES["/tests/token"].encode()).hexdigest(),
    "table": "orders",
}


class _Session:
    """What `write_values` needs of botocore's session."""

    def __init__(self, aws: Any) -> None:
        self.create_client = aws


@pytest.fixture(scope="module", autouse=True)
def _values(aws: Any) -> None:
    write_values(VALUES, _Session(aws))  # type: ignore[arg-type]


def test_a_task_and_a_call_within_the_request_read_secrets(
    client: Client, stack: LocalStack, gateway: Gateway
) -> None:
    """In the worker, and in the api function, behind both gateways."""
    assert client.end(client.start("use_secrets"))["result"]["structuredContent"] == DIGESTS
    for url in (stack.url, gateway.url):
        result = Client(url, {}).call("use_secrets").result
        assert result["structuredContent"] == DIGESTS


def test_a_missing_secret_fails_the_task_and_is_named_in_the_log_only(
    client: Client, stack: LocalStack, aws: Any
) -> None:
    task_id = client.start("miss_a_secret")
    ended = client.end(task_id)
    assert ended["status"] == "failed"
    assert "tests/missing" not in json.dumps(ended)
    assert "tests/missing could not be read from secretsmanager; create it" in logs_of(stack, aws)


def test_no_value_is_anywhere_but_in_its_service(
    client: Client, stack: LocalStack, aws: Any
) -> None:
    """Not in a row, an execution's history, a log, a variable, the template or the bundle."""
    task_id = client.start("use_secrets")
    client.end(task_id)
    arn = Traces(stack, aws).row(task_id)["stateMachineArn"]["S"]
    execution = f"{arn.replace(':stateMachine:', ':execution:')}:{task_id}"
    history = aws("stepfunctions").get_execution_history(executionArn=execution)["events"]
    environments = [variables(f) for f in functions(stack, aws("lambda")).values()]
    files = [p.read_bytes() for p in stack.folder.rglob("*") if p.is_file()]
    seen = json.dumps([Traces(stack, aws).row(task_id), history, environments], default=str)
    seen += logs_of(stack, aws)
    for value in VALUES.values():
        assert value not in seen
        assert not any(value.encode() in data for data in files)


def logs_of(stack: LocalStack, aws: Any) -> str:
    """All that the functions have logged, and the files of their output."""
    logs = aws("logs")
    lines = [line for group in log_groups(logs) for line in log_lines(logs, group)]
    files = [STATE / stack.emulator.name / "emulator.log", stack.folder / "gateway.log"]
    return "\n".join([*lines, *(file.read_text() for file in files if file.is_file())])
