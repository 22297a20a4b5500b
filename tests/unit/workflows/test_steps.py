"""Steps of workflows, and how their failures leave a worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel, field_validator

from mcp_tasks import (
    AskRoots,
    AskUrl,
    TaskContext,
    ToolError,
    tool,
    workflow_tool,
)
from mcp_tasks.payloads.pointer import payload_prefix, pointer_of
from mcp_tasks.payloads.s3_store import PayloadStore
from mcp_tasks.registry.context import InputRequired, TaskCancelled
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.schema import InvalidArguments
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.task_table import TaskTable
from mcp_tasks.workflows.step_payloads import MAX_INLINE_RESULT_BYTES, offload_result
from mcp_tasks.workflows.step_reports import status_reporter, tool_error_reporter
from mcp_tasks.workflows.steps import run_step
from mcp_tasks.workflows.tool_run import run_function
from tests.unit.support.aws import Calls
from tests.unit.support.example_task import HOUR, ID, NOW, a_task

SECRET: Final = "hunter2"
ACCEPTED: Final = {"action": "accept", "content": {"sure": True}}


class Confirm(BaseModel):
    sure: bool


class Words(BaseModel):
    words: int


def declared(function: Callable[..., Any]) -> FunctionTool:
    declaration: FunctionTool = getattr(tool(function), DECLARATION)
    return declaration


# function tools


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def refuse(reason: str) -> str:
    """Refuse."""
    raise ToolError(reason)


def confirm(task: TaskContext) -> bool:
    """Ask."""
    return task.ask("Sure?", Confirm).sure


def test_a_function_gives_a_result() -> None:
    output = run_function(declared(double), {"number": 4}, TaskContext())
    assert output == {
        "result": {"content": [{"type": "text", "text": "8"}], "structuredContent": 8}
    }


def test_a_tool_error_of_a_function_is_an_output_and_no_failure() -> None:
    """So that no Catch clause has to know an exception's name."""
    output = run_function(declared(refuse), {"reason": "no"}, TaskContext())
    assert output == {"result": {"content": [{"type": "text", "text": "no"}], "isError": True}}


def test_a_question_of_a_function_is_an_output() -> None:
    output = run_function(declared(confirm), {}, TaskContext())
    assert set(output) == {"ask"}
    assert output["ask"]["answer"]["message"] == "Sure?"
    assert output["ask"]["answer"]["schema"]["properties"]["sure"]["type"] == "boolean"
    json.dumps(output)


def test_questions_of_all_kinds_are_an_output_as_a_workflow_writes_them() -> None:
    def prepare(task: TaskContext) -> str:
        """Ask for two things at once."""
        return str(task.ask_all({"page": AskUrl("Go", "https://a.example"), "dirs": AskRoots()}))

    assert run_function(declared(prepare), {}, TaskContext()) == {
        "ask": {"page": {"message": "Go", "url": "https://a.example"}, "dirs": {"roots": {}}}
    }


def test_a_function_runs_again_with_its_answer() -> None:
    output = run_function(declared(confirm), {}, TaskContext(answers={"answer": ACCEPTED}))
    assert output["result"]["structuredContent"] is True


def test_a_declined_question_is_a_tool_error() -> None:
    output = run_function(
        declared(confirm), {}, TaskContext(answers={"answer": {"action": "decline"}})
    )
    assert output["result"]["isError"] is True
    assert "decline" in output["result"]["content"][0]["text"]


def test_arguments_are_checked_again_before_a_function_runs() -> None:
    """Somebody else may start the state machine."""
    with pytest.raises(InvalidArguments, match="number:"):
        run_function(declared(double), {"number": "4"}, TaskContext())


PREFIX: Final = payload_prefix("repeat", ID)


def repeat(text: str, times: int) -> str:
    """Repeat a text."""
    return text * times


@pytest.mark.parametrize("text", ["a", "é", "😀", '"'])
def test_a_small_result_goes_through_step_functions(
    payloads: PayloadStore, aws: Calls, text: str
) -> None:
    """Which counts bytes, and may be handed escapes."""
    longest = MAX_INLINE_RESULT_BYTES // len(json.dumps(text)) - 30
    output = run_function(declared(repeat), {"text": text, "times": longest}, TaskContext())
    assert offload_result(output, payloads, PREFIX) is output
    assert aws.clients == []


