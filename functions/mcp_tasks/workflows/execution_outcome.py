"""What an execution's end means for its task: a result, or a JSON-RPC error. Pure.

tasks.md, "Task Execution Errors": a tool that failed is a *result* (`completed`, `isError`), and
only protocol-level faults are `failed`. For an execution that means:

- SUCCEEDED: the output is the tool's result.
- FAILED with the error name `ToolError`: a result with isError. Its text is the message that the
  step stored on the task's row, or the cause of a Fail state.
- FAILED with the error name `NonDeterminism`: the error -32603, whose message is the cause.
- FAILED with another name, TIMED_OUT, ABORTED: the error -32603. Its message has the error's name,
  and the reference to the log that the cause of a crash has. The rest of the cause is left out: it
  may quote arguments, answers or a stack trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..crash_report import reference_in, with_reference, without_reference
from ..protocol.errors import ErrorCode
from .executions import ExecutionEnd

TOOL_ERROR: Final = "ToolError"

NON_DETERMINISM: Final = "NonDeterminism"
"""A tool took another way than its journal. The cause names the two operations."""

NOT_UNDONE: Final = "Not undone: "
"""What the cause of a tool's failure begins with, where steps of it were not undone."""

STATE_TIMEOUTS: Final = frozenset({"States.Timeout", "States.HeartbeatTimeout"})
TIMEOUTS: Final = STATE_TIMEOUTS | {"Sandbox.Timedout"}
"""A state's own limit, a Lambda function's, and a missed heartbeat (Amazon States Language,
"Error names"; Lambda developer guide, "Sandbox.Timedout")."""

UNKNOWN: Final = "Lambda.Unknown"
FUNCTION_TIMED_OUT: Final = re.compile(r"Task timed out after [\d.]+ seconds")
"""What Lambda says of a function that ran over its time. "Unhandled errors in Lambda runtimes were
historically reported only as Lambda.Unknown. In newer runtimes, timeouts are reported as
Sandbox.Timedout" (Step Functions developer guide, "Error names")."""

TOOL_REMOVED: Final = "The server does not have the tool any more"

SERVER_REMOVED: Final = "The server is being removed"

NOT_STARTED: Final = "The task could not be started"

TIMED_OUT: Final = "The tool ran over its time and was stopped"

_STATE_MACHINE_DELETED: Final = re.compile(r"States\.Runtime: State machine .* has been deleted\.")
"""How an execution ends at its next transition once its state machine is deleted (AWS re:Post
Knowledge Center, "My Step Functions state machine is stuck in the DELETING status")."""

_WORKER_FAILURE: Final = re.compile(r"\[(?P<name>[A-Za-z_]\w*)\] .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Completed:
    """The task's tool call has a result."""

    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The task's tool call failed with a JSON-RPC error."""

    message: str
    reference: str | None = None
    """What finds a crash in the log."""

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error object of `tasks/get`. Some clients show its message only, others
        `statusMessage`, which is the same text."""
        error = {"code": int(ErrorCode.INTERNAL_ERROR), "message": self.message}
        if self.reference is None:
            return error
        message = with_reference(self.message, self.reference)
        return {**error, "message": message, "data": {"reference": self.reference}}


def outcome(
    end: ExecutionEnd, as_result: Callable[[Any], dict[str, Any]], explained: str | None = None
) -> Completed | Failed:
    """Translate an execution's end; `as_result` turns an output into a tool result.

    `explained` is the message of the last step that raised a ToolError. `as_result` raises
    ValueError for an output that does not match the tool's output schema.
    """
    if end.status == "SUCCEEDED":
        try:
            return Completed(as_result(end.output))
        except ValueError:
            return Failed("The workflow's output does not match the tool's output schema")
    if end.status == "TIMED_OUT":
        return Failed(TIMED_OUT)
    if end.status == "ABORTED":
        return Failed("The tool's execution was aborted by the server's operator")
    name, message = _failure(end)
    if name == TOOL_ERROR:
        message = message if message is not None else explained or "The tool failed"
        return Completed({"content": [{"type": "text", "text": message}], "isError": True})
    if name in TIMEOUTS or (name == UNKNOWN and FUNCTION_TIMED_OUT.search(message or "")):
        return Failed(TIMED_OUT)
    if _STATE_MACHINE_DELETED.fullmatch(f"{end.error}: {end.cause}"):
        return Failed(TOOL_REMOVED)
    if name == NON_DETERMINISM and message:
        return Failed(f"{NON_DETERMINISM}: {message}")
    reference = reference_in(end.cause)
    if message is not None and message.startswith(NOT_UNDONE):
        return Failed(f"The tool failed: {name}. {without_reference(message)}", reference)
    return Failed(f"The tool failed: {name}", reference)


def is_non_determinism(error: Mapping[str, Any] | None) -> bool:
    """Whether a task failed because its tool took another way than before."""
    return error is not None and str(error.get("message")).startswith(f"{NON_DETERMINISM}: ")


def may_leave_a_step(end: ExecutionEnd, *, sequential: bool) -> bool:
    """Whether a step may run on after its execution's end: nothing stops a Lambda function.

    So it is when an execution is stopped from outside or runs over its time, and when one branch of
    a Parallel or a Map fails while others run.
    """
    if end.status == "SUCCEEDED":
        return False
    if end.status != "FAILED" or not sequential:
        return True
    return _failure(end)[0] in STATE_TIMEOUTS


def _failure(end: ExecutionEnd) -> tuple[str, str | None]:
    """The failure's name and message; None for a message that the worker stored on the row.

    The cause of a failed Lambda function is the function's error payload. The worker's errors have
    the message `[Name] ...` (see `redaction.error_without_message`). Lambda's own errors (out of
    memory, a lost environment) have a name only. The cause of a Fail state is plain text.
    """
    try:
        payload = json.loads(end.cause)
    except ValueError:
        payload = None
    if not isinstance(payload, dict) or "errorMessage" not in payload:
        return end.error or "unknown error", end.cause
    ours = _WORKER_FAILURE.fullmatch(str(payload["errorMessage"]))
    if ours is None:  # a ToolError of another function: its message was written for the caller
        return end.error or "unknown error", str(payload["errorMessage"])
    return ours["name"], None
