"""`api/streaming.py`: the function whose responses are streamed."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.server.http.messages import JSON_HEADERS
from mcp_tasks.server.methods.subscriptions import STREAM_END_MS
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.ids import new_task_id
from mcp_tasks.tasks.task import ANYONE
from mcp_tasks.tasks.task_table import TaskTable
from tests import wire
from tests.unit.support.aws import Calls, create_callers, create_mailboxes, create_table, real
from tests.unit.support.cloud import Context
from tests.unit.support.example_task import a_task
from tests.unit.support.listening import Taken, Time, events
from tests.unit.support.stack import ENVIRONMENT, LOGGER, meta, mirrored


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A proxy event."""
    params = {**params, "_meta": {**meta(), **params.get("_meta", {})}}
    return {
        "headers": mirrored(method, params),
        "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        "requestContext": {"identity": {}},
    }


def messages(taken: Taken) -> list[Any]:
    """What a client reads."""
    return [json.loads(data) for data in events(taken.text)]


@dataclass
class Invocation(Context):
    """What the runtime loop says beside the event."""

    remaining_ms: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    found.rule(monkeypatch)
    monkeypatch.setattr("mcp_tasks.tasks.task.now_ms", found.read)
    return found


@pytest.fixture
def function(
    moto: None, aws: Calls, catalogue: Catalogue, time: Time, tmp_path: Path, monkeypatch: Any
) -> Iterator[Callable[..., None]]:
    """The function as a new instance of it starts."""
    catalogue.write(tmp_path / FILE_NAME)
    ServerIdentity("n", "1").write(tmp_path)
    monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", tmp_path)
    session = SimpleNamespace(create_client=lambda service, config: real(service))
    monkeypatch.setattr("mcp_tasks.aws.clients.get_session", lambda: session)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    create_table()
    create_mailboxes()
    create_callers()
    sys.modules.pop("api.handler", None)
    yield importlib.import_module("api.streaming").load()
    del sys.modules["api.handler"]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(LOGGER.registered_handler, "stream", text)
    return text


def a_new_task(time: Time) -> str:
    """The id of a task that works."""
    now, task_id = time.now, new_task_id("c1")
    task = a_task(task_id=task_id, principal=ANYONE, created_at=now, last_updated_at=now)
    TaskTable(real("dynamodb"), ENVIRONMENT["TASKS_TABLE"]).create(task)
    return task_id


def test_a_subscription_lasts_as_long_as_the_function_may_run(
    function: Callable[..., None], time: Time
) -> None:
    task_id, began, taken = a_new_task(time), time.now, Taken()
    event = request(wire.LISTEN, {"notifications": {"taskIds": [task_id]}})
    function(event, Invocation(remaining_ms=40_000), taken)
    assert time.now - began == 40_000 - STREAM_END_MS
    wire.check_listen(1, messages(taken), [task_id])


def test_a_response_without_notifications_is_json(function: Callable[..., None]) -> None:
    taken = Taken()
    function(request("tools/call", {"name": "echo", "arguments": {"text": "hi"}}), Context(), taken)
    assert (taken.status, taken.headers) == (200, {**JSON_HEADERS, "Vary": "Origin"})
    assert json.loads(taken.text)["result"]["content"] == [{"type": "text", "text": "hi"}]


PAGE = "https://app.example.com"


@pytest.mark.parametrize(
    ("method", "params", "kind"),
    [
        ("tools/list", {}, "application/json"),
        (wire.LISTEN, {"notifications": {}}, "text/event-stream"),
    ],
)
def test_an_allowed_page_can_read_the_response(
    function: Callable[..., None], method: str, params: dict[str, Any], kind: str
) -> None:
    """Fetch standard, section 3.2.3."""
    taken, event = Taken(), request(method, params)
    event["headers"]["Origin"] = PAGE
    function(event, Context(), taken)
    assert taken.headers["Content-Type"] == kind
    assert taken.headers["Access-Control-Allow-Origin"] == PAGE
    assert "Mcp-Session-Id" in taken.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    ("origin", "status", "named"), [(PAGE, 200, PAGE), ("https://evil.example", 403, None)]
)
def test_a_preflight_is_answered_without_a_caller(
    function: Callable[..., None], origin: str, status: int, named: str | None
) -> None:
    taken = Taken()
    function({"httpMethod": "OPTIONS", "headers": {"Origin": origin}}, Context(), taken)
    assert (taken.status, taken.headers.get("Access-Control-Allow-Origin")) == (status, named)
    assert ("Access-Control-Allow-Methods" in taken.headers) is (named is not None)


def test_a_line_of_the_functions_log_is_of_its_own_invocation(
    function: Callable[..., None], time: Time, log: io.StringIO
) -> None:
    """Powertools, "Clearing all state": an instance that streams answers many, as any other."""
    task_id = a_new_task(time)
    call = request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    function(call, Invocation(aws_request_id="first"), Taken())
    listen = request(wire.LISTEN, {"notifications": {"taskIds": [task_id]}})
    function(listen, Invocation(aws_request_id="second", remaining_ms=0), Taken())
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    answered = [line for line in lines if line["message"] == "request answered"]
    assert [line["function_request_id"] for line in answered] == ["first", "second"]
    assert [line.get("tool") for line in answered] == ["echo", None]
    assert [line["method"] for line in answered] == ["tools/call", "subscriptions/listen"]
    assert all(isinstance(line["duration_ms"], int) for line in answered), "a metric reads it"
    (listened,) = [line for line in lines if line["message"] == "subscription ended"]
    assert (listened["function_request_id"], listened["tasks"]) == ("second", 1)