@pytest.mark.parametrize(
    ("text", "times"), [("a", MAX_INLINE_RESULT_BYTES), ("😀", MAX_INLINE_RESULT_BYTES // 12 + 1)]
)
def test_a_large_result_is_stored_as_it_is(
    payloads: PayloadStore, aws: Calls, text: str, times: int
) -> None:
    """The whole CallToolResult: nobody has to load it before its client asks for it."""
    output = run_function(declared(repeat), {"text": text, "times": times}, TaskContext())
    carried = offload_result(output, payloads, PREFIX)
    payload = pointer_of(carried["result"])
    assert payload is not None
    assert carried == {"result": payload.as_json()}
    assert payload.key.startswith(f"{PREFIX}/")
    assert json.loads(payloads.get(payload)) == output["result"]
    assert aws.operations == ["put_object", "get_object"], "and its size says all of it"


def test_a_question_is_never_stored(payloads: PayloadStore, aws: Calls) -> None:
    """The function that asks reads no payloads."""
    output = {"ask": {"page": {"message": "x" * 300_000, "url": "https://a.example"}}}
    assert offload_result(output, payloads, PREFIX) is output
    assert aws.clients == []


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_result_that_is_no_json_is_refused(payloads: PayloadStore, number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        offload_result({"result": {"structuredContent": number}}, payloads, PREFIX)


def test_half_of_a_surrogate_pair_is_refused(payloads: PayloadStore) -> None:
    """No answer could carry it; and the runtime would end for it."""
    with pytest.raises(UnicodeEncodeError):
        offload_result({"result": {"content": ["\ud83d"]}}, payloads, PREFIX)


# workflow tools


def count(task: TaskContext, text: str) -> Words:
    """Count words."""
    task.report("counting")
    return Words(words=len(text.split()))


def shout(text: str) -> str:
    return text.upper()


def nothing() -> None:
    return None


def a_workflow(*steps: Callable[..., Any]) -> WorkflowTool:
    return workflow_tool(
        "flow",
        description="Flow.",
        arguments=Words,
        definition=Path(__file__),
        steps=steps,
    )


def test_a_steps_output_is_json() -> None:
    reports: list[str] = []
    flow = a_workflow(count, shout, nothing)
    context = TaskContext(on_report=lambda message, _: reports.append(message))
    assert run_step(flow, "count", {"text": "a b"}, context) == {"words": 2}
    assert run_step(flow, "shout", {"text": "a"}, context) == "A"
    assert run_step(flow, "nothing", {}, context) is None
    assert reports == ["counting"]


def test_a_step_that_the_tool_does_not_have_is_named() -> None:
    with pytest.raises(LookupError, match="flow has no step 'cuont'; it has count"):
        run_step(a_workflow(count), "cuont", {}, TaskContext())


def test_what_is_no_argument_of_the_execution_is_none_of_the_step() -> None:
    """A state that passes on the whole input passes on `_meta` with it."""
    given = {"text": "a", "_meta": {"traceparent": "00-1-1-01", "answers": {}}}
    assert run_step(a_workflow(shout), "shout", given, TaskContext()) == "A"


def test_a_steps_input_is_checked() -> None:
    with pytest.raises(InvalidArguments, match="text:"):
        run_step(a_workflow(count), "count", {"txt": "a"}, TaskContext())


# reports


@pytest.mark.parametrize(
    ("progress", "said"),
    [(None, "reading"), (0.0, "0% reading"), (0.5, "50% reading"), (1.0, "100% reading")],
)
def test_a_report_is_the_rows_status_message(
    rows: TaskTable, progress: float | None, said: str
) -> None:
    rows.create(a_task())
    status_reporter(rows, ID, lambda: NOW + 5)("reading", progress)
    task = rows.get(ID, NOW + 5)
    assert (task.status_message, task.last_updated_at) == (said, NOW + 5)


def test_a_report_to_a_task_that_is_over_ends_the_step(rows: TaskTable) -> None:
    """How a cancelled function stops: nobody waits for it any more."""
    rows.create(a_task())
    rows.cancel(ID, NOW, "alice")
    with pytest.raises(TaskCancelled):
        status_reporter(rows, ID, lambda: NOW + 1)("late", None)


def test_a_report_to_a_task_that_is_gone_ends_the_step(rows: TaskTable) -> None:
    rows.create(a_task())
    with pytest.raises(TaskCancelled):
        status_reporter(rows, ID, lambda: NOW + HOUR)("late", None)
    with pytest.raises(TaskCancelled):
        status_reporter(rows, "c1-0", lambda: NOW)("late", None)


def test_a_tool_cannot_swallow_its_cancellation() -> None:
    assert not issubclass(TaskCancelled, Exception)
    assert not issubclass(InputRequired, Exception)


def answered(**content: Any) -> TaskContext:
    return TaskContext(answers={"answer": {"action": "accept", "content": content}})


def test_an_answer_that_does_not_fit_is_asked_for_again_and_not_repeated() -> None:
    output = run_function(declared(confirm), {}, answered(sure=SECRET))
    assert set(output) == {"ask"}
    assert SECRET not in json.dumps(output)


def test_an_answer_that_is_not_usable_is_not_repeated() -> None:
    class Login(BaseModel):
        password: str

        @field_validator("password")
        @classmethod
        def is_long(cls, value: str) -> str:
            raise ValueError(f"{value} is too short")

    def login(task: TaskContext) -> str:
        """Ask for what no schema can check."""
        return task.ask("Who?", Login).password

    output = run_function(declared(login), {}, answered(password=SECRET))
    assert output["result"]["isError"] is True
    assert "password" in json.dumps(output)
    assert SECRET not in json.dumps(output)


def test_what_a_failing_step_says_is_kept_on_its_row(rows: TaskTable) -> None:
    """Cut, so that the row has room for it; for nobody, when the task is over."""
    rows.create(a_task())
    tool_error_reporter(rows, ID, lambda: NOW)("x" * 100_000)
    assert rows.get(ID, NOW).tool_error == "x" * 8000
    rows.complete(ID, {"content": []}, NOW)
    tool_error_reporter(rows, ID, lambda: NOW)("late")
    assert rows.get(ID, NOW).tool_error is None
    tool_error_reporter(rows, f"c1-{'f' * 32}", lambda: NOW)("nobody's")
