"""A tool's Amazon States Language, as it is deployed: its own file, or that of all function
tools."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.tool import MAX_LAMBDA_TIMEOUT, Tool
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.questions import MAX_ANSWERS_CHARACTERS
from mcp_tasks.workflows.retry import TRANSIENT_ERROR
from mcp_tasks.workflows.step_payloads import MAX_STEP_OUTPUT_BYTES

from .distributed_map import refuse_distributed_map

ASK: Final = "ask"
PARTITION: Final = "partition"
"""Of `arn:${partition}:states:::...`: `aws`, `aws-cn`, `aws-us-gov` and others (IAM user guide,
"IAM ARNs")."""
SUBTASKS: Final = "subtasks"
WORKER: Final = "worker"

FUNCTION_TASK: Final = Path(__file__).with_name("function_task.asl.json")
FUNCTION_WITHOUT_CONTEXT: Final = Path(__file__).with_name("function_without_context.asl.json")
LANE: Final = "Run lane"
"""The state of FUNCTION_TASK that runs items of a map."""
SUBTASK: Final = "Subtask"
"""The state of FUNCTION_TASK that starts one of several subtasks."""
START_SECONDS: Final = 15
"""Until an instance of a function that was called begins with the call: its initialization takes at
most 10 (Lambda developer guide, "Lambda execution environment lifecycle")."""
MAX_EXECUTION_TIME: Final = timedelta(days=365)
"""Step Functions developer guide, "Quotas"."""
TRACE_EXPRESSION: Final = (
    "{% $exists($states.context.Execution.Input._meta) "
    "? $merge([{}, $sift($states.context.Execution.Input._meta, "
    "function($v, $k) { $k != 'answers' })]) "
    ": {} %}"
)
"""The client's trace context. `$sift` has no result at all when nothing is left, which would be an
error; `$merge` makes it an empty object."""
THROTTLED: Final = "Lambda.TooManyRequestsException"
"""The function has as many instances as it may have: the call never reached it."""
TRANSIENT_ERRORS: Final = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    TRANSIENT_ERROR,
)
"""Errors of Lambda (Step Functions developer guide, "Handle transient Lambda service exceptions"),
and transient errors of AWS that a function met."""
UNKNOWN_OUTCOME_ERRORS: Final = (
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "Runtime.OutOfMemory",
)
"""A function was killed, or ran longer than its timeout. Nobody knows what a tool had done by then,
so only states that ask, or start subtasks, are retried: to do that twice does no harm."""
RETRY: Final = {
    "IntervalSeconds": 1,
    "BackoffRate": 2,
    "MaxDelaySeconds": 60,
    "MaxAttempts": 10,
    "JitterStrategy": "FULL",
}
"""For up to five minutes."""
MAX_THROTTLED_ATTEMPTS: Final = 4_000
"""An execution's history has 25,000 events, and an attempt takes three (developer guide,
"Quotas"). A function tool begins a run when 9,000 are there (`run_event.MAX_EVENTS`)."""
MAX_THROTTLED_LANE_ATTEMPTS: Final = 40
"""Of each of 40 lanes, in one history. What a lane has not done is left for the next run."""
MAX_THROTTLED_SUBTASK_ATTEMPTS: Final = 8
"""Of each of 100 subtasks (`run_event.MAX_AT_ONCE`), in one history."""
MIN_THROTTLED_DELAY_SECONDS: Final = 60
WILDCARDS: Final = frozenset({"States.ALL", "States.TaskFailed"})
"""Names that stand for all of the errors above (developer guide, "Error names")."""
MAX_COMBINED_OUTPUT_BYTES: Final = 200_000
"""Of the outputs that a Parallel state combines; Step Functions carries 256 KiB."""
MAX_MAP_OUTPUT_BYTES: Final = 2_000
"""Of a state's output in one iteration of a Map, whose number of iterations is unknown. Step
Functions' 256 KiB hold a hundred such outputs, or a thousand payload pointers."""
MIN_OUTPUT_BYTES: Final = 500
"""Every output may have as many: a payload pointer has some 200."""
_DEFAULT_OUTPUT_BYTES: Final = {
    ASK: MAX_ANSWERS_CHARACTERS,
    SUBTASKS: 0,  # a list of numbers
    WORKER: MAX_STEP_OUTPUT_BYTES,
}
"""Of an output that is not combined with others, by the function that returns it."""
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
"""What CloudFormation replaces. JSONata's `${key: value}` is something else."""
_FUNCTIONS: Final = {f"${{{name}}}": name for name in (ASK, SUBTASKS, WORKER)}


