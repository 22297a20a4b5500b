"""Two cells behind one custom domain with the routing rules that the cells would deploy.

c1 is `stack`, c2 is `conformance_stack`. The emulator has no custom domains, so the rules come from
a synthesis of both cells behind a domain, and lead to the cells that are deployed. Subscriptions
use the streaming endpoint of each cell. Every test runs with either cell's rules first.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.deployment import LocalStack
from local.gateway import DeployedApi, Gateway
from tests.infra.conftest import CONTEXT
from tests.integration.support.client import Client, accept
from tests.integration.support.router import Domain, Router, rules_of
from tests.integration.support.subscriptions import Received, Subscription
from tests.integration.support.traces import Traces
from tests.paths import ROOT

PRIORITIES = {"c1": {"c1": 20, "c2": 30}, "c2": {"c1": 20, "c2": 10}}
"""The priorities of both cells, by the cell that is first."""
TOOL = '''
from mcp_tasks import tool

@tool
def one() -> int:
    """One."""
    return 1
'''

Template = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A cell with its own endpoints, and one of its tools, which asks one question."""

    name: str
    own: Client
    streaming: Client
    rows: Traces
    tool: str
    arguments: Mapping[str, Any]
    answer: dict[str, Any]

    def start(self, client: Client) -> str:
        """Start a task through `client`, and wait at the cell's own endpoint for its question."""
        task_id = client.start(self.tool, **self.arguments)
        self.own.until_status(task_id, "input_required")
        return task_id

    def reply(self, client: Client, task: Mapping[str, Any]) -> None:
        """Answer the question of a task of the cell."""
        (key,) = task["inputRequests"]
        assert client.update(task["taskId"], {key: self.answer}).status == 200


@dataclass(frozen=True)
class Started:
    """A task that waits for an answer."""

    task_id: str
    cell: Cell


class Naming(Client):
    """A client that knows of cells: its subscriptions name one of their tasks in a header."""

    def __init__(self, url: str, header: str, task_id: str) -> None:
        super().__init__(url)
        self._named = {header: task_id}

    def compose(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, dict[str, str]]:
        """Add the header."""
        return super().compose(method, params, {**self._named, **(headers or {})}, meta)


