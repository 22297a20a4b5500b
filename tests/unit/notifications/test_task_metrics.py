"""What a change of a row counts for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_tasks import metrics
from mcp_tasks.notifications.task_metrics import count_tasks, measure
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_item import item_of
from tests.unit.support.emf import metrics_in
from tests.unit.support.example_task import NOW, a_task

WORKING: Final = a_task()
WAITING: Final = replace(WORKING, status=Status.INPUT_REQUIRED, last_updated_at=NOW + 1_000)


def record(old: Task | None, new: Task | None) -> dict[str, Any]:
    """A record of the table's stream (DynamoDB API reference, "StreamRecord")."""
    images = {"OldImage": old, "NewImage": new}
    return {"dynamodb": {name: item_of(task) for name, task in images.items() if task}}


def later(task: Task, status: Status, after_ms: int) -> Task:
    return replace(task, status=status, last_updated_at=NOW + after_ms)


@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        (None, WORKING, {metrics.TASKS_CREATED: [1]}),
        (WORKING, WAITING, {metrics.INPUT_REQUIRED: [1]}),
        (WAITING, later(WAITING, Status.WORKING, 61_000), {metrics.INPUT_WAIT: [60]}),
        (
            WORKING,
            later(WORKING, Status.COMPLETED, 2_500),
            {metrics.TASKS_COMPLETED: [1], metrics.TASK_DURATION: [2.5]},
        ),
        (
            WORKING,
            later(WORKING, Status.FAILED, 3_000),
            {metrics.TASKS_FAILED: [1], metrics.TASK_DURATION: [3]},
        ),
        (
            WAITING,
            later(WAITING, Status.CANCELLED, 4_000),
            {
                metrics.INPUT_WAIT: [3],
                metrics.TASKS_CANCELLED: [1],
                metrics.TASK_DURATION: [4],
            },
        ),
    ],
)
def test_a_change_of_state_counts_once(
    old: Task | None, new: Task, values: dict[str, list[float]]
) -> None:
    assert measure([record(old, new)]) == {"count": values}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WORKING, replace(WORKING, status_message="half done", revision=2)),
        (WAITING, replace(WAITING, input_revision=2, revision=3)),
        (WORKING, None),
    ],
    ids=["a report", "another question", "the row's expiry"],
)
def test_what_changes_no_state_does_not_count(old: Task, new: Task | None) -> None:
    assert measure([record(old, new)]) == {}


def test_what_is_no_task_does_not_count_and_stops_nothing() -> None:
    odd = {"dynamodb": {"NewImage": {"taskId": {"S": "x"}, "status": {"S": "melting"}}}}
    assert measure([odd, record(None, WORKING)]) == {"count": {metrics.TASKS_CREATED: [1]}}


def test_a_batch_is_a_line_for_each_tool(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted is added up: a query adds the lines up. Times stay apart, for percentiles."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "mine")
    other = replace(WORKING, tool="other")
    ended = [record(WORKING, later(WORKING, Status.COMPLETED, ms)) for ms in (1_000, 9_000)]
    count_tasks([record(None, WORKING), record(None, other), *ended], by_tool=False)
    first, second = metrics_in(capsys.readouterr().out)
    assert (first.namespace, first.dimensions) == ("mine", [["service"]])
    assert first.members == {"service": metrics.SERVICE, "tool": "count"}
    assert first.values == {
        metrics.TASKS_CREATED: [1],
        metrics.TASKS_COMPLETED: [2],
        metrics.TASK_DURATION: [1, 9],
    }
    assert first.units[metrics.TASK_DURATION] == "Seconds"
    assert first.units[metrics.TASKS_COMPLETED] == "Count"
    assert (second.members["tool"], second.values) == ("other", {metrics.TASKS_CREATED: [1]})


def test_by_tool_the_same_line_makes_metrics_of_the_tool_as_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    count_tasks([record(None, WORKING)], by_tool=True)
    (line,) = metrics_in(capsys.readouterr().out)
    assert line.dimensions == [["service"], ["service", "tool"]]
    assert line.members == {"service": metrics.SERVICE, "tool": "count"}


def test_a_large_batch_loses_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """A batch has up to 100 records (`infra/publish.py`), as many as a line takes values."""
    ended = [record(WORKING, later(WORKING, Status.COMPLETED, ms)) for ms in range(100)]
    count_tasks(ended, by_tool=False)
    lines = metrics_in(capsys.readouterr().out)
    assert sum(len(line.values.get(metrics.TASK_DURATION, [])) for line in lines) == 100
    assert sum(sum(line.values.get(metrics.TASKS_COMPLETED, [])) for line in lines) == 100
