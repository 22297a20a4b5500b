"""Every event in events/ runs through the handler it is for, as `sam local invoke` would do it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.workflows.sweep import Swept
from tests.paths import EVENTS, ROOT
from tests.readme import tool_in_ten_lines
from tests.unit.support.aws import Calls
from tests.unit.support.function_events import (
    Context,
    Invoke,
    environment,
    running_task,
    write_bundle,
)
from tests.unit.support.stack import messages_of

DEAD: Final = "dead-letters-"
TOOL: Final = "count_words"
"""The tool that the events name: README.md shows it."""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A tools folder with the README's tool."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "count_words.py").write_text(tool_in_ten_lines())
    return folder


@pytest.fixture
def bundle(tmp_path: Path, tools: Path) -> Path:
    """A functions' bundle with the tool."""
    return write_bundle(tmp_path, tools)


@pytest.fixture
def invoke(aws: Calls, bundle: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Call a function's handler on an event."""
    return Invoke(monkeypatch, EVENTS, bundle, tools, environment(TOOL))


@pytest.mark.parametrize(
    ("name", "status", "member"),
    [
        ("api-server-discover", 200, "result"),
        ("api-tools-list", 200, "result"),
        ("api-tools-call-task", 200, "result"),
        ("api-initialize", 200, "result"),
        ("api-tasks-get", 400, "error"),
        ("api-tasks-update", 400, "error"),
        ("api-tasks-cancel", 400, "error"),
        ("api-not-json", 400, "error"),
        ("api-header-mismatch", 400, "error"),
    ],
)
def test_an_api_event_is_answered(invoke: Invoke, name: str, status: int, member: str) -> None:
    answer = invoke("api", name)
    assert answer["statusCode"] == status
    assert member in json.loads(answer["body"])


def test_an_api_event_listens(invoke: Invoke) -> None:
    """To nothing: the task is not there, and a buffered subscription follows no lists."""
    acknowledged, message = messages_of(invoke("api", "api-subscriptions-listen"))
    assert acknowledged["params"]["notifications"] == {"taskIds": []}
    assert message["result"]["resultType"] == "complete"


def test_a_worker_event_runs_the_function(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "count_words.py").write_text(tool_in_ten_lines())
    Catalogue.discover(tmp_path)  # `tools` is its package
    running_task(TOOL)
    result = invoke("worker", "worker-function")["result"]
    assert result["structuredContent"] == {"a": 2, "b": 1}


def test_a_stream_event_is_published(invoke: Invoke) -> None:
    """What comes of it is for test_publish to say."""
    assert invoke("publish", "publish-changes") is None


def test_a_queue_event_is_delivered(invoke: Invoke) -> None:
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
    invoke: Invoke, function: str, name: str
) -> None:
    assert invoke(function, name) is None


def test_the_sweeper_ends_what_it_is_told_to(invoke: Invoke) -> None:
    """An execution whose task is gone, too. It answers, so that the caller knows that it can."""
    assert invoke("sweep", "sweep-remove") == {"ended": 1, "undoing": 0, "left": 0}


def test_a_sweep_ends_before_its_function_does(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    assert (metric["ReconcileDelay"], metric["service"]) == ([61.5], "test")
    (directive,) = metric["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "mcp-tasks"
    assert directive["Metrics"] == [{"Name": "ReconcileDelay", "Unit": "Seconds"}]


@pytest.mark.parametrize("name", ["authorize-tools-call", "authorize-no-token"])
def test_an_authorizers_event_without_a_good_token_is_unauthorized(
    invoke: Invoke, name: str
) -> None:
    oauth = {"ISSUER": "https://login.example", "AUDIENCE": "a", "SCOPES": ""}
    with pytest.raises(Exception, match=r"^Unauthorized$"):
        invoke("authorize", name, RESOURCE_METADATA_URL="https://mcp.example", **oauth)


def test_every_event_is_tested() -> None:
    """Here; the messages of dead-letter queues where they are replayed."""
    here = Path(__file__).read_text()
    replay = ROOT / "tests" / "unit" / "operations" / "replay"
    replayed = "".join(file.read_text() for file in replay.glob("test_*.py"))
    names = [file.stem for file in EVENTS.glob("*.json")]
    dead = {name.removeprefix(DEAD) for name in names if name.startswith(DEAD)}
    assert not [hop for hop in dead if f'"{hop}"' not in replayed]
    assert not [name for name in names if not name.startswith(DEAD) and f'"{name}"' not in here]
