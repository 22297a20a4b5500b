"""From a Step Functions status event to the task's row."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from mcp_tasks.payloads.pointer import PayloadPointer
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.registry import results
from mcp_tasks.registry.catalogue import Catalogue, ToolEntry
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task
from mcp_tasks.tasks.task_table import TaskTable
from mcp_tasks.workflows.end_task import MAX_ROW_RESULT_BYTES, TaskEnds
from mcp_tasks.workflows.execution_outcome import TIMED_OUT
from mcp_tasks.workflows.executions import ExecutionEnd, execution_arn
from mcp_tasks.workflows.finish import finish
from tests.paths import EVENTS
from tests.unit.support.aws import Calls, raw_rows, refusing
from tests.unit.support.example_task import HOUR, ID, NOW, a_task
from tests.unit.support.stack import PREFIX

RESULT: Final = {"content": [{"type": "text", "text": "done"}]}

Run = Callable[..., Status | None]


class Ended:
    """Executions that ended in a certain way."""

    def __init__(
        self, end: ExecutionEnd | None, before: Callable[[], object] = lambda: None
    ) -> None:
        self.end = end
        self.before = before
        self.described: list[str] = []

    def describe(self, state_machine_arn: str, task_id: str) -> ExecutionEnd | None:
        self.described.append(execution_arn(state_machine_arn, task_id))
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


@pytest.fixture
def run(rows: TaskTable, catalogue: Catalogue, payloads: PayloadStore) -> Run:
    """Hear of an execution's end; `about` are members of the event's detail."""

    def heard(
        end: ExecutionEnd | Ended | None, tool: str = "count", now: int = NOW + 1, **about: Any
    ) -> Status | None:
        executions: Any = end if isinstance(end, Ended) else Ended(end)
        return finish(detail(tool, **about), TaskEnds(rows, executions, catalogue, payloads), now)

    return heard


def test_a_function_tools_result_is_taken_as_it_is(rows: TaskTable, run: Run) -> None:
    rows.create(task_of("count"))
    assert run(succeeded(RESULT)) is Status.COMPLETED
    task = rows.get(ID, NOW)
    assert (task.status, task.result) == (Status.COMPLETED, RESULT)


def test_a_workflows_output_becomes_structured_content(rows: TaskTable, run: Run) -> None:
    rows.create(task_of("review"))
    assert run(succeeded({"words": 2}), "review") is Status.COMPLETED
    result = rows.get(ID, NOW).result
    assert result is not None
    assert result["structuredContent"] == {"words": 2}
    assert json.loads(result["content"][0]["text"]) == {"words": 2}


@pytest.mark.parametrize("output", [{"words": "two"}, {}, None, [], "text"])
def test_a_workflows_output_of_another_type_fails_the_task(
    rows: TaskTable, run: Run, output: Any
) -> None:
    """tools.mdx: structured content must conform to the output schema."""
    rows.create(task_of("review"))
    assert run(succeeded(output), "review") is Status.FAILED
    error = rows.get(ID, NOW).error
    assert error is not None
    assert error["code"] == -32603
    assert "output schema" in error["message"]


@pytest.mark.parametrize("error", [KeyError, RecursionError, AttributeError])
def test_a_validator_that_crashes_fails_the_task_and_not_the_function(
    rows: TaskTable, run: Run, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """It would do so at every attempt, and the task would work as long as it lives."""
    monkeypatch.setattr(results, "workflow_result", Mock(side_effect=error("hunter2")))
    rows.create(task_of("review"))
    assert run(succeeded({"words": 2}), "review") is Status.FAILED
    ended = rows.get(ID, NOW).error
    assert ended is not None
    assert "output schema" in ended["message"]
    assert "hunter2" not in ended["message"]


def test_a_tool_that_cannot_be_loaded_is_the_functions_fault(
    rows: TaskTable, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment that is mended may still bring the result: the event is kept."""
    monkeypatch.setattr(ToolEntry, "load", Mock(side_effect=ImportError("gone")))
    rows.create(task_of("review"))
    with pytest.raises(ImportError):
        run(succeeded({"words": 2}), "review")
    assert rows.get(ID, NOW).status is Status.WORKING
    assert run(ExecutionEnd("FAILED", error="KeyError"), "review") is Status.FAILED


def test_a_failure_is_a_failed_task(rows: TaskTable, run: Run) -> None:
    rows.create(task_of("count"))
    end = ExecutionEnd("FAILED", error="KeyError", cause="hunter2")
    assert run(end) is Status.FAILED
    task = rows.get(ID, NOW)
    assert task.error == {"code": -32603, "message": "The tool failed: KeyError"}
    assert task.status_message == "The tool failed: KeyError"


