"""What leaves a worker, or a request, when a tool fails: a name, and nothing that it was given."""

from __future__ import annotations

import io
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from aws_lambda_powertools import Logger
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_tasks import InputDeclined, TaskContext, ToolError, workflow_tool
from mcp_tasks.crash_report import reference_in, without_reference
from mcp_tasks.protocol.errors import ErrorCode, ProtocolError
from mcp_tasks.redaction import (
    client_errors_redacted,
    crash_redacted,
    error_without_message,
    step_errors_redacted,
)
from mcp_tasks.registry.context import TaskCancelled
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.forms import check_form
from mcp_tasks.workflows.steps import run_step
from tests.unit.support.author import author_module

SECRET: Final = "hunter2"


class Confirm(BaseModel):
    sure: bool


def count(text: str) -> int:
    """Count words."""
    return len(text.split())


def a_workflow(step: Callable[..., Any]) -> WorkflowTool:
    return workflow_tool(
        "flow",
        description="Flow.",
        arguments=Confirm,
        definition=Path(__file__),
        steps=[step],
    )


class Recorder:
    """A logger whose lines can be read."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.explained: list[str] = []
        self.logger = Logger(service=f"redaction-{id(self)}", stream=self.stream)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def log() -> Recorder:
    return Recorder()


def run_redacted(run: Callable[[], Any], log: Recorder) -> Any:
    """Run a step as the worker does."""
    with step_errors_redacted(log.logger, log.explained.append):
        return run()


def leaving(run: Callable[[], Any], log: Recorder) -> Exception:
    """The exception that leaves the worker."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  its class is made for the occasion
        run_redacted(run, log)
    return caught.value


def seen(error: Exception) -> str:
    """All that Lambda writes about an exception: its name, message and traceback."""
    return "".join(traceback.format_exception(error))


def test_an_output_passes_unchanged(log: Recorder) -> None:
    assert run_redacted(lambda: {"a": 1}, log) == {"a": 1}
    assert log.text == ""


@pytest.mark.parametrize(
    "error",
    [
        KeyError(SECRET),
        ValueError(SECRET),
        RuntimeError(SECRET, SECRET),
        UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
        ExceptionGroup(SECRET, [ValueError(SECRET)]),
    ],
)
def test_an_exception_leaves_under_its_name_without_its_message(
    log: Recorder, error: Exception
) -> None:
    """Retry and Catch match the name; the message may quote what the tool was given."""

    def run() -> None:
        raise error

    left = leaving(run, log)
    assert type(left).__name__ == type(error).__name__
    assert type(error).__name__ in str(left)
    assert SECRET not in str(left)
    assert SECRET not in seen(left)
    assert SECRET not in log.text


def test_a_chain_of_exceptions_is_cut(log: Recorder) -> None:
    def run() -> None:
        try:
            raise KeyError(SECRET)
        except KeyError as inner:
            raise ValueError(SECRET) from inner

    left = leaving(run, log)
    assert type(left).__name__ == "ValueError"
    assert SECRET not in seen(left)


def test_the_log_tells_where_and_not_what(log: Recorder, tmp_path: Path) -> None:
    code = "def look_up(key):\n    value = key\n    return {}[value]\n"
    tools = author_module(tmp_path, "lookup", code)
    left = leaving(lambda: tools.look_up(SECRET), log)
    (line,) = log.text.splitlines()
    entry = json.loads(line)
    assert entry["level"] == "ERROR"
    assert entry["exception"] == "KeyError"
    assert entry["frames"] == ["tools/lookup.py:3 look_up"]
    assert reference_in(str(left)) == entry["reference"]
    assert SECRET not in line


def test_a_question_that_cannot_be_asked_is_not_repeated(log: Recorder) -> None:
    """`ask` is called by workflows' states, whose questions may quote what was answered before."""
    form = {"type": "object", "properties": {SECRET: {"type": "object"}}}
    with (
        pytest.raises(Exception, match=r"^\[InvalidQuestion\] .*\(reference \w{12}\)$") as left,
        crash_redacted(log.logger, "A question could not be asked"),
    ):
        check_form(form)
    assert SECRET not in seen(left.value) + log.text


