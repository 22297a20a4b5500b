"""The tool that another tool calls as a subtask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .retry_policy import ONCE

if TYPE_CHECKING:
    from .durable_operations import StepOptions
    from .tool import Tool


def tool_of(function: Any) -> Tool | None:
    """The declaration of a tool that runs as a task; None for any other function."""
    # Not at the top: a tool's module imports the context, whose operations call this.
    from .decorated_function import DECLARATION
    from .tool import Tool

    declared = function if isinstance(function, Tool) else getattr(function, DECLARATION, None)
    if not isinstance(declared, Tool) or declared.task_support == "forbidden":
        return None
    return declared


def called_tool(function: Any) -> Tool:
    """The declaration of a tool that `task.call` is given. Raises TypeError for anything else."""
    tool = tool_of(function)
    if tool is None:
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f'task.call: {name} is no tool with task="optional" or task="required", or no workflow '
            "tool; call any other function in a step (task.step)"
        )
    return tool


def arguments_of_items(items: Sequence[Any], tool: Tool, options: StepOptions) -> list[Any]:
    """The arguments of each subtask of a map over a tool. Raises TypeError."""
    if options.retry is not ONCE or options.timeout is not None:
        raise TypeError(
            f"task.map: retry and timeout are for steps; {tool.name} is a tool, which has its own"
        )
    if not all(isinstance(item, Mapping) for item in items):
        raise TypeError(
            f"task.map: {tool.name} is a tool, so each item is a mapping of its arguments"
        )
    return list(items)