def test_a_tool_error_completes_the_task(rows: TaskTable, run: Run) -> None:
    rows.create(task_of("review"))
    end = ExecutionEnd("FAILED", error="ToolError", cause="Nothing to do")
    assert run(end, "review") is Status.COMPLETED
    result = rows.get(ID, NOW).result
    assert result == {"content": [{"type": "text", "text": "Nothing to do"}], "isError": True}


@pytest.mark.parametrize("status", ["TIMED_OUT", "ABORTED"])
def test_an_execution_that_did_not_end_by_itself_fails_the_task(
    rows: TaskTable, run: Run, status: str
) -> None:
    rows.create(task_of("count"))
    assert run(ExecutionEnd(status)) is Status.FAILED
    assert rows.get(ID, NOW).error


@pytest.mark.parametrize(
    ("end", "sequential", "may_run"),
    [
        (ExecutionEnd("SUCCEEDED", output=RESULT), False, False),
        (ExecutionEnd("FAILED", error="ValueError"), True, False),
        (ExecutionEnd("FAILED", error="ValueError"), False, True),
        (ExecutionEnd("FAILED", error="ToolError"), False, True),
        (ExecutionEnd("TIMED_OUT"), True, True),
    ],
    ids=str,
)
def test_a_task_counts_while_a_step_may_outlive_its_execution(
    rows: TaskTable, run: Run, end: ExecutionEnd, sequential: bool, may_run: bool
) -> None:
    rows.create(task_of("count", sequential=sequential))
    assert run(end) is not None
    assert rows.are_open([ID], NOW) == {ID: may_run}


def test_the_output_is_taken_from_the_event(rows: TaskTable, run: Run) -> None:
    """Step Functions answers 10 to 15 DescribeExecution a second."""
    rows.create(task_of("count"))
    executions = Ended(None)
    run(executions, output=json.dumps(RESULT), outputDetails={"included": True})
    assert executions.described == []
    assert rows.get(ID, NOW).result == RESULT