@dataclass(frozen=True, slots=True)
class Definition:
    """A state machine's text, and what stands in it for something else: the functions `${ask}`,
    `${worker}`, and for function tools `${subtasks}`; and `${partition}`."""

    text: str
    placeholders: frozenset[str]

    @classmethod
    def of(cls, tool: Tool) -> Definition:
        """Read the tool's definition, and add timeouts, retries, trace context and output limits.

        Raises ValueError, naming the file, for a definition that cannot be deployed, that would
        outlive its tasks, or whose tasks could not be reconciled.
        """
        own = tool.definition_file if isinstance(tool, WorkflowTool) else None
        file = own or (FUNCTION_TASK if is_durable(tool) else FUNCTION_WITHOUT_CONTEXT)
        source = file.read_text(encoding="utf-8")
        try:
            definition = json.loads(source)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        if not isinstance(definition, dict):
            raise ValueError(f"{file}: not an Amazon States Language object")
        placeholders = frozenset(_PLACEHOLDER.findall(source))
        _check_placeholders(file, placeholders, tool, own=own is not None)
        refuse_distributed_map(file, definition)
        throttled_retry = _throttled_retry(tool.ttl)
        _set_timeout(file, definition, tool.ttl)
        language = definition.get("QueryLanguage", "JSONPath")
        for call in _calls(definition, language, MAX_COMBINED_OUTPUT_BYTES):
            retry = throttled_retry
            if own is None:
                call = replace(call, max_output_bytes=None)
                if call.function == WORKER:
                    call.state["TimeoutSeconds"] = worker_timeout(tool) + START_SECONDS
                if call.name == LANE:
                    retry = {**retry, "MaxAttempts": MAX_THROTTLED_LANE_ATTEMPTS}
                if call.name == SUBTASK:
                    retry = {**retry, "MaxAttempts": MAX_THROTTLED_SUBTASK_ATTEMPTS}
            _complete(file, call, retry)
        return cls(json.dumps(definition), placeholders)


def is_durable(tool: Tool) -> bool:
    """Whether a tool may ask, wait and do durable operations: a function that takes a context."""
    return isinstance(tool, FunctionTool) and tool.context_parameter is not None


def worker_timeout(tool: Tool) -> int:
    """Seconds that a run may take, by which Lambda stops it. They begin when the instance is
    ready; a state's `TimeoutSeconds` would count its start as the tool's time."""
    return math.ceil(min(tool.timeout + timedelta(seconds=5), MAX_LAMBDA_TIMEOUT).total_seconds())


@dataclass(frozen=True, slots=True)
class _Call:
    """A state that calls `${worker}`, `${ask}` or `${subtasks}`."""

    name: str
    state: dict[str, Any]
    function: str
    """`ask`, `subtasks` or `worker`."""
    event: dict[str, Any] | None
    """What the function is called with, where that is written as an object."""
    jsonata: bool
    max_output_bytes: int | None
    """Where the output may be smaller than by default."""


