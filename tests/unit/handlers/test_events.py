"""Every event in events/ runs through the handler it is for, as `sam local invoke` would do it."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_tasks.registry.catalogue import FILE_NAME, PACKAGE, Catalogue
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.questions import Kind
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import ANYONE, Task, now_ms
from mcp_tasks.tasks.task_table import TaskTable
from mcp_tasks.workflows.sweep import Swept
from tests.paths import ROOT
from tests.unit.support.aws import (
    CALLERS,
    MAILBOXES,
    PAYLOADS,
    TABLE,
    Calls,
    create_callers,
    create_mailboxes,
    create_payloads,
    create_table,
    real,
)
from tests.unit.support.stack import create_state_machine, messages_of

EVENTS = ROOT / "events"
DEAD = "dead-letters-"
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
        return 30_000


def event(name: str) -> dict[str, Any]:
    """An event of events/."""
    loaded: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A functions' bundle with the catalogue of the template's tools."""
    folder = tmp_path_factory.mktemp("bundle")
    before = set(sys.modules)
    Catalogue.discover(ROOT / "functions" / "tools").write(folder / FILE_NAME)
    ServerIdentity("events", "1").write(folder)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == PACKAGE:
            del sys.modules[name]
    return folder


@pytest.fixture
def environment(aws: Calls) -> dict[str, str]:
    """What the functions find, and where they find it."""
    create_table()
    create_mailboxes()
    create_callers()
    create_payloads()
    secret = real("secretsmanager").create_secret(Name="key", SecretString="k" * 32)
    create_state_machine(
        f"{MACHINE.rpartition(':')[2]}simulate_savings",
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
        "TOOL": "simulate_savings",
        "POWERTOOLS_SERVICE_NAME": "test",
        "POWERTOOLS_METRICS_NAMESPACE": "mcp-tasks",
    }


@pytest.fixture
def invoke(environment: dict[str, str], bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call a function's handler on an event."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", bundle)

    def call(function: str, name: str, **variables: str) -> Any:
        for key, value in variables.items():
            monkeypatch.setenv(key, value)
        sys.modules.pop(f"{function}.handler", None)
        handler = importlib.import_module(f"{function}.handler").handler
        return handler(event(name), Context())

    return call


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


def test_an_api_event_listens(invoke: Any) -> None:
    """To nothing: the task is not there, and the lists do not change while a stack is deployed."""
    acknowledged, message = messages_of(invoke("api", "api-subscriptions-listen"))
    assert acknowledged["params"]["notifications"] == {"taskIds": []}
    assert message["result"]["resultType"] == "complete"


def running_task() -> None:
    """Write the row of the task that the events are about."""
    now = now_ms()
    TaskTable(real("dynamodb"), TABLE).create(
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


def test_a_stream_event_is_published(invoke: Any) -> None:
    """What comes of it is for test_publish to say."""
    assert invoke("publish", "publish-changes") is None


def test_a_queue_event_is_delivered(invoke: Any) -> None:
    """What comes of it is for test_deliver to say."""
    assert invoke("deliver", "deliver") == {"batchItemFailures": []}


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("ask", "ask"),
        ("finish", "finish-succeeded"),
        ("finish", "finish-succeeded-large"),
        ("finish", "finish-failed"),
        ("finish", "finish-timed-out"),
        ("finish", "finish-aborted"),
        ("sweep", "sweep"),
    ],
)
def test_an_event_about_a_task_that_is_gone_is_no_error(
    invoke: Any, function: str, name: str
) -> None:
    assert invoke(function, name) is None


def test_a_sweep_ends_before_its_function_does(
    invoke: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is looked at in its last moment has time enough, though each call may be repeated."""
    given: list[float] = []

    def sweep(*arguments: Any) -> Swept:
        given.append(arguments[-1])
        return Swept(Counter(started=2), late_ms=61_500)

    monkeypatch.setattr("mcp_tasks.workflows.sweep.sweep", sweep)
    invoke("sweep", "sweep")
    assert given == [Context().get_remaining_time_in_millis() / 1000 - 80]
    metric = next(
        json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line
    )
    assert (metric["Late"], metric["service"]) == ([61.5], "test")
    (directive,) = metric["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "mcp-tasks"
    assert directive["Metrics"] == [{"Name": "Late", "Unit": "Seconds"}]


@pytest.mark.parametrize("name", ["authorize-tools-call", "authorize-no-token"])
def test_an_authorizers_event_without_a_good_token_is_unauthorized(invoke: Any, name: str) -> None:
    oauth = {"ISSUER": "https://login.example", "AUDIENCE": "a", "SCOPES": ""}
    with pytest.raises(Exception, match=r"^Unauthorized$"):
        invoke("authorize", name, RESOURCE_METADATA_URL="https://mcp.example", **oauth)


def test_every_event_is_tested() -> None:
    """Here, or, when it is what a queue of dead letters holds, where those are replayed."""
    here, replayed = (
        Path(__file__).read_text(),
        ROOT / "tests" / "unit" / "infra" / "test_replay.py",
    )
    names = [file.stem for file in EVENTS.glob("*.json")]
    dead = {name.removeprefix(DEAD) for name in names if name.startswith(DEAD)}
    assert not [hop for hop in dead if f'"{hop}"' not in replayed.read_text()]
    assert not [name for name in names if not name.startswith(DEAD) and f'"{name}"' not in here]
