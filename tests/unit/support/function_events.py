"""Run events through the functions' handlers, as `sam local invoke` would do it."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.questions import Kind
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import ANYONE, Task, now_ms
from mcp_tasks.tasks.task_table import TaskTable
from tests.unit.support.aws import (
    CALLERS,
    MAILBOXES,
    PAYLOADS,
    TABLE,
    create_callers,
    create_mailboxes,
    create_payloads,
    create_table,
    real,
)
from tests.unit.support.stack import create_state_machine

TASK: Final = "c1-0123456789abcdef0123456789abcdef"
"""The task that the events are about."""
MACHINE: Final = "arn:aws:states:us-east-1:123456789012:stateMachine:mcp-tasks-"


@dataclass
class Context:
    """What Lambda passes beside the event."""

    function_name: str = "f"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:f"
    aws_request_id: str = "r"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


def write_bundle(bundle: Path, tools: Path) -> Path:
    """Write what a bundle says of a tools folder, and of the server."""
    Catalogue.discover(tools).write(bundle / FILE_NAME)
    ServerIdentity("events", "1").write(bundle)
    return bundle


def environment(tool: str) -> dict[str, str]:
    """What the functions find in moto, which is made here; `tool` is the worker's."""
    create_table()
    create_mailboxes()
    create_callers()
    create_payloads()
    secret = real("secretsmanager").create_secret(Name="key", SecretString="k" * 32)
    create_state_machine(
        f"{MACHINE.rpartition(':')[2]}{tool}",
        {"StartAt": "S", "States": {"S": {"Type": "Succeed"}}},
    )
    real("events").create_event_bus(Name="mcp-tasks")
    return {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "TASKS_TABLE": TABLE,
        "MAILBOXES_TABLE": MAILBOXES,
        "CALLERS_TABLE": CALLERS,
        "PAYLOADS_BUCKET": PAYLOADS,
        "AUTH": "none",
        "EVENT_BUS": "mcp-tasks",
        "STATE_MACHINE_PREFIX": MACHINE,
        "REQUEST_STATE_KEY_SECRET": secret["ARN"],
        "CELL": "c1",
        "TOOL": tool,
        "POWERTOOLS_SERVICE_NAME": "test",
        "POWERTOOLS_METRICS_NAMESPACE": "mcp-tasks",
    }


def running_task(tool: str) -> None:
    """Write the row of the task that the events are about."""
    now = now_ms()
    TaskTable(real("dynamodb"), TABLE).create(
        Task(
            task_id=TASK,
            tool=tool,
            principal=ANYONE,
            status=Status.WORKING,
            created_at=now,
            last_updated_at=now,
            ttl_ms=60_000,
            poll_interval_ms=500,
            state_machine_arn=f"{MACHINE}{tool}",
            accepts=frozenset({Kind.FORM}),
        )
    )


@dataclass
class Invoke:
    """Calls a function's handler on an event of a folder."""

    monkeypatch: pytest.MonkeyPatch
    events: Path
    bundle: Path
    tools: Path
    variables: dict[str, str]

    def __post_init__(self) -> None:
        # The handlers import the tools of the package `tools`, which may be another test's.
        Catalogue.discover(self.tools)
        self._set(self.variables)
        self.monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", self.bundle)

    def __call__(self, function: str, name: str, **variables: str) -> Any:
        self._set(variables)
        sys.modules.pop(f"{function}.handler", None)
        handler = importlib.import_module(f"{function}.handler").handler
        return handler(json.loads((self.events / f"{name}.json").read_text()), Context())

    def _set(self, variables: dict[str, str]) -> None:
        for name, value in variables.items():
            self.monkeypatch.setenv(name, value)
