"""From a Step Functions status event to the task's row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.rows import TaskTable
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from mcp_tasks.workflows.executions import ExecutionEnd, execution_arn
from mcp_tasks.workflows.finish import finish
from tests.unit.aws import Calls, raw_rows, refusing
from tests.unit.example_task import HOUR, ID, NOW, a_task
from tests.unit.stack import PREFIX

EVENTS: Final = Path(__file__).resolve().parents[2] / "events"
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}


class Ended:
    """Executions that ended in a certain way."""

    def __init__(self, end: ExecutionEnd, before: Callable[[], object] = lambda: None) -> None:
        self.end = end
        self.before = before
        self.described: list[str] = []

    def describe(self, arn: str) -> ExecutionEnd:
        self.described.append(arn)
        self.before()
        return self.end


def task_of(tool: str, **changes: Any) -> Task:
    return a_task(tool=tool, state_machine_arn=f"{PREFIX}{tool}", **changes)


def detail(tool: str = "count", **changes: Any) -> dict[str, Any]:
    """A status event's detail; the output is left out, as EventBridge does with large ones."""
    return {
        "executionArn": execution_arn(f"{PREFIX}{tool}", ID),
        "stateMachineArn": f"{PREFIX}{tool}",
        "name": ID,
        "status": "SUCCEEDED",
        "output": None,
        "outputDetails": {"included": False},
        **changes,
    }


def succeeded(output: Any) -> ExecutionEnd:
    return ExecutionEnd("SUCCEEDED", output=output)


def run(
    rows: TaskTable,
    catalogue: Catalogue,
    end: ExecutionEnd | Ended,
    tool: str = "count",
    now: int = NOW + 1,
) -> Status | None:
    executions: Any = end if isinstance(end, Ended) else Ended(end)
    return finish(detail(tool), rows, executions, catalogue, now)


def test_a_function_tools_result_is_taken_as_it_is(rows: TaskTable, catalogue: Catalogue) -> None:
    rows.create(task_of("count"))
    assert run(rows, catalogue, succeeded(RESULT)) is Status.COMPLETED
    task = rows.get(ID, NOW)
    assert (task.status, task.result) == (Status.COMPLETED, RESULT)


def test_a_workflows_output_becomes_structured_content(
    rows: TaskTable, catalogue: Catalogue
) -> None:
    rows.create(task_of("review"))
    assert run(rows, catalogue, succeeded({"words": 2}), "review") is Status.COMPLETED
    result = rows.get(ID, NOW).result
    assert result is not None
    assert result["structuredContent"] == {"words": 2}
    assert json.loads(result["content"][0]["text"]) == {"words": 2}


@pytest.mark.parametrize("output", [{"words": "two"}, {}, None, [], "text"])
def test_a_workflows_output_of_another_type_fails_the_task(
    rows: TaskTable, catalogue: Catalogue, output: Any
) -> None:
    """tools.mdx: structured content must conform to the output schema."""
    rows.create(task_of("review"))
    assert run(rows, catalogue, succeeded(output), "review") is Status.FAILED
    error = rows.get(ID, NOW).error
    assert error is not None
    assert error["code"] == -32603
    assert "output schema" in error["message"]


def test_a_failure_is_a_failed_task(rows: TaskTable, catalogue: Catalogue) -> None:
    rows.create(task_of("count"))
    end = ExecutionEnd("FAILED", error="KeyError", cause="hunter2")
    assert run(rows, catalogue, end) is Status.FAILED
    task = rows.get(ID, NOW)
    assert task.error == {"code": -32603, "message": "The tool failed: KeyError"}
    assert task.status_message == "The tool failed: KeyError"


def test_a_tool_error_completes_the_task(rows: TaskTable, catalogue: Catalogue) -> None:
    rows.create(task_of("review"))
    end = ExecutionEnd("FAILED", error="ToolError", cause="Nothing to do")
    assert run(rows, catalogue, end, "review") is Status.COMPLETED
    result = rows.get(ID, NOW).result
    assert result == {"content": [{"type": "text", "text": "Nothing to do"}], "isError": True}


@pytest.mark.parametrize("status", ["TIMED_OUT", "ABORTED"])
def test_an_execution_that_did_not_end_by_itself_fails_the_task(
    rows: TaskTable, catalogue: Catalogue, status: str
) -> None:
    rows.create(task_of("count"))
    assert run(rows, catalogue, ExecutionEnd(status)) is Status.FAILED
    assert rows.get(ID, NOW).error


def test_the_output_is_read_and_not_taken_from_the_event(
    rows: TaskTable, catalogue: Catalogue
) -> None:
    """Events leave large outputs out."""
    rows.create(task_of("count"))
    executions = Ended(succeeded(RESULT))
    wrong = detail(output='{"content": []}', outputDetails={"included": True})
    finish(wrong, rows, executions, catalogue, NOW + 1)  # type: ignore[arg-type]
    assert executions.described == [execution_arn(f"{PREFIX}count", ID)]
    assert rows.get(ID, NOW).result == RESULT


