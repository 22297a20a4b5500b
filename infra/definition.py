"""A tool's Amazon States Language, as it is deployed: its own, or that of every function tool."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mcp_tasks.registry.tool import LAMBDA_LIMIT, Tool, WorkflowTool

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
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
"""What CloudFormation replaces; JSONata's `${key: value}` is something else."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A state machine's text, and which functions it calls: `${ask}`, `${worker}`."""

    text: str
    placeholders: frozenset[str]

    @classmethod
    def of(cls, tool: Tool) -> Definition:
        """Read the tool's definition, and add the limits that it left out.

        Raises ValueError, naming the file, for one that could not be deployed or would outlive
        its tasks.
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
        if own is not None:
            _trace(definition, definition.get("QueryLanguage", "JSONPath"))
        else:
            definition["States"]["Run"]["TimeoutSeconds"] = math.ceil(tool.timeout.total_seconds())
        return cls(json.dumps(definition), placeholders)


def worker_timeout(tool: Tool) -> int:
    """Seconds. The state's timeout comes first, so that a tool that runs over its time is named."""
    return math.ceil(min(tool.timeout + timedelta(seconds=5), LAMBDA_LIMIT).total_seconds())


def _trace(machine: dict[str, Any], language: str) -> None:
    """Hand the client's trace context to every step, so that no author has to.

    Only where a state is written in JSONata: a JSONPath that finds nothing ends the execution.
    """
    for state in machine.get("States", {}).values():
        if not isinstance(state, dict):
            continue
        arguments = state.get("Arguments")
        if state.get("QueryLanguage", language) == "JSONata" and isinstance(arguments, dict):
            if state.get("Resource") == f"${{{WORKER}}}":
                arguments.setdefault("trace", TRACE)
            elif arguments.get("FunctionName") == f"${{{WORKER}}}":
                payload = arguments.get("Payload")
                if isinstance(payload, dict):
                    payload.setdefault("trace", TRACE)
        for nested in (state.get("ItemProcessor"), *state.get("Branches", ())):
            if isinstance(nested, dict):
                _trace(nested, language)


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
