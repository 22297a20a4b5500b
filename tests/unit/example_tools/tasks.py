"""Function tools that run as tasks."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Confirm(BaseModel):
    """A form."""

    sure: bool


class Counted(BaseModel):
    """A result."""

    total: int


@tool(task="optional", ttl=timedelta(hours=1), poll_every=timedelta(seconds=3))
def count(task: TaskContext, upto: int, ask: bool = False) -> Counted:
    """Count, after asking when told to."""
    if ask and not task.ask("Count?", Confirm).sure:
        return Counted(total=0)
    task.report("counting", progress=0.5)
    return Counted(total=sum(range(upto + 1)))


@tool(task="required")
def wait(task: TaskContext) -> str:
    """Take long."""
    return "waited"


@tool
def nosy(task: TaskContext) -> str:
    """Ask, and yet not run as a task."""
    return str(task.ask("Really?", Confirm).sure)