@pytest.mark.parametrize("name", ["finish-succeeded-large", "finish-succeeded"])
def test_an_event_of_aws_is_understood(rows: TaskTable, catalogue: Catalogue, name: str) -> None:
    event = json.loads((EVENTS / f"{name}.json").read_text())["detail"]
    rows.create(a_task(task_id=event["name"], state_machine_arn=event["stateMachineArn"]))
    executions: Any = Ended(succeeded(RESULT))
    assert finish(event, rows, executions, catalogue, NOW + 1) is Status.COMPLETED


# late, twice, out of order


@pytest.mark.parametrize("first", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_an_end_after_another_end_changes_nothing(
    rows: TaskTable, catalogue: Catalogue, first: Status
) -> None:
    """A redriven execution, an event delivered twice, a cancel that came before."""
    rows.create(task_of("count"))
    match first:
        case Status.COMPLETED:
            rows.complete(ID, RESULT, NOW)
        case Status.FAILED:
            rows.fail(ID, {"code": -32603, "message": "no"}, "no", NOW)
        case _:
            rows.cancel(ID, NOW, "alice")
    before = raw_rows()
    executions = Ended(succeeded({"content": []}))
    assert run(rows, catalogue, executions) is None
    assert raw_rows() == before
    assert executions.described == [], "nothing to read for a task that is over"


def test_a_cancel_during_the_finish_stands(rows: TaskTable, catalogue: Catalogue) -> None:
    """docs/design.md, "The row is the truth": whichever write came first stands."""
    rows.create(task_of("count"))
    executions = Ended(succeeded(RESULT), before=lambda: rows.cancel(ID, NOW, "alice"))
    assert run(rows, catalogue, executions) is None
    task = rows.get(ID, NOW)
    assert (task.status, task.result) == (Status.CANCELLED, None)


def test_an_execution_that_runs_again_is_left_alone(rows: TaskTable, catalogue: Catalogue) -> None:
    """Redrive, up to 14 days later: its end will be told by another event."""
    rows.create(task_of("count"))
    assert run(rows, catalogue, ExecutionEnd("RUNNING")) is None
    assert rows.get(ID, NOW).status is Status.WORKING


def test_an_execution_that_is_no_tasks_is_left_alone(rows: TaskTable, catalogue: Catalogue) -> None:
    """A wrapped state machine is started by others too."""
    executions = Ended(succeeded(RESULT))
    assert run(rows, catalogue, executions) is None
    assert executions.described == []
    assert raw_rows() == []


def test_an_execution_of_another_state_machine_is_not_the_tasks(
    rows: TaskTable, catalogue: Catalogue
) -> None:
    """Names are unique per state machine only: a workflow may name a child after itself."""
    rows.create(task_of("count"))
    executions = Ended(succeeded({"content": []}))
    assert run(rows, catalogue, executions, tool="review") is None
    assert rows.get(ID, NOW).status is Status.WORKING


def test_an_expired_task_is_left_alone(rows: TaskTable, catalogue: Catalogue) -> None:
    rows.create(task_of("count"))
    before = raw_rows()
    assert run(rows, catalogue, succeeded(RESULT), now=NOW + HOUR) is None
    assert raw_rows() == before


def test_an_error_of_aws_is_raised_so_that_the_event_is_retried(
    rows: TaskTable, catalogue: Catalogue, aws: Calls
) -> None:
    rows.create(task_of("count"))
    aws.instead["update_item"] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(Exception, match="InternalServerError"):
        run(rows, catalogue, succeeded(RESULT))


# tools that changed since


def test_a_removed_tools_output_is_taken_as_it_is(rows: TaskTable, catalogue: Catalogue) -> None:
    rows.create(a_task(tool="gone", state_machine_arn=f"{PREFIX}gone"))
    assert run(rows, catalogue, succeeded(RESULT), "gone") is Status.COMPLETED
    assert rows.get(ID, NOW).result == RESULT


# results that do not fit


@pytest.mark.parametrize(
    "text",
    ["x" * 250_000, "ж" * 125_000, '"' * 125_000, "\n" * 125_000, "\x00" * 40_000],
    ids=["ascii", "cyrillic", "quotes", "line breaks", "control characters"],
)
def test_an_output_of_any_size_ends_the_task(
    rows: TaskTable, catalogue: Catalogue, text: str
) -> None:
    """Step Functions passes 256 KiB of output and DynamoDB keeps 400 KB a row, result as JSON.

    A result that does not fit must fail the task: an unwritten end would leave it working.
    """
    rows.create(a_task(tool="orders", state_machine_arn=f"{PREFIX}orders"))
    output = {"text": text}
    assert len(json.dumps(output, ensure_ascii=False).encode()) <= 256 * 1024
    assert run(rows, catalogue, succeeded(output), "orders") in (Status.COMPLETED, Status.FAILED)
    task = rows.get(ID, NOW)
    assert task.status.terminal
    if task.status is Status.FAILED:
        assert "larger than" in (task.status_message or "")