@pytest.mark.parametrize(
    "about",
    [
        {"output": None, "outputDetails": {"included": False}},
        {"output": None, "outputDetails": None},
        {"output": json.dumps({}), "outputDetails": {"included": False}},
        {"output": json.dumps({})},
    ],
)
def test_an_output_that_the_event_leaves_out_is_read(
    rows: TaskTable, run: Run, about: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is large, or encrypted with a key of the account's own. The log says so: these calls
    have a quota that is small."""
    log = Mock()
    monkeypatch.setattr("mcp_tasks.workflows.finish.logger", log)
    rows.create(task_of("count"))
    executions = Ended(succeeded(RESULT))
    run(executions, **about)
    assert executions.described == [execution_arn(f"{PREFIX}count", ID)]
    log.append_keys.assert_called_once_with(end_from="DescribeExecution")
    assert rows.get(ID, NOW).result == RESULT


FAILURE: Final = {"status": "FAILED", "error": "KeyError", "cause": "hunter2", "stopDate": NOW}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (FAILURE, "The tool failed: KeyError"),
        (
            {**FAILURE, "cause": json.dumps({"errorMessage": "[ValueError] x", "errorType": "x"})},
            "The tool failed: ValueError",
        ),
        ({"status": "TIMED_OUT", "error": None, "cause": None, "stopDate": NOW}, TIMED_OUT),
        ({"status": "TIMED_OUT", "stopDate": NOW}, TIMED_OUT),
        (
            {"status": "ABORTED", "error": "Cancelled", "cause": "x", "stopDate": NOW},
            "The tool's execution was aborted by the server's operator",
        ),
    ],
)
def test_a_failure_is_taken_from_the_event(
    rows: TaskTable, run: Run, about: dict[str, Any], message: str
) -> None:
    """DescribeExecution, 10 to 15 a second, is not the ceiling of failures."""
    rows.create(task_of("count"))
    executions = Ended(None)
    assert run(executions, **about) is Status.FAILED
    assert executions.described == []
    assert rows.get(ID, NOW).error == {"code": -32603, "message": message}


def test_a_tool_error_is_taken_from_the_event(rows: TaskTable, run: Run) -> None:
    rows.create(task_of("review"))
    executions = Ended(None)
    about = {**FAILURE, "error": "ToolError", "cause": "Nothing to do"}
    assert run(executions, "review", **about) is Status.COMPLETED
    assert executions.described == []
    result = rows.get(ID, NOW).result
    assert result == {"content": [{"type": "text", "text": "Nothing to do"}], "isError": True}


@pytest.mark.parametrize(
    "missing", [{"error": None}, {"cause": None}, {"error": None, "cause": None}]
)
def test_a_failure_that_the_event_leaves_out_is_read(
    rows: TaskTable, run: Run, missing: dict[str, Any]
) -> None:
    """Of a state machine with a customer's key; or a Fail state that says nothing."""
    rows.create(task_of("count"))
    executions = Ended(ExecutionEnd("FAILED", error="KeyError", cause="{}"))
    assert run(executions, **{**FAILURE, **missing}) is Status.FAILED
    assert len(executions.described) == 1
    assert rows.get(ID, NOW).error == {"code": -32603, "message": "The tool failed: KeyError"}


@pytest.mark.parametrize(("age_ms", "describes"), [(60_000, 0), (60_001, 1)])
@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_of_an_event_that_comes_late_the_execution_has_the_last_word(
    rows: TaskTable, run: Run, status: str, age_ms: int, describes: int
) -> None:
    """It was replayed from the dead-letter queue, after an operator's redrive."""
    rows.create(task_of("count"))
    executions = Ended(ExecutionEnd("RUNNING"))
    about = {**FAILURE, "status": status, "stopDate": NOW - age_ms}
    ended = run(executions, now=NOW, **about)
    assert len(executions.described) == describes
    assert ended is (None if describes else Status.FAILED)


def test_fifty_failures_a_second_need_no_call_of_step_functions(rows: TaskTable, run: Run) -> None:
    """A bad deployment: with one call each, two thirds of the ends would wait for the sweeper."""
    executions = Ended(None)
    for n in range(50):
        task_id = f"c1-{n:032x}"
        rows.create(task_of("count", task_id=task_id))
        assert run(executions, name=task_id, **FAILURE) is Status.FAILED
    assert executions.described == []


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_of_an_end_that_may_not_be_the_last_word_the_execution_has_it(
    rows: TaskTable, run: Run, status: str
) -> None:
    """Step Functions developer guide, "Restarting state machine executions with redrive". The event
    does not say when the execution stopped."""
    rows.create(task_of("count"))
    output = {"output": json.dumps(RESULT), "outputDetails": {"included": True}}
    assert run(ExecutionEnd("RUNNING"), status=status, **output) is None
    assert rows.get(ID, NOW).status is Status.WORKING


@pytest.mark.parametrize(
    ("name", "ends", "described"),
    [
        ("finish-succeeded-large", Status.COMPLETED, 1),
        ("finish-succeeded", Status.COMPLETED, 0),
        ("finish-failed", Status.FAILED, 0),
        ("finish-timed-out", Status.FAILED, 0),
        ("finish-aborted", Status.FAILED, 0),
    ],
)
def test_an_event_of_aws_is_understood(
    rows: TaskTable, run: Run, name: str, ends: Status, described: int
) -> None:
    event = json.loads((EVENTS / f"{name}.json").read_text())["detail"]
    now = event["stopDate"] + 1_000
    rows.create(
        a_task(
            task_id=event["name"],
            state_machine_arn=event["stateMachineArn"],
            created_at=event["startDate"],
        )
    )
    executions = Ended(succeeded(RESULT))
    assert run(executions, now=now, **event) is ends
    assert len(executions.described) == described


# late, twice, out of order


@pytest.mark.parametrize("first", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_an_end_after_another_end_changes_nothing(rows: TaskTable, run: Run, first: Status) -> None:
    """A redriven execution, an event delivered twice, a cancel that came before."""
    rows.create(task_of("count"))
    match first:
        case Status.COMPLETED:
            rows.complete(ID, RESULT, NOW)
        case Status.FAILED:
            rows.fail(ID, {"code": -32603, "message": "no"}, NOW)
        case _:
            rows.cancel(ID, NOW, "alice")
    before = raw_rows()
    executions = Ended(succeeded({"content": []}))
    assert run(executions) is None
    assert raw_rows() == before
    assert executions.described == [], "nothing to read for a task that is over"


def test_a_cancel_during_the_finish_stands(rows: TaskTable, run: Run) -> None:
    """docs/design.md, "The row is the truth": whichever write came first stands."""
    rows.create(task_of("count"))
    executions = Ended(succeeded(RESULT), before=lambda: rows.cancel(ID, NOW, "alice"))
    assert run(executions) is None
    task = rows.get(ID, NOW)
    assert (task.status, task.result) == (Status.CANCELLED, None)


LONG_AGO: Final = NOW - 24 * HOUR


@pytest.mark.parametrize(
    ("end", "about"),
    [
        (ExecutionEnd("SUCCEEDED", output=RESULT, started_at=LONG_AGO), {}),
        (ExecutionEnd("FAILED", error="Broken", started_at=LONG_AGO), {"status": "FAILED"}),
        (
            None,
            {
                "startDate": LONG_AGO,
                "output": json.dumps(RESULT),
                "outputDetails": {"included": True},
            },
        ),
    ],
)
def test_the_end_of_an_earlier_task_with_the_same_id_is_not_this_ones(
    rows: TaskTable, run: Run, end: ExecutionEnd | None, about: dict[str, Any]
) -> None:
    """An operator redrives it, while a client has chosen the id once more."""
    rows.create(task_of("count"))
    assert run(Ended(end), **about) is None
    assert rows.get(ID, NOW).status is Status.WORKING


def test_an_execution_that_runs_again_is_left_alone(rows: TaskTable, run: Run) -> None:
    """Redrive, up to 14 days later: its end will be told by another event."""
    rows.create(task_of("count"))
    assert run(ExecutionEnd("RUNNING")) is None
    assert rows.get(ID, NOW).status is Status.WORKING


def test_an_execution_that_is_no_tasks_is_left_alone(rows: TaskTable, run: Run) -> None:
    """A wrapped state machine is started by others too."""
    executions = Ended(succeeded(RESULT))
    assert run(executions) is None
    assert executions.described == []
    assert raw_rows() == []


def test_an_execution_of_another_state_machine_is_not_the_tasks(rows: TaskTable, run: Run) -> None:
    """Names are unique per state machine only: a workflow may name a child after itself."""
    rows.create(task_of("count"))
    executions = Ended(succeeded({"content": []}))
    assert run(executions, tool="review") is None
    assert rows.get(ID, NOW).status is Status.WORKING


def test_an_expired_task_is_left_alone(rows: TaskTable, run: Run) -> None:
    rows.create(task_of("count"))
    before = raw_rows()
    assert run(succeeded(RESULT), now=NOW + HOUR) is None
    assert raw_rows() == before


def test_an_error_of_aws_is_raised_so_that_the_event_is_retried(
    rows: TaskTable, run: Run, aws: Calls
) -> None:
    rows.create(task_of("count"))
    aws.instead["update_item"] = refusing("dynamodb", "InternalServerError")
    with pytest.raises(Exception, match="InternalServerError"):
        run(succeeded(RESULT))


def test_an_execution_that_is_not_there_leaves_the_task_to_be_looked_after(
    rows: TaskTable, run: Run
) -> None:
    """Its event says that it was: what is described lags (API reference, "DescribeExecution")."""
    rows.create(task_of("count"))
    before = raw_rows()
    assert run(None) is None
    assert raw_rows() == before


@pytest.mark.parametrize("end", [succeeded(RESULT), ExecutionEnd("FAILED", error="KeyError")])
def test_a_task_whose_execution_ended_need_not_be_looked_after(
    rows: TaskTable, run: Run, end: ExecutionEnd
) -> None:
    rows.create(task_of("count"))
    run(end)
    (row,) = raw_rows()
    assert not {"reconcileAt", "reconcileShard"} & row.keys()


# tools that changed since


def test_a_removed_tools_output_is_taken_as_it_is(rows: TaskTable, run: Run) -> None:
    rows.create(a_task(tool="gone", state_machine_arn=f"{PREFIX}gone"))
    assert run(succeeded(RESULT), "gone") is Status.COMPLETED
    assert rows.get(ID, NOW).result == RESULT


# large results


@pytest.mark.parametrize(
    "text",
    ["x" * 250_000, "ж" * 125_000, '"' * 125_000, "\n" * 125_000, "\x00" * 40_000],
    ids=["ascii", "cyrillic", "quotes", "line breaks", "control characters"],
)
def test_an_output_of_any_size_is_a_result(
    rows: TaskTable, run: Run, payloads: PayloadStore, text: str
) -> None:
    """Step Functions passes 256 KiB of output, and DynamoDB keeps 400 KB a row: what is too large
    as JSON is in S3."""
    rows.create(task_of("orders"))
    output = {"text": text}
    assert len(json.dumps(output, ensure_ascii=False).encode()) <= 256 * 1024
    assert run(succeeded(output), "orders") is Status.COMPLETED
    assert result_of(rows, payloads)["structuredContent"] == output


def result_of(rows: TaskTable, payloads: PayloadStore) -> dict[str, Any]:
    """The task's result, wherever it is; it is in one place only."""
    task = rows.get(ID, NOW)
    assert (task.result is None) != (task.result_payload is None)
    if task.result_payload is None:
        assert task.result is not None
        return task.result
    result: dict[str, Any] = json.loads(payloads.get(task.result_payload))
    return result


@pytest.mark.parametrize(
    ("size", "kept"), [(MAX_ROW_RESULT_BYTES, True), (MAX_ROW_RESULT_BYTES + 1, False)]
)
def test_a_row_keeps_a_result_that_it_has_room_for(
    rows: TaskTable, run: Run, payloads: PayloadStore, size: int, kept: bool
) -> None:
    rows.create(task_of("count"))
    result = {"content": [{"type": "text", "text": ""}]}
    result["content"][0]["text"] = "x" * (size - len(json.dumps(result)))
    run(succeeded(result))
    assert (rows.get(ID, NOW).result is not None) is kept
    assert result_of(rows, payloads) == result


def test_a_result_that_the_worker_stored_is_not_loaded_on_its_way(
    rows: TaskTable, run: Run, payloads: PayloadStore, aws: Calls
) -> None:
    """50 MB are for whoever downloads them."""
    rows.create(task_of("count"))
    stored = payloads.put(f"count/{ID}", json.dumps(RESULT))
    aws.forget()
    assert run(succeeded(stored.as_json())) is Status.COMPLETED
    assert aws.operations == ["get_item", "update_item"]
    assert rows.get(ID, NOW).result_payload == stored


def test_what_a_workflow_stored_is_whole_in_its_result(
    rows: TaskTable, run: Run, payloads: PayloadStore
) -> None:
    """Its output is checked against its tool's type as if it had never been in S3."""
    rows.create(task_of("orders"))
    output = {"few": [1], "many": ["x" * 1000] * 1000}
    fitted = payloads.offload(output, 10_000, f"orders/{ID}")
    assert len(json.dumps(fitted)) < 10_000
    assert run(succeeded(fitted), "orders") is Status.COMPLETED
    assert result_of(rows, payloads)["structuredContent"] == output


def test_a_function_cannot_put_out_what_is_another_tasks(
    rows: TaskTable, run: Run, payloads: PayloadStore
) -> None:
    """Its caller would be given a link to it."""
    rows.create(task_of("count"))
    theirs = payloads.put(f"count/{ID[:-1]}0", '{"content": [], "a": "hunter2"}')
    run(succeeded(theirs.as_json()))
    assert rows.get(ID, NOW).result_payload is None
    assert "hunter2" not in json.dumps(rows.get(ID, NOW).result)


def test_a_workflow_cannot_put_out_what_is_another_tasks(
    rows: TaskTable, run: Run, payloads: PayloadStore
) -> None:
    rows.create(task_of("orders"))
    theirs = payloads.put(f"orders/{ID[:-1]}0", '"hunter2"').as_json()
    assert run(succeeded({"a": theirs}), "orders") is Status.COMPLETED
    assert "hunter2" not in json.dumps(result_of(rows, payloads))


@pytest.mark.parametrize("output", [lambda p: {"a": p}, lambda p: p], ids=["part", "whole"])
def test_an_output_that_is_not_there_any_more_fails_the_task(
    rows: TaskTable, run: Run, output: Callable[[Any], Any]
) -> None:
    rows.create(task_of("orders"))
    gone = PayloadPointer(f"orders/{ID}/{'0' * 32}", 0, 9).as_json()
    assert run(succeeded(output(gone)), "orders") is Status.FAILED
    assert rows.get(ID, NOW).status_message == "The tool's output is not there any more"


@pytest.mark.parametrize("operation", ["put_object", "get_object"])
def test_a_busy_s3_leaves_the_task_for_another_attempt(
    rows: TaskTable, run: Run, payloads: PayloadStore, aws: Calls, operation: str
) -> None:
    rows.create(task_of("orders"))
    fitted = payloads.offload({"text": "x" * 400_000}, 10_000, f"orders/{ID}")
    aws.instead[operation] = refusing("s3", "SlowDown")
    before = raw_rows()
    with pytest.raises(ClientError, match="SlowDown"):
        run(succeeded(fitted), "orders")
    assert raw_rows() == before
    del aws.instead[operation]
    assert run(succeeded(fitted), "orders") is Status.COMPLETED
