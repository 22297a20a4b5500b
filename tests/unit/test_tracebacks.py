"""Whole tracebacks, with messages: only where the deployment says so."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from aws_lambda_powertools import Logger
from moto import mock_aws

from mcp_tasks import environment, tracebacks
from mcp_tasks.redaction import log_crash
from mcp_tasks.tracebacks import MAX_TRACEBACK_CHARACTERS, LogGroupHandler, keep_tracebacks
from tests.paths import ROOT
from tests.unit.support.author import author_module

SECRET: Final = "hunter2"
GROUP: Final = "mcp-tasks-Tracebacks"
LAMBDA: Final = {
    "AWS_LAMBDA_FUNCTION_NAME": "mcp-tasks-quote",
    "AWS_LAMBDA_LOG_STREAM_NAME": "2026/11/24/[$LATEST]0123",
}


@pytest.fixture(autouse=True)
def logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """The logger of a new process."""
    fresh = logging.Logger("mcp_tasks.tracebacks")
    fresh.disabled = True
    monkeypatch.setattr(tracebacks, "logger", fresh)
    yield fresh
    for handler in fresh.handlers:
        handler.close()


@pytest.fixture
def error(tmp_path: Path) -> Exception:
    """What an author's function raises."""
    tools = author_module(tmp_path, "boom", "def boom(text):\n    raise ValueError(text)\n")
    try:
        tools.boom(SECRET)
    except ValueError as raised:
        return raised
    raise AssertionError


@pytest.fixture
def cloudwatch() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("logs", "us-east-1")
        client.create_log_group(logGroupName=GROUP)
        yield client


def crash(error: Exception) -> str:
    """Log a crash as a worker does. Returns the reference."""
    own = Logger(service="tracebacks")
    own.append_keys(tool="boom", task_id="c1-0")
    return log_crash(own, error)


def written(client: Any) -> list[dict[str, Any]]:
    """The events of the log group, each with its stream."""
    events = client.filter_log_events(logGroupName=GROUP)["events"]
    return [{"stream": each["logStreamName"], **json.loads(each["message"])} for each in events]


def test_a_traceback_is_written_nowhere_by_default(
    error: Exception, logger: logging.Logger, capfd: pytest.CaptureFixture[str]
) -> None:
    keep_tracebacks({"AWS_LAMBDA_FUNCTION_NAME": "mcp-tasks-quote"})
    crash(error)
    assert logger.handlers == []
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err


def test_the_file_has_the_traceback_under_the_reference(error: Exception, tmp_path: Path) -> None:
    file = tmp_path / "tracebacks.log"
    for _ in range(2):  # as two handlers of one process
        keep_tracebacks({environment.TRACEBACK_FILE: str(file)})
    assert not file.exists()
    reference = crash(error)
    text = file.read_text()
    assert text.count(f"reference={reference} tool=boom task_id=c1-0\n") == 1
    assert text.endswith(f"ValueError: {SECRET}\n")
    assert 'boom.py", line 2, in boom' in text


def test_the_log_group_has_the_traceback_under_the_reference(
    error: Exception, logger: logging.Logger, cloudwatch: Any
) -> None:
    """`api`, the workers and others share the group: each instance has a stream of its own."""
    keep_tracebacks({environment.TRACEBACK_LOG_GROUP: GROUP, **LAMBDA})
    references = [crash(error), crash(error)]
    events = written(cloudwatch)
    assert [each["reference"] for each in events] == references
    assert {each["stream"] for each in events} == {"mcp-tasks-quote/2026/11/24/[$LATEST]0123"}
    assert all((each["tool"], each["task_id"]) == ("boom", "c1-0") for each in events)
    assert all(each["traceback"].endswith(f"ValueError: {SECRET}") for each in events)


def test_a_stream_that_exists_is_used(error: Exception, cloudwatch: Any) -> None:
    """An instance goes on with its stream when its process was killed."""
    for _ in range(2):
        LogGroupHandler(GROUP, "quote/1", cloudwatch)._put("{}")
    assert len(written(cloudwatch)) == 2


def test_a_long_traceback_keeps_its_end(
    error: Exception, logger: logging.Logger, cloudwatch: Any
) -> None:
    error.args = ("x" * 2_000_000 + SECRET,)
    keep_tracebacks({environment.TRACEBACK_LOG_GROUP: GROUP, **LAMBDA})
    crash(error)
    (event,) = written(cloudwatch)
    assert len(event["traceback"]) == MAX_TRACEBACK_CHARACTERS
    assert event["traceback"].endswith(SECRET)


def test_a_traceback_that_cannot_be_written_is_left_out_and_that_is_logged(
    error: Exception, capsys: pytest.CaptureFixture[str], cloudwatch: Any
) -> None:
    """The crash itself, and its reference, reach the client all the same."""
    keep_tracebacks({environment.TRACEBACK_LOG_GROUP: "another", **LAMBDA})
    reference = crash(error)
    out = capsys.readouterr().out
    assert re.fullmatch("[0-9a-f]{12}", reference)
    assert '"A traceback was not written"' in out
    assert '"ResourceNotFoundException"' in out
    assert SECRET not in out


def test_no_traceback_reaches_the_handler_of_lambdas_runtime(
    error: Exception, tmp_path: Path
) -> None:
    """The root logger has it: what propagates is in the function's own log."""
    script = (
        "import logging, sys; from mcp_tasks import tracebacks\n"
        "logging.basicConfig(stream=sys.stdout)\n"
        f"tracebacks.keep_tracebacks({{'{environment.TRACEBACK_FILE}': sys.argv[1]}})\n"
        f"tracebacks.write_traceback(ValueError('{SECRET}'), 'r', {{}})\n"
    )
    file = tmp_path / "tracebacks.log"
    done = subprocess.run(
        [sys.executable, "-c", script, file],
        env={"PYTHONPATH": str(ROOT / "functions")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert SECRET in file.read_text()
