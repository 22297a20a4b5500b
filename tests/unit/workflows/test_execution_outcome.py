"""What an execution's end means (tasks.md, "Task Execution Errors").

The payloads are AWS's own: a Lambda function's error is its state's `cause`, as JSON with
errorType, errorMessage and (from Python) stackTrace; the state's error name is the errorType
(Lambda developer guide, "Python errors"; Step Functions developer guide, "Handling errors").
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.redaction import error_without_message
from mcp_tasks.workflows.execution_outcome import (
    Completed,
    Failed,
    may_leave_a_step,
    outcome,
)
from mcp_tasks.workflows.executions import ExecutionEnd

SECRET: Final = "hunter2"
REQUEST: Final = "RequestId: 6f9f3b6a-3b0c-4b8e-8a57-1f3a5b1c2d3e"


def as_result(output: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": output}


def ended(end: ExecutionEnd, explained: str | None = None) -> Completed | Failed:
    return outcome(end, as_result, explained)


def failed(error: str, cause: object = "", explained: str | None = None) -> Completed | Failed:
    text = cause if isinstance(cause, str) else json.dumps(cause)
    return ended(ExecutionEnd("FAILED", error=error, cause=text), explained)


def raised(
    exception: Exception, error: str | None = None, explained: str | None = None
) -> Completed | Failed:
    """As Step Functions reports an exception that left a Python function."""
    name = type(exception).__name__
    return failed(
        error or name,
        {
            "errorMessage": str(exception),
            "errorType": error or name,
            "requestId": "6f9f3b6a",
            "stackTrace": [f'  File "/var/task/tools/x.py", line 1\n    raise X("{SECRET}")\n'],
        },
        explained,
    )


def test_a_success_is_the_tools_result() -> None:
    end = ExecutionEnd("SUCCEEDED", output={"a": 1})
    assert ended(end) == Completed({"content": [], "structuredContent": {"a": 1}})


def test_a_success_without_output_is_a_result() -> None:
    assert ended(ExecutionEnd("SUCCEEDED")) == Completed(as_result(None))


def test_an_output_that_its_tool_did_not_promise_is_a_failure() -> None:
    def refuse(output: Any) -> dict[str, Any]:
        raise ValueError(SECRET)

    end = outcome(ExecutionEnd("SUCCEEDED", output=5), refuse)
    assert end == Failed("The workflow's output does not match the tool's output schema")
    assert end.error == {"code": -32603, "message": end.message}


@pytest.mark.parametrize("error", ["ToolError", "Runtime.HandlerError"])
def test_a_tool_error_of_a_step_is_a_result(error: str) -> None:
    """The emulator gives every exception the name Runtime.HandlerError; the message tells more."""
    end = raised(error_without_message("ToolError"), error, "No such file: a.csv: really")
    assert end == Completed(
        {
            "content": [{"type": "text", "text": "No such file: a.csv: really"}],
            "isError": True,
        }
    )


def test_a_tool_error_that_nobody_explained_is_one_all_the_same() -> None:
    """Its step was over with the task's time, or the row could not be written."""
    end = raised(error_without_message("ToolError"))
    assert isinstance(end, Completed)
    assert end.result == {
        "content": [{"type": "text", "text": "The tool failed"}],
        "isError": True,
    }


def test_a_fail_states_own_words_come_before_those_of_an_earlier_step() -> None:
    end = failed("ToolError", "Not today", "what a step said that was caught")
    assert isinstance(end, Completed)
    assert end.result["content"] == [{"type": "text", "text": "Not today"}]


def test_a_fail_state_named_tool_error_is_a_result() -> None:
    """An author's own words, in plain text."""
    assert failed("ToolError", "Not today") == Completed(
        {"content": [{"type": "text", "text": "Not today"}], "isError": True}
    )


@pytest.mark.parametrize("cause", ["", "[1]", "5", "null", '"text"', "{", '{"a": 1}'])
def test_a_fail_states_cause_may_be_any_text(cause: str) -> None:
    end = failed("ToolError", cause)
    assert isinstance(end, Completed)
    assert end.result["content"] == [{"type": "text", "text": cause}]


@pytest.mark.parametrize("error", ["KeyError", "Runtime.HandlerError"])
def test_a_crash_of_a_step_is_a_failure_named_after_its_exception(error: str) -> None:
    end = raised(error_without_message("KeyError"), error)
    assert end == Failed("The tool failed: KeyError")


def test_a_crash_of_somebody_elses_function_is_a_failure_without_its_words() -> None:
    """A workflow may call functions that know nothing of the worker's way to fail."""
    end = raised(KeyError(SECRET))
    assert end == Failed("The tool failed: KeyError")
    end = raised(ValueError(f"{SECRET} is not a number"))
    assert end == Failed("The tool failed: ValueError")


def test_another_functions_message_is_not_taken_for_a_name() -> None:
    """Only what agrees with the state's error name is one: this message begins with a value."""
    end = raised(ValueError(f"{SECRET}: not a number"))
    assert end == Failed("The tool failed: ValueError")


def test_another_functions_message_cannot_pose_as_a_tool_error() -> None:
    end = raised(ValueError(f"ToolError: {SECRET}"))
    assert isinstance(end, Failed)
    assert SECRET not in end.message


