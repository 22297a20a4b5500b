"""Every event in events/ runs through the handler it is for, as `sam local invoke` would do it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.tasks.inputs import Kind
from mcp_tasks.tasks.rows import TaskTable
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import ANYONE, Task, now_ms

ROOT = Path(__file__).resolve().parent.parent.parent
EVENTS = ROOT / "events"
TASK = "c1-0123456789abcdef0123456789abcdef"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:mcp-tasks-"


@dataclass
class Context:
    """What Lambda passes beside the event."""

    function_name: str = "f"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:f"
    aws_request_id: str = "r"

    def get_remaining_time_in_millis(self) -> int:
        return 1000


def event(name: str) -> dict[str, Any]:
    """An event of events/."""
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return loaded


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Call a function's handler on an event, with a table and two state machines behind it."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TASKS_TABLE": "tasks",
        "STATE_MACHINE_PREFIX": MACHINE,
        "CELL": "c1",
        "SERVER_NAME": "mcp-tasks",
        "SERVER_VERSION": "0",
        "TOOL": "simulate_savings",
        "POWERTOOLS_SERVICE_NAME": "test",
    }.items():
        monkeypatch.setenv(name, value)
    bundle = ROOT / ".local" / "test-events"
    bundle.mkdir(parents=True, exist_ok=True)
    Catalogue.discover(ROOT / "functions" / "tools").write(bundle / FILE_NAME)
    monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", bundle)
    with mock_aws():
        boto3.client("dynamodb").create_table(
            TableName="tasks",
            KeySchema=[{"AttributeName": "taskId", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "taskId", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        secret = boto3.client("secretsmanager").create_secret(Name="key", SecretString="k" * 32)
        monkeypatch.setenv("STATE_KEY_SECRET", secret["ARN"])
        boto3.client("stepfunctions").create_state_machine(
            name="mcp-tasks-simulate_savings",
            definition='{"StartAt": "S", "States": {"S": {"Type": "Succeed"}}}',
            roleArn="arn:aws:iam::123456789012:role/r",
        )

        def call(function: str, name: str, **environment: str) -> Any:
            for key, value in environment.items():
                monkeypatch.setenv(key, value)
            sys.modules.pop(f"{function}.handler", None)
            handler = importlib.import_module(f"{function}.handler").handler
            return handler(event(name), Context())

        yield call


@pytest.mark.parametrize(
    ("name", "status", "member"),
    [
        ("api-server-discover", 200, "result"),
        ("api-tools-list", 200, "result"),
        ("api-tools-call", 200, "result"),
        ("api-tools-call-task", 200, "result"),
        ("api-tools-call-asks", 200, "result"),
        ("api-resources-read", 200, "result"),
        ("api-prompts-get", 200, "result"),
        ("api-initialize", 200, "result"),
        ("api-tasks-get", 400, "error"),
        ("api-tasks-update", 400, "error"),
        ("api-tasks-cancel", 400, "error"),
        ("api-not-json", 400, "error"),
        ("api-header-mismatch", 400, "error"),
    ],
)
def test_an_api_event_is_answered(invoke: Any, name: str, status: int, member: str) -> None:
    answer = invoke("api", name)
    assert answer["statusCode"] == status
    assert member in json.loads(answer["body"])


def test_an_api_event_is_asked_back(invoke: Any) -> None:
    result = json.loads(invoke("api", "api-tools-call-asks")["body"])["result"]
    assert (result["resultType"], list(result["inputRequests"])) == ("input_required", ["answer"])


def running_task() -> None:
    """Write the row of the task that the events are about."""
    now = now_ms()
    TaskTable(boto3.client("dynamodb"), "tasks").create(
        Task(
            task_id=TASK,
            tool="simulate_savings",
            principal=ANYONE,
            status=Status.WORKING,
            created_at=now,
            last_updated_at=now,
            ttl_ms=60_000,
            poll_interval_ms=500,
            state_machine_arn=f"{MACHINE}simulate_savings",
            accepts=frozenset({Kind.FORM}),
        )
    )


def test_a_worker_event_runs_the_function(invoke: Any) -> None:
    running_task()
    result = invoke("worker", "worker-function")["result"]
    assert result["structuredContent"]["paid_in"] == 48000
    assert invoke("worker", "worker-function-answered")["result"] == result


def test_a_worker_event_runs_a_step(invoke: Any) -> None:
    running_task()
    chunks = invoke("worker", "worker-step", TOOL="profile_dataset")
    assert [chunk["columns"] for chunk in chunks] == [["colour", "n"]]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("ask", "ask"),
        ("finish", "finish-succeeded"),
        ("finish", "finish-succeeded-large"),
        ("finish", "finish-failed"),
        ("finish", "finish-timed-out"),
        ("finish", "finish-aborted"),
    ],
)
def test_an_event_about_a_task_that_is_gone_is_no_error(
    invoke: Any, function: str, name: str
) -> None:
    assert invoke(function, name) is None


def test_every_event_is_tested_here() -> None:
    here = Path(__file__).read_text()
    assert not [f.stem for f in EVENTS.glob("*.json") if f'"{f.stem}"' not in here]