def test_what_was_redacted_leaves_as_it_is_and_is_logged_once(log: Recorder) -> None:
    def run() -> None:
        with step_errors_redacted(log.logger, log.explained.append):
            raise KeyError(SECRET)

    left = leaving(run, log)
    assert len(log.text.splitlines()) == 1
    assert reference_in(str(left)) == json.loads(log.text)["reference"]


@given(arguments=st.dictionaries(st.text(min_size=1), st.text("XYZ", min_size=8), min_size=1))
def test_arguments_that_a_step_refuses_are_not_repeated(arguments: dict[str, str]) -> None:
    log = Recorder()
    left = leaving(lambda: run_step(a_workflow(count), "count", arguments, TaskContext()), log)
    assert type(left).__name__ == "InvalidArguments"
    for value in arguments.values():
        assert value not in seen(left)
        assert value not in log.text


def test_a_tool_errors_message_was_written_for_the_caller(log: Recorder) -> None:
    def run() -> None:
        raise ToolError("No such file: a.csv")

    left = leaving(run, log)
    assert type(left).__name__ == "ToolError"
    assert log.explained == ["No such file: a.csv"]


def test_no_log_has_a_tool_errors_message(log: Recorder) -> None:
    """It may quote what the tool was given, and Lambda logs what leaves a handler."""

    def run() -> None:
        raise ToolError(SECRET)

    assert SECRET not in seen(leaving(run, log)) + log.text


@pytest.mark.parametrize(
    "error", [InputDeclined("Sure?", "decline"), type("Own", (ToolError,), {})("x")]
)
def test_a_kind_of_tool_error_is_a_tool_error(log: Recorder, error: Exception) -> None:
    """`outcome` and a state's Catch know one name."""

    def run() -> None:
        raise error

    assert type(leaving(run, log)).__name__ == "ToolError"


def test_a_cancellation_leaves_as_an_exception(log: Recorder) -> None:
    """A BaseException would end the worker's process, and the next call with a cold start."""

    def run() -> None:
        raise TaskCancelled

    assert type(leaving(run, log)).__name__ == "TaskCancelled"
    assert log.text == ""


def test_a_step_that_asks_leaves_as_an_exception(log: Recorder) -> None:
    """Only function tools are run again with answers; a workflow asks through a state."""

    def ask_in_step(task: TaskContext) -> bool:
        return task.ask("Sure?", Confirm).sure

    def run() -> None:
        run_step(a_workflow(ask_in_step), "ask_in_step", {}, TaskContext())

    with pytest.raises(TypeError, match=r"flow\.ask_in_step: a step cannot ask"):
        run()
    assert type(leaving(run, log)).__name__ == "TypeError"


@pytest.mark.parametrize("name", ["KeyError", "Own"])
def test_a_failure_carries_its_name_twice(name: str) -> None:
    """As its class, which AWS shows; in its message, because the emulator shows nothing else."""
    error = error_without_message(name)
    assert type(error).__name__ == name
    assert name in str(error)


def test_a_crash_within_a_request_is_an_internal_error_without_its_message() -> None:
    with pytest.raises(ProtocolError) as caught, client_errors_redacted("prompt", ToolError):
        raise KeyError(SECRET)
    assert caught.value.code is ErrorCode.INTERNAL_ERROR
    assert without_reference(caught.value.message) == "The prompt failed: KeyError"
    assert caught.value.data == {"reference": reference_in(caught.value.message)}
    assert SECRET not in seen(caught.value)


@pytest.mark.parametrize(
    "error", [ToolError("No such city"), ProtocolError(ErrorCode.INVALID_PARAMS, "No such city")]
)
def test_what_was_written_for_the_client_passes(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, client_errors_redacted("prompt", ToolError):
        raise error
    assert caught.value is error
