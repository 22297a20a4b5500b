"""A tool's Amazon States Language, as it is deployed: its own, or that of every function tool."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mcp_tasks.registry.tool import MAX_LAMBDA_TIMEOUT, Tool
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.questions import MAX_ANSWERS_CHARACTERS
from mcp_tasks.workflows.retry import TRANSIENT_ERROR
from mcp_tasks.workflows.step_payloads import MAX_STEP_OUTPUT_BYTES

ASK: Final = "ask"
WORKER: Final = "worker"

FUNCTION_TASK: Final = Path(__file__).with_name("function_task.asl.json")
ONE_YEAR: Final = timedelta(days=365)
"""How long an execution may run (Step Functions developer guide, "Quotas")."""
TRACE: Final = (
    "{% $exists($states.context.Execution.Input._meta) "
    "? $merge([{}, $sift($states.context.Execution.Input._meta, "
    "function($v, $k) { $k != 'answers' })]) "
    ": {} %}"
)
"""Where `$sift` leaves nothing it finds nothing at all, which would be an error."""
RETRIED: Final = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.TooManyRequestsException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    TRANSIENT_ERROR,
)
"""Lambda throttles or is at fault (Step Functions developer guide, "Handle transient Lambda service
exceptions"), or AWS has no room for what a function of ours needs."""
ASKED_AGAIN: Final = ("Lambda.Unknown", "Sandbox.Timedout")
"""A function was killed, or ran over its time. What a tool did by then nobody knows; to ask twice
does no harm."""
RETRY: Final = {
    "IntervalSeconds": 1,
    "BackoffRate": 2,
    "MaxDelaySeconds": 60,
    "MaxAttempts": 10,
    "JitterStrategy": "FULL",
}
"""For up to five minutes."""
WILDCARDS: Final = frozenset({"States.ALL", "States.TaskFailed"})
"""Names that all of the above fall under (developer guide, "Error names")."""
TOGETHER: Final = 200_000
"""Bytes of the outputs that a Parallel state puts together; Step Functions carries 256 KiB."""
MAP_ROOM: Final = 2_000
"""Bytes of an output in an iteration of a Map, of which nobody knows how many there are. Step
Functions' 256 KiB take a hundred outputs that are just small enough to stay where they are, and a
thousand that are pointers."""
LEAST_ROOM: Final = 500
"""Bytes. A pointer has some 200."""
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
"""What CloudFormation replaces; JSONata's `${key: value}` is something else."""
_FUNCTIONS: Final = {f"${{{name}}}": name for name in (ASK, WORKER)}
_USUAL_ROOM: Final = {ASK: MAX_ANSWERS_CHARACTERS, WORKER: MAX_STEP_OUTPUT_BYTES}
"""Bytes of an output where it is not put together with others."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A state machine's text, and which functions it calls: `${ask}`, `${worker}`."""

    text: str
    placeholders: frozenset[str]

    @classmethod
    def of(cls, tool: Tool) -> Definition:
        """Read the tool's definition, and add what it left out: limits, retries, and what no author
        should have to think of.

        Raises ValueError, naming the file, for one that could not be deployed, would outlive its
        tasks, or could not be looked after.
        """
        own = tool.definition_file if isinstance(tool, WorkflowTool) else None
        file = own or FUNCTION_TASK
        source = file.read_text(encoding="utf-8")
        try:
            definition = json.loads(source)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        if not isinstance(definition, dict):
            raise ValueError(f"{file}: not an Amazon States Language object")
        placeholders = frozenset(_PLACEHOLDER.findall(source))
        _check_placeholders(file, placeholders, tool)
        _limit(file, definition, tool.ttl)
        language = definition.get("QueryLanguage", "JSONPath")
        for state in _states(definition, language, TOGETHER):
            _complete(file, state)
        if own is None:
            definition["States"]["Run"]["TimeoutSeconds"] = math.ceil(tool.timeout.total_seconds())
        return cls(json.dumps(definition), placeholders)


def worker_timeout(tool: Tool) -> int:
    """Seconds. The state's timeout comes first, so that a tool that runs over its time is named."""
    return math.ceil(min(tool.timeout + timedelta(seconds=5), MAX_LAMBDA_TIMEOUT).total_seconds())


@dataclass(frozen=True, slots=True)
class _State:
    """A state that calls `${worker}` or `${ask}`."""

    name: str
    state: dict[str, Any]
    called: str
    event: dict[str, Any] | None
    """What it hands to the function, where that is written as an object."""
    jsonata: bool
    room: int | None
    """Bytes that its output may have, where that is less than usual."""


def _states(machine: dict[str, Any], language: str, share: int) -> Iterator[_State]:
    """The states that call a function of the deployment, those within other states included.

    `share` is what the outputs of the machine's states may have, put together by what is around it.
    """
    for name, state in machine.get("States", {}).items():
        if not isinstance(state, dict):
            continue
        jsonata = state.get("QueryLanguage", language) == "JSONata"
        called, event = _call(state, jsonata)
        if called is not None:
            room = max(LEAST_ROOM, share) if share < _USUAL_ROOM[called] else None
            yield _State(name, state, called, event, jsonata, room)
        branches = state.get("Branches", ())
        within = [(branch, share // len(branches)) for branch in branches]
        # A Map of JSONPath may still call it Iterator.
        within += [(state.get(key), min(MAP_ROOM, share)) for key in ("ItemProcessor", "Iterator")]
        for nested, part in within:
            if isinstance(nested, dict):
                yield from _states(nested, language, part)


def _call(state: dict[str, Any], jsonata: bool) -> tuple[str | None, dict[str, Any] | None]:
    """Which function a state calls, and with what."""
    if state.get("Type") != "Task":
        return None, None
    event = state.get("Arguments" if jsonata else "Parameters")
    called = _FUNCTIONS.get(str(state.get("Resource")))
    if called is None and isinstance(event, dict):
        called, event = _FUNCTIONS.get(str(event.get("FunctionName"))), event.get("Payload")
    return called, event if isinstance(event, dict) else None


def _complete(file: Path, state: _State) -> None:
    """Add what a call needs: retries, the client's trace context, and how much it may return.

    Where a state is written in JSONPath, no trace: a path that finds nothing ends the execution.
    And nothing at all is added to an event that is one expression, or the state's input as it is.
    """
    _retry(state.state, (*RETRIED, *ASKED_AGAIN) if state.called == ASK else RETRIED)
    heartbeats = {"HeartbeatSeconds", "HeartbeatSecondsPath"} & set(state.state)
    if state.called == ASK and heartbeats:
        raise ValueError(
            f"{file}: {state.name}: a state that asks cannot have HeartbeatSeconds: the server "
            "sends heartbeats to see whether the state still waits; give it TimeoutSeconds"
        )
    if state.event is None:
        return
    if state.called == WORKER and state.jsonata:
        state.event.setdefault("trace", TRACE)
    if state.room is not None and "room.$" not in state.event:
        state.event.setdefault("room", state.room)


def _retry(state: dict[str, Any], errors: Sequence[str]) -> None:
    """Have the state tried again for those of the errors that its author says nothing of.

    The first retrier that names an error is the one that counts. An empty list is an author's way
    to say that nothing is to be tried again.
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


def _check_placeholders(file: Path, placeholders: frozenset[str], tool: Tool) -> None:
    unknown = placeholders - {ASK, WORKER}
    if unknown:
        names = ", ".join(f"${{{name}}}" for name in sorted(unknown))
        raise ValueError(f"{file}: {names}: only ${{{WORKER}}} and ${{{ASK}}} are known")
    if WORKER in placeholders and isinstance(tool, WorkflowTool) and not tool.steps:
        raise ValueError(f"{file}: ${{{WORKER}}} runs steps, and {tool.name} declares none")


def _limit(file: Path, definition: dict[str, Any], ttl: timedelta) -> None:
    """An execution must not outlive its task."""
    longest = max(1, int(min(ttl, ONE_YEAR).total_seconds()))
    timeout = definition.setdefault("TimeoutSeconds", longest)
    if not isinstance(timeout, int) or timeout > longest:
        raise ValueError(
            f"{file}: TimeoutSeconds is {timeout!r}; it may be at most {longest}, the tool's ttl"
        )
