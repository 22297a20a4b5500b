"""Metrics that are read off the functions' logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tasks import metrics
from operations.dashboard.log_samples import BYTES_OF_AN_EVENT, samples
from operations.read_logs import Line

AT = 1_795_500_000_123


def _of(text: str, function: str = "Api") -> dict[Any, list[float]]:
    """The values of one line, without its bytes."""
    found = samples([Line(AT, function, text)])
    assert found.pop(("AWS/Logs", "IncomingBytes", function)) == [
        (AT, len(text.encode()) + BYTES_OF_AN_EVENT)
    ]
    assert all(at == AT for each in found.values() for at, _ in each)
    return {key: [value for _, value in each] for key, each in found.items()}


def test_an_invocation_is_counted_when_it_begins() -> None:
    assert _of("START RequestId: 1 Version: $LATEST", "Finish") == {
        ("AWS/Lambda", "Invocations", "Finish"): [1],
        ("AWS/Lambda", "Errors", "Finish"): [0],
    }


@pytest.mark.parametrize(
    "text",
    [
        "[ERROR] ValueError",
        "2026-11-24T06:00:00.123Z 1 Task timed out after 3.00 seconds",
        "REPORT RequestId: 1\tDuration: 3 ms\tStatus: error\tError Type: Runtime.ExitError",
    ],
)
def test_an_invocation_that_fails_is_an_error(text: str) -> None:
    assert _of(text, "Finish") == {("AWS/Lambda", "Errors", "Finish"): [1]}


@pytest.mark.parametrize(("status", "refused", "failed"), [(200, 0, 0), (429, 1, 0), (503, 0, 1)])
def test_a_request_is_counted_by_its_status(status: int, refused: int, failed: int) -> None:
    fields = {"message": "request answered", "status": status, "method": "tools/call"}
    assert _of(json.dumps(fields | {"duration_ms": 40})) == {
        ("AWS/ApiGateway", "Count", "Api"): [1],
        ("AWS/ApiGateway", "4XXError", "Api"): [refused],
        ("AWS/ApiGateway", "5XXError", "Api"): [failed],
    }


def test_the_time_of_what_waits_for_nothing_is_a_sample() -> None:
    fields = {"message": "request answered", "status": 200, "method": "tasks/get"}
    found = _of(json.dumps(fields | {"duration_ms": 40}))
    assert found["", metrics.ANSWER_TIME, ""] == [40]


def test_an_embedded_metric_counts_for_the_stack_and_for_its_tool() -> None:
    text = json.dumps(
        {
            "_aws": {"CloudWatchMetrics": [{"Metrics": [{"Name": "TaskDuration"}]}]},
            "TaskDuration": [1.5, 2.5],
            "tool": "report",
        }
    )
    assert _of(text, "Publish") == {
        ("", "TaskDuration", ""): [1.5, 2.5],
        ("", "TaskDuration", "report"): [1.5, 2.5],
    }


@pytest.mark.parametrize("text", ["Hello", "{", '["a"]', '{"message": "step ran"}'])
def test_another_line_has_bytes_only(text: str) -> None:
    assert _of(text) == {}