def test_a_tool_error_of_somebody_elses_function_leaks_no_stack() -> None:
    end = raised(type("ToolError", (Exception,), {})("Not today"))
    assert isinstance(end, Completed)
    assert end.result["isError"] is True
    text = end.result["content"][0]["text"]
    assert SECRET not in text
    assert "stackTrace" not in text
    assert "Not today" in text


OVER_TIME: Final = Failed("The tool ran over its time and was stopped")


def test_an_execution_that_timed_out_says_so() -> None:
    assert ended(ExecutionEnd("TIMED_OUT")) == OVER_TIME
    assert ended(ExecutionEnd("TIMED_OUT", error="States.Timeout", cause=SECRET)) == OVER_TIME


@pytest.mark.parametrize("error", ["States.Timeout", "States.HeartbeatTimeout"])
def test_a_state_that_timed_out_says_so(error: str) -> None:
    assert failed(error) == OVER_TIME
    assert failed(error, "The state ran for 60 seconds") == OVER_TIME


@pytest.mark.parametrize(
    "message",
    [
        f"{REQUEST} Error: Task timed out after 3.00 seconds",
        "2026-11-21T10:00:00.000Z 6f9f3b6a-3b0c-4b8e Task timed out after 3.00 seconds",
    ],
    ids=["RequestId", "timestamp"],
)
@pytest.mark.parametrize("name", ["Sandbox.Timedout", "Lambda.Unknown"])
def test_a_function_that_timed_out_says_so(message: str, name: str) -> None:
    """Lambda's payload, in the newer and the older wording, under the newer and the older name."""
    cause = {"errorType": "Sandbox.Timedout", "errorMessage": message}
    assert failed(name, cause) == OVER_TIME


def test_a_function_whose_end_is_unknown_did_not_run_over_its_time() -> None:
    cause = {"errorMessage": f"{REQUEST} Process exited before completing request"}
    assert failed("Lambda.Unknown", cause) == Failed("The tool failed: Lambda.Unknown")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("Runtime.ExitError", f"{REQUEST} Error: Runtime exited with error: signal: killed"),
        ("Runtime.OutOfMemory", f"{REQUEST} Error: Runtime exited with error: signal: killed"),
        (
            "Runtime.ImportModuleError",
            "Unable to import module 'worker.handler': No module named x",
        ),
    ],
)
def test_a_function_whose_runtime_failed_is_named_after_that(error: str, message: str) -> None:
    end = failed(error, {"errorType": error, "errorMessage": message})
    assert end == Failed(f"The tool failed: {error}")


def test_an_aborted_execution_says_so() -> None:
    """StopExecution by somebody else: the row was not cancelled before."""
    end = ended(ExecutionEnd("ABORTED", error="Cancelled", cause="tasks/cancel"))
    assert isinstance(end, Failed)
    assert "aborted" in end.message


@pytest.mark.parametrize(
    "error",
    ["States.TaskFailed", "States.DataLimitExceeded", "States.Runtime", "OwnError", "a b", ""],
)
def test_any_other_failure_is_named_and_its_cause_is_not_told(error: str) -> None:
    end = failed(error, f"the argument {SECRET} broke it")
    assert isinstance(end, Failed)
    assert error in end.message
    assert end.message.strip().endswith(error or "unknown error")
    assert SECRET not in end.message


def test_a_failure_without_a_name_is_a_failure() -> None:
    assert ended(ExecutionEnd("FAILED")) == Failed("The tool failed: unknown error")


@given(
    error=st.sampled_from(["KeyError", "States.TaskFailed", "Runtime.HandlerError", "Own"]),
    cause=st.one_of(
        st.just(f"text {SECRET}"),
        st.builds(
            lambda message: json.dumps({"errorMessage": message, "errorType": "KeyError"}),
            st.sampled_from([SECRET, f"{SECRET} is bad", f"it is: {SECRET}", f"1: {SECRET}"]),
        ),
        st.builds(
            lambda value: json.dumps({"errorMessage": value, "stackTrace": [SECRET]}),
            st.none() | st.integers() | st.lists(st.just(SECRET)) | st.just({"a": SECRET}),
        ),
    ),
)
def test_no_cause_of_a_failure_reaches_the_client(error: str, cause: str) -> None:
    end = failed(error, cause)
    assert isinstance(end, Failed)
    assert SECRET not in end.message


# steps that nothing stops


@pytest.mark.parametrize(
    ("status", "error", "sequential", "concurrent"),
    [
        ("SUCCEEDED", "", False, False),
        ("FAILED", "ValueError", False, True),
        ("FAILED", "ToolError", False, True),
        ("FAILED", "Sandbox.Timedout", False, True),
        ("FAILED", "States.Timeout", True, True),
        ("FAILED", "States.HeartbeatTimeout", True, True),
        ("TIMED_OUT", "States.Timeout", True, True),
        ("ABORTED", "", True, True),
    ],
)
def test_a_step_may_outlive_its_execution(
    status: str, error: str, sequential: bool, concurrent: bool
) -> None:
    """One that failed has ended, and so has one that Lambda killed. Others may run beside it."""
    end = ExecutionEnd(status, error=error)
    assert may_leave_a_step(end, sequential=True) is sequential
    assert may_leave_a_step(end, sequential=False) is concurrent
