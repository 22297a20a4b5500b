"""A workflow that waits: to be cancelled meanwhile, or to outlive its task."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import TaskContext, workflow_tool

from .._ledger import apply

DEFINITION = Path(__file__).with_name("workflow.asl.json")


class Arguments(BaseModel):
    """What the tools take."""

    mark: int
    seconds: int


class Lingered(BaseModel):
    """What they return."""

    mark: int


def leave(task: TaskContext, mark: int) -> Lingered:
    """End the wait."""
    apply(task, mark, "leave")
    return Lingered(mark=mark)


linger = workflow_tool(
    "linger",
    description="Wait, and then change something.",
    arguments=Arguments,
    result=Lingered,
    definition=DEFINITION,
    steps=[leave],
    poll_every=timedelta(seconds=2),
)
outlive = workflow_tool(
    "outlive",
    description="The same, with a task that expires meanwhile.",
    arguments=Arguments,
    result=Lingered,
    definition=DEFINITION,
    steps=[leave],
    ttl=timedelta(seconds=25),
    poll_every=timedelta(seconds=2),
)