@pytest.fixture(scope="module")
def cells(
    stack: LocalStack, gateway: Gateway, conformance_stack: LocalStack, aws: Any
) -> Iterator[dict[str, Cell]]:
    """Both cells, by name."""
    with Gateway(DeployedApi.read(conformance_stack, aws)) as second:
        yield {
            "c1": Cell(
                "c1",
                Client(stack.url),
                Client(gateway.url),
                Traces(stack, aws),
                "ask_choice",
                {},
                accept(name="Ada", colour="red"),
            ),
            "c2": Cell(
                "c2",
                Client(conformance_stack.url),
                Client(second.url),
                Traces(conformance_stack, aws),
                "confirm_delete",
                {"filename": "notes.txt"},
                accept(confirm=True),
            ),
        }


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Template]:
    """The templates of both cells behind a domain, by the cell and its priority.

    The rules do not depend on the tools: one tool is enough.
    """
    folder = tmp_path_factory.mktemp("cells")
    (folder / "tools").mkdir()
    (folder / "tools" / "one.py").write_text(TOOL)
    wanted = sorted({item for cells in PRIORITIES.values() for item in cells.items()})
    jobs = [
        {
            "out": str(folder / f"{cell}-{priority}"),
            "context": CONTEXT
            | {"profile": "local", "tools": str(folder / "tools"), "streaming": "true"}
            | {"domain": "mcp.example.com", "cell": cell, "priority": str(priority)},
            "accept": True,
        }
        for cell, priority in wanted
    ]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    files = (folder / "jobs.json", folder / "outcomes.json")
    run = subprocess.run(
        [sys.executable, "-m", "tests.infra.synthesize", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    errors = [outcome["error"] for outcome in json.loads(files[1].read_text())]
    assert errors == [None] * len(jobs)
    return {
        key: json.loads((Path(job["out"]) / "mcp-tasks.template.json").read_text())
        for key, job in zip(wanted, jobs, strict=True)
    }


@pytest.fixture(scope="module", params=["c1", "c2"], ids="{} first".format)
def first(request: pytest.FixtureRequest, cells: dict[str, Cell]) -> Cell:
    """The cell with the lowest priority."""
    return cells[request.param]


@pytest.fixture(scope="module")
def address(
    first: Cell, cells: dict[str, Cell], templates: dict[tuple[str, int], Template]
) -> Iterator[Client]:
    """A client of the domain."""
    rules = []
    for item in PRIORITIES[first.name].items():
        cell, outputs = cells[item[0]], templates[item]["Outputs"]
        apis = {
            outputs["ApiId"]["Value"]["Ref"]: cell.own.url,
            outputs["SubscriptionsApiId"]["Value"]["Ref"]: cell.streaming.url,
        }
        stages = {api: url.removesuffix("/mcp") for api, url in apis.items()}
        rules += rules_of(templates[item], stages)
    with Router(Domain(rules)) as router:
        yield Client(router.url)


@pytest.fixture
def other(first: Cell, cells: dict[str, Cell]) -> Cell:
    """The cell that is not `first`."""
    (other,) = (cell for cell in cells.values() if cell is not first)
    return other


@pytest.fixture(params=["c1", "c2"])
def cell(request: pytest.FixtureRequest, cells: dict[str, Cell]) -> Cell:
    """One of the two."""
    return cells[request.param]


@pytest.fixture(params=["in c1", "in c2", "at the one address"])
def started(
    request: pytest.FixtureRequest, address: Client, first: Cell, cells: dict[str, Cell]
) -> Started:
    """A task that was created through a cell's own endpoint, or through the domain."""
    home = cells.get(request.param.removeprefix("in "))
    if home is None:
        return Started(first.start(address), first)
    return Started(home.start(home.own), home)


def test_a_call_goes_to_the_cell_with_the_lowest_priority(
    address: Client, first: Cell, other: Cell
) -> None:
    assert first.start(address).startswith(f"{first.name}-")
    unknown = address.call(other.tool, **other.arguments).error
    assert unknown["code"] == -32602


def test_a_task_is_found_and_answered_through_the_domain(address: Client, started: Started) -> None:
    task = address.get(started.task_id)
    assert task["status"] == "input_required"
    started.cell.reply(address, task)
    assert address.end(started.task_id) == started.cell.own.get(started.task_id)
    assert address.get(started.task_id)["status"] == "completed"


def test_a_task_is_cancelled_through_the_domain(address: Client, started: Started) -> None:
    assert address.cancel(started.task_id).status == 200
    assert address.get(started.task_id)["status"] == "cancelled"
    assert started.cell.own.get(started.task_id)["status"] == "cancelled"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_wrong_cell_refuses_a_task_and_reveals_nothing_of_it(
    method: str, cell: Cell, cells: dict[str, Cell]
) -> None:
    """The response has nothing of the task's id, and the cell writes no row."""
    (wrong,) = (found for found in cells.values() if found is not cell)
    task_id = cell.start(cell.own)
    rows = wrong.rows.rows()
    for client in (wrong.own, wrong.streaming):
        refused = client.request(method, {"taskId": task_id, "inputResponses": {}})
        assert refused.error["code"] == -32602
        assert "of another cell" in refused.error["message"]
        assert cell.name not in refused.body.decode()
        assert task_id.partition("-")[2] not in refused.body.decode()
    assert wrong.rows.rows() <= rows  # rows may expire in between
    assert cell.own.get(task_id)["status"] == "input_required"


@pytest.mark.parametrize("header", ["Mcp-Name", "mcp-name"])
def test_a_subscription_that_names_a_task_streams_from_its_cell(
    header: str, address: Client, cell: Cell
) -> None:
    """The question is answered when it arrives: the changes after it were streamed live."""
    task_id = cell.start(cell.own)
    subscription = Subscription(Naming(address.url, header, task_id), [task_id])
    subscription.run(_replies(address, cell))
    assert subscription.accepted == [task_id]
    assert _statuses(subscription) == ["input_required", "working", "completed"]
    assert subscription.graceful


def test_a_subscription_that_names_no_task_goes_to_the_cell_with_the_lowest_priority(
    address: Client, first: Cell, other: Cell
) -> None:
    """subscriptions.mdx, "Acknowledgment": tasks of the other cell are left out."""
    elsewhere, here = other.start(other.own), first.start(first.own)
    subscription = Subscription(address, [elsewhere, here]).run(_replies(address, first))
    assert subscription.accepted == [here]
    assert _statuses(subscription) == ["input_required", "working", "completed"]
    assert subscription.graceful
    assert elsewhere not in json.dumps([received.message for received in subscription.received])
    assert other.own.get(elsewhere)["status"] == "input_required"


@pytest.mark.parametrize("encoded", [True, False], ids=["encoded", "missing"])
def test_a_name_that_no_rule_matches_goes_to_the_cell_with_the_lowest_priority(
    encoded: bool, address: Client, first: Cell, other: Cell
) -> None:
    """streamable-http.mdx, "Value Encoding": the header may be Base64, which a glob cannot see."""

    def get(task_id: str) -> dict[str, Any]:
        sentinel = f"=?base64?{base64.b64encode(task_id.encode()).decode()}?="
        headers = {"Mcp-Name": sentinel if encoded else None}
        return address.request("tasks/get", {"taskId": task_id}, headers).message

    here = first.start(first.own)
    assert get(here)["result"]["taskId"] == here
    refused = get(other.start(other.own))["error"]
    assert refused["code"] == -32602
    assert "by the header Mcp-Name: send the task's id in it, as it is" in refused["message"]


def _replies(address: Client, cell: Cell) -> Any:
    """A callback that answers a task's question through `address` as soon as it arrives."""

    def answer(received: Received) -> bool:
        task = received.message.get("params", {})
        if task.get("status") == "input_required":
            cell.reply(address, task)
        return False

    return answer


def _statuses(subscription: Subscription) -> list[str]:
    return [state["status"] for state in subscription.changes()]