def _calls(machine: dict[str, Any], language: str, combined_bytes: int) -> Iterator[_Call]:
    """The states that call a function of the stack, those within other states included.

    `combined_bytes` is what the outputs of the machine's states may have together, because a
    Parallel or a Map around the machine combines them.
    """
    for name, state in machine.get("States", {}).items():
        if not isinstance(state, dict):
            continue
        jsonata = state.get("QueryLanguage", language) == "JSONata"
        function, event = _called(state, jsonata)
        if function is not None:
            combined = combined_bytes < _DEFAULT_OUTPUT_BYTES[function]
            limit = max(MIN_OUTPUT_BYTES, combined_bytes) if combined else None
            yield _Call(name, state, function, event, jsonata, limit)
        branches = state.get("Branches", ())
        nested = [(branch, combined_bytes // len(branches)) for branch in branches]
        # A Map in JSONPath may still call its processor Iterator.
        iteration_bytes = min(MAX_MAP_OUTPUT_BYTES, combined_bytes)
        nested += [(state.get(key), iteration_bytes) for key in ("ItemProcessor", "Iterator")]
        for inner, inner_bytes in nested:
            if isinstance(inner, dict):
                yield from _calls(inner, language, inner_bytes)


def _called(state: dict[str, Any], jsonata: bool) -> tuple[str | None, dict[str, Any] | None]:
    """The function that a state calls, and with what."""
    if state.get("Type") != "Task":
        return None, None
    event = state.get("Arguments" if jsonata else "Parameters")
    function = _FUNCTIONS.get(str(state.get("Resource")))
    if function is None and isinstance(event, dict):
        function, event = _FUNCTIONS.get(str(event.get("FunctionName"))), event.get("Payload")
    return function, event if isinstance(event, dict) else None


def _complete(file: Path, call: _Call, throttled_retry: dict[str, Any]) -> None:
    """Add retries, the client's trace context, and how large the output may be.

    A state in JSONPath gets no trace context: a path that finds nothing ends the execution. An
    event that is one expression, or the state's input as it is, gets nothing at all.
    """
    asks, works = call.function == ASK, call.function == WORKER
    errors = TRANSIENT_ERRORS if works else (*TRANSIENT_ERRORS, *UNKNOWN_OUTCOME_ERRORS)
    _add_retry(call.state, errors, throttled_retry)
    if asks and {"HeartbeatSeconds", "HeartbeatSecondsPath"} & set(call.state):
        raise ValueError(
            f"{file}: {call.name}: a state that asks cannot have HeartbeatSeconds: the server "
            "sends heartbeats to see whether the state still waits; give it TimeoutSeconds"
        )
    if call.event is None:
        return
    if call.function == WORKER and call.jsonata:
        call.event.setdefault("trace", TRACE_EXPRESSION)
    if call.max_output_bytes is not None and "max_output_bytes.$" not in call.event:
        call.event.setdefault("max_output_bytes", call.max_output_bytes)


def _throttled_retry(ttl: timedelta) -> dict[str, Any]:
    """The retrier of calls that found no free instance: they wait for one, as long as the task
    lives.

    A call is repeated after half of the delay, on average. The delay grows with the `ttl`, so that
    the attempts last for twice that time, and the half of them fits into the history.
    """
    delay = math.ceil(ttl.total_seconds() * 4 / MAX_THROTTLED_ATTEMPTS)
    return {
        "ErrorEquals": [THROTTLED],
        **RETRY,
        "MaxDelaySeconds": max(MIN_THROTTLED_DELAY_SECONDS, delay),
        "MaxAttempts": MAX_THROTTLED_ATTEMPTS,
    }


def _add_retry(
    state: dict[str, Any], errors: Sequence[str], throttled_retry: dict[str, Any]
) -> None:
    """Retry a state for those of the errors that no retrier of its author names.

    Step Functions uses the first retrier that names an error, so the one of calls that never
    reached their function comes before an author's `States.ALL`. An empty list is an author's way
    to say that nothing is retried.
    """
    own = state.get("Retry")
    if own is None:
        own = state["Retry"] = []
    elif not own or not isinstance(own, list):
        return
    retriers = [retrier for retrier in own if isinstance(retrier, dict)]
    named = {error for retrier in retriers for error in retrier.get("ErrorEquals", ())}
    missing = [error for error in errors if error not in named]
    if missing and not named & WILDCARDS:
        own.append({"ErrorEquals": missing, **RETRY})
    if THROTTLED not in named:
        own.insert(0, dict(throttled_retry))


def _check_placeholders(file: Path, placeholders: frozenset[str], tool: Tool, *, own: bool) -> None:
    unknown = placeholders - ({ASK, WORKER} if own else set(_DEFAULT_OUTPUT_BYTES)) - {PARTITION}
    if unknown:
        names = ", ".join(f"${{{name}}}" for name in sorted(unknown))
        known = ", ".join(f"${{{name}}}" for name in (WORKER, ASK, PARTITION))
        raise ValueError(f"{file}: {names}: only {known} are known")
    if tool.max_concurrency is not None and WORKER not in placeholders:
        raise ValueError(f"{file}: max_concurrency limits ${{{WORKER}}}, which no state calls")
    if WORKER in placeholders and isinstance(tool, WorkflowTool) and not tool.steps:
        raise ValueError(f"{file}: ${{{WORKER}}} runs steps, and {tool.name} declares none")


def _set_timeout(file: Path, definition: dict[str, Any], ttl: timedelta) -> None:
    """Give the execution a timeout that its task outlives."""
    longest = max(1, int(min(ttl, MAX_EXECUTION_TIME).total_seconds()))
    timeout = definition.setdefault("TimeoutSeconds", longest)
    if not isinstance(timeout, int) or timeout > longest:
        raise ValueError(
            f"{file}: TimeoutSeconds is {timeout!r}; it may be at most {longest}, the tool's ttl"
        )
