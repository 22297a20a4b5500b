"""Refuse definitions with a Distributed Map, whose items would not be of the task.

A Map state in the mode DISTRIBUTED runs each iteration in an execution of its own (Step Functions
developer guide, "Using Map state in Distributed mode"). There `$states.context.Execution.Name` is
that execution's name and not the task's id: a step could not report, `ask` would find no row, and a
cancel would not stop the steps that run. The state machine would also have to be allowed to start,
describe and stop its own executions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

DISTRIBUTED: Final = "DISTRIBUTED"


def refuse_distributed_map(file: Path, definition: Mapping[str, Any]) -> None:
    """Raise ValueError, naming file and state, for a Distributed Map at any depth."""
    for name in _distributed(definition):
        raise ValueError(
            f"{file}: {name}: a Distributed Map (ProcessorConfig.Mode is {DISTRIBUTED}) runs its "
            "items in executions that are not the task's, so their steps can neither report nor "
            "ask nor be cancelled. Use the mode INLINE, which runs 40 items at a time; or a "
            "function with task.map; or keep the Distributed Map in a state machine of your own "
            "and offer that by workflow_tool(state_machine_arn=...)"
        )


def _distributed(machine: Mapping[str, Any]) -> Iterator[str]:
    """The names of the states, those within Parallel and Map states included."""
    states = machine.get("States")
    for name, state in states.items() if isinstance(states, dict) else ():
        if not isinstance(state, dict):
            continue
        # A Map in JSONPath may still call its processor Iterator.
        processors = [state.get("ItemProcessor"), state.get("Iterator")]
        for processor in processors:
            config = processor.get("ProcessorConfig") if isinstance(processor, dict) else None
            if isinstance(config, dict) and config.get("Mode") == DISTRIBUTED:
                yield name
        branches = state.get("Branches")
        for inner in (*processors, *(branches if isinstance(branches, list) else ())):
            if isinstance(inner, dict):
                yield from _distributed(inner)
