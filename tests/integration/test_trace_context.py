"""The client's trace context reaches the logs, the execution and the worker (SEP-414)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.integration.support.aws import log_groups, log_lines
from tests.integration.support.client import Client
from tests.integration.support.traces import Traces

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "tracestate": "vendor=t61rcWkgMzE",
    "baggage": "tenant=blue",
}
CSV = "a,b\n1,2\n"
LATELY_MS = 60_000


def lines(aws: Any, task_id: str, message: str) -> list[dict[str, Any]]:
    """The log lines about a task with this message, which arrive some time after it."""
    logs, deadline = aws("logs"), time.monotonic() + 60
    lately = round(time.time() * 1000) - LATELY_MS  # a group has the lines of all tests before
    while True:
        found = []
        for group in log_groups(logs):
            for line in log_lines(logs, group, startTime=lately):
                if task_id in line and f'"{message}"' in line:
                    found.append(json.loads(line[line.index("{") :]))
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("estimate_savings", {"monthly": 1, "years": 1, "share_of_stocks": 1}),
        ("tally_columns", {"csv": CSV}),
    ],
)
def test_trace_context_reaches_all_parts(
    client: Client, traces: Traces, aws: Any, tool: str, arguments: dict[str, Any]
) -> None:
    """For the task of a function, and for a workflow with steps in a Map state."""
    created = client.request("tools/call", {"name": tool, "arguments": arguments}, meta=TRACE)
    task_id = created.result["taskId"]
    execution_input = traces.execution_input(task_id)
    meta = execution_input.get("trace") or execution_input["_meta"]
    assert {name: value for name, value in meta.items() if name != "schema"} == TRACE
    for message in ("request answered", "step ran"):
        found = lines(aws, task_id, message)
        assert found, message
        for line in found:
            assert line["traceparent"] == TRACE["traceparent"]
            # They may hold anything.
            assert not {"tracestate", "baggage"} & line.keys(), line
    client.cancel(task_id)


def test_a_workflow_that_is_not_traced_gets_the_arguments_and_the_version(
    client: Client, traces: Traces
) -> None:
    task_id = client.start("tally_columns", csv=CSV)
    assert traces.execution_input(task_id) == {"csv": CSV, "_meta": {"schema": 2}}
    client.cancel(task_id)


def test_malformed_trace_context_is_dropped(client: Client, traces: Traces) -> None:
    broken = {**TRACE, "traceparent": "00-nonsense-01", "baggage": "a\nb"}
    call = {"name": "tally_columns", "arguments": {"csv": CSV}}
    task_id = client.request("tools/call", call, meta=broken).result["taskId"]
    assert traces.execution_input(task_id) == {"csv": CSV, "_meta": {"schema": 2}}
    client.cancel(task_id)
