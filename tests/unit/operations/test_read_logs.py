"""`make logs`: the lines of all functions, as a person reads them."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from operations.read_logs import Line, follow, read, since

AT = 1_795_500_000_123


def _json(**fields: Any) -> str:
    common = {"level": "INFO", "location": "handler:1", "message": "step ran", "service": "worker"}
    return json.dumps(common | fields)


def test_a_line_of_a_function_is_its_message_and_its_own_fields() -> None:
    text = _json(function_arn="arn:x", cold_start=True, task_id="c1-a", tool="report", frames=["f"])
    assert Line(AT, "Worker", text).shown() == (
        '06:00:00.123  Worker  INFO     step ran  task_id=c1-a tool=report frames=["f"]'
    )


def test_what_a_tool_printed_is_shown_as_it_is() -> None:
    assert Line(AT, "Worker", "Hello\n").shown() == "06:00:00.123  Worker  Hello"
    assert Line(AT, "Worker", "42").shown() == "06:00:00.123  Worker  42"


@pytest.mark.parametrize(
    "text",
    [
        "START RequestId: 1 Version: $LATEST",
        "END RequestId: 1",
        "REPORT RequestId: 1\tDuration: 3 ms",
        "INIT_START Runtime Version: python:3.13",
        json.dumps({"_aws": {"Timestamp": 1}, "TasksCreated": [1]}),
    ],
)
def test_what_says_nothing_is_left_out(text: str) -> None:
    assert Line(AT, "Worker", text).shown() is None


def test_an_invocation_that_failed_is_shown() -> None:
    report = "REPORT RequestId: 1\tDuration: 3 ms\tStatus: error\tError Type: Runtime.ExitError"
    assert Line(AT, "Worker", report).shown() == f"06:00:00.123  Worker  {report}"


@pytest.mark.parametrize(
    ("text", "time"),
    [("90s", timedelta(seconds=90)), ("2h", timedelta(hours=2)), ("3d", timedelta(days=3))],
)
def test_a_time_is_a_number_and_a_unit(text: str, time: timedelta) -> None:
    assert since(text) == time


@pytest.mark.parametrize("text", ["5", "m", "1w", "-1m"])
def test_another_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^since={text}: a number and s, m, h or d"):
        since(text)


class _Logs:
    """Two log groups. Each look at one gives one more line."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.resources = [
            {
                "ResourceType": "AWS::Logs::LogGroup",
                "LogicalResourceId": f"{name}Logs1A2B3C4D",
                "PhysicalResourceId": name,
            }
            for name in ("Api", "ToolsreportWorker")
        ]
        self.resources.append(
            {"ResourceType": "AWS::SQS::Queue", "LogicalResourceId": "Q", "PhysicalResourceId": "q"}
        )

    def client(self, service: str) -> Any:
        """Of CloudWatch Logs."""
        assert service == "logs"
        return SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=self._pages))

    def _pages(self, **asked: Any) -> list[dict[str, Any]]:
        self.asked.append(asked)
        looks = [each for each in self.asked if each["logGroupName"] == asked["logGroupName"]]
        late = 1 if asked["logGroupName"] == "Api" else 0
        return [
            {"events": [{"timestamp": AT + 10 * n + late, "message": f"{n}", "eventId": f"{n}"}]}
            for n in range(len(looks))
        ]


def test_the_lines_of_all_groups_are_read_in_the_order_of_time() -> None:
    logs: Any = _Logs()
    found = read(logs, AT, "c1-a")
    assert [(line.function, line.text) for line in found] == [
        ("ToolsreportWorker", "0"),
        ("Api", "0"),
    ]
    assert [asked.get("filterPattern") for asked in logs.asked] == ['"c1-a"', '"c1-a"']
    assert {asked["startTime"] for asked in logs.asked} == {AT}
    assert "filterPattern" not in (read(logs, AT, None) and logs.asked[-1])


def test_whoever_follows_gets_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.read_logs.time.sleep", lambda _: None)
    monkeypatch.setattr("operations.read_logs.time.time_ns", lambda: (AT + 1_000) * 1_000_000)
    logs: Any = _Logs()
    lines = list(itertools.islice(follow(logs, AT, None), 6))
    assert [line.text for line in lines] == ["0", "0", "1", "1", "2", "2"]
