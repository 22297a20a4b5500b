"""A workflow that can end in each way that is not success."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolError, workflow_tool


class Arguments(BaseModel):
    """How the workflow ends."""

    how: Literal["step_error", "step_crash", "fail_state", "fail_tool_error", "wrong_output"]


class Output(BaseModel):
    """The output schema."""

    value: int


def end(task: TaskContext, how: str) -> dict[str, str]:
    """End the workflow in this step, or let its states end it."""
    task.report(f"ending by {how}")
    if how == "step_error":
        raise ToolError("The step says no")
    if how == "step_crash":
        raise KeyError("a message that no client must see")
    return {"how": how}


broken_flow = workflow_tool(
    "broken_flow",
    description="End in a given way.",
    arguments=Arguments,
    result=Output,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[end],
    poll_every=timedelta(milliseconds=200),
)
