"""`make tasks` and `make logs` against a deployed stack."""

from __future__ import annotations

import time
from typing import Any

from local.deployment import LocalStack
from mcp_tasks.tasks.task import now_ms
from operations.dashboard.__main__ import render
from operations.deployed_stack import DeployedStack
from operations.live_tasks import live, one, table
from operations.read_logs import Line, read
from tests.integration.support.client import Client

LOG_SECONDS = 20


def test_a_task_that_waits_is_listed_until_it_ends(
    client: Client, stack: LocalStack, aws: Any
) -> None:
    deployed = DeployedStack(stack.name, aws)
    task_id = client.start("gather", pages=1)
    client.until_status(task_id, "input_required")
    listed = {row.task_id: row for row in live(deployed, "gather")}
    assert listed[task_id].values["status"] == "input_required"
    assert any(line.startswith(task_id) for line in table(list(listed.values()), now_ms()))
    assert task_id not in {row.task_id for row in live(deployed, "fill")}
    client.cancel(task_id)
    client.until_status(task_id, "cancelled")
    assert task_id not in {row.task_id for row in live(deployed, None)}
    assert one(deployed, task_id).values["status"] == "cancelled"


def test_the_lines_of_a_task_are_found_in_all_logs(
    client: Client, stack: LocalStack, aws: Any
) -> None:
    deployed = DeployedStack(stack.name, aws)
    begin = now_ms() - 1_000
    task_id = client.start("fill", size=10)
    client.end(task_id)
    deadline = time.monotonic() + LOG_SECONDS
    wanted = {"Api", "ToolsfillWorker", "Finish"}
    lines: list[Line] = []
    while not wanted <= {line.function for line in lines}:
        assert time.monotonic() < deadline, lines
        lines = read(deployed, begin, task_id)
        time.sleep(0.1)
    assert all(task_id in line.text for line in lines)
    assert lines == sorted(lines)
    created = [shown for line in lines if "action=create" in (shown := line.shown() or "")]
    assert len(created) == 1


def test_the_dashboard_shows_what_runs(client: Client, stack: LocalStack, aws: Any) -> None:
    task_id = client.start("gather", pages=1)
    client.until_status(task_id, "input_required")
    text = render(DeployedStack(stack.name, aws), local=True, minutes=60)
    assert f"<td>{task_id}</td>" in text
    assert "Api requests" in text
    client.cancel(task_id)
