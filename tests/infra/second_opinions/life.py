"""What happens to a task, as a script of the functions that its state machine calls.

`python/scripted_functions.py` says what a script's steps are. The outputs of the worker are those
of `mcp_tasks/workflows/tool_run.py`; those of `subtasks`, of `mcp_tasks/workflows/subtasks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FUNCTION_TOOL: Final = "mcp-tasks-estimate_savings"
WITHOUT_CONTEXT: Final = "fork-count_words"
WORKFLOW: Final = "mcp-tasks-tally_columns"
ARGUMENTS: Final = {"months": 3}
INPUT: Final = {"arguments": ARGUMENTS, "answers": {}, "client_can": ["elicitation"], "trace": {}}
"""Of a function tool's execution (`mcp_tasks/workflows/execution_input.py`)."""
ANSWER: Final = {"sure": {"action": "accept", "content": {"yes": True}}}

Step = dict[str, Any]
Call = tuple[str, dict[str, Any]]
"""A function, and a part of what it was called with."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """An execution from its start to its end."""

    state_machine: str
    script: dict[str, list[Step]]
    calls: list[Call]
    """What must be called. Calls that run side by side have the order of their numbers."""
    output: Any = None
    failed: tuple[str, str | None] | None = None
    """The error and the cause that the execution fails with."""
    input: Mapping[str, Any] = field(default_factory=lambda: INPUT)
    task: str = "c1-4f2b9c1e"

    @property
    def name(self) -> str:
        """The execution's name: of a function tool, the task's id and a number."""
        return f"{self.task}-2" if self.state_machine == FUNCTION_TOOL else self.task


def raises(error: str, times: int = 1, **step: Any) -> list[Step]:
    """Steps that raise an error, each in one call."""
    return [{"raises": [error, "it broke"], **step}] * times
