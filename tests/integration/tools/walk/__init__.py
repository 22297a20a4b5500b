"""A workflow that mostly waits, without anything that runs meanwhile."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_tasks import TaskContext, workflow_tool


class Arguments(BaseModel):
    """Seconds to wait before the steps, and after."""

    out: Annotated[int, Field(ge=0, le=3600)]
    back: Annotated[int, Field(ge=0, le=3600)]


class Output(BaseModel):
    """How it was."""

    steps: int


def step(task: TaskContext, out: int, back: int) -> dict[str, int]:
    """Two changes, one right after the other."""
    task.report("one foot")
    task.report("and the other")
    return {"steps": 2}


walk = workflow_tool(
    "walk",
    description="Take a while.",
    arguments=Arguments,
    result=Output,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[step],
    poll_every=timedelta(seconds=1),
)
