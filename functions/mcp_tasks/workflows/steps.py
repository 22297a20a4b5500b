"""Run one step of a workflow tool inside a worker."""

from __future__ import annotations

from typing import Any

from ..protocol.meta import META_MEMBER
from ..registry.context import Context, InputRequired
from ..registry.workflow_tool import WorkflowTool


def run_step(tool: WorkflowTool, name: str, arguments: Any, task: Context) -> Any:
    """Run one of a workflow tool's steps and return its output as JSON values.

    Raises LookupError for a step that the tool does not have, TypeError for one that asks, and
    what the step raises.
    """
    step = tool.steps.get(name)
    if step is None:
        raise LookupError(f"{tool.name} has no step {name!r}; it has {', '.join(tool.steps)}")
    if isinstance(arguments, dict):
        # A state that passes on the execution's whole input passes on `_meta` as well.
        arguments = {name: value for name, value in arguments.items() if name != META_MEMBER}
    try:
        return step.call(arguments, task)
    except InputRequired:
        raise TypeError(
            f"{tool.name}.{name}: a step cannot ask; a state with ${{ask}} can"
        ) from None
