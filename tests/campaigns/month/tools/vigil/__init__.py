"""A workflow that takes a month, most of which it waits."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import TaskContext, workflow_tool


class Arguments(BaseModel):
    """What to keep watch over."""

    over: str


class Output(BaseModel):
    """What was answered each week and a half."""

    over: str
    heard: list[str]


def close(task: TaskContext, over: str, heard: list[str]) -> dict[str, object]:
    """The only step that runs anything."""
    return {"over": over, "heard": heard}


vigil = workflow_tool(
    "vigil",
    description="Keep watch for a month.",
    arguments=Arguments,
    result=Output,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[close],
    ttl=timedelta(days=40),
)
