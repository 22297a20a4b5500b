"""The official SDK's client with the tasks extension of client/."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client

from local.deployment import LocalStack
from mcp_tasks_client import TaskFailed, TasksExtension
from tests.paths import ROOT


async def fill_in(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Give every question the same answer."""
    return types.ElicitResult(action="accept", content={"share_of_stocks": 0.5})


def call(stack: LocalStack, tool: str, mode: str, **arguments: Any) -> types.CallToolResult:
    """Call a tool as a user of the SDK does: `call_tool` polls the task."""

    async def run() -> types.CallToolResult:
        async with Client(
            stack.url, mode=mode, elicitation_callback=fill_in, extensions=[TasksExtension()]
        ) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(run())


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_call_tool_returns_a_tasks_result(stack: LocalStack, mode: str) -> None:
    result = call(stack, "estimate_savings", mode, monthly=100, years=10, runs=200)
    assert not result.is_error
    assert result.structured_content
    assert result.structured_content["paid_in"] == 12000


def test_a_failed_task_is_an_exception_with_its_code(stack: LocalStack) -> None:
    async def run() -> None:
        async with Client(stack.url, extensions=[TasksExtension()]) as client:
            await client.call_tool("crash", {"secret": "x"})

    with pytest.RaisesGroup(TaskFailed, allow_unwrapped=True, flatten_subgroups=True):
        asyncio.run(run())


def test_the_demo_skips_checks_whose_sample_tools_are_not_there(stack: LocalStack) -> None:
    """A fork has removed them. What is left of `make demo` passes."""
    done = subprocess.run(
        [sys.executable, "-m", "local.demo", stack.url],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: the server has no simulate_savings" in done.stdout
    assert "2 of 2 checks passed" in done.stdout
