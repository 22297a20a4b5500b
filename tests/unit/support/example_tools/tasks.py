"""Function tools that run as tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Confirm(BaseModel):
    """A form."""

    sure: bool


class Hall(BaseModel):
    """Another form."""

    hall: str


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


@tool(
    task="optional",
    input_schema={"type": "object", "properties": {"text": {"maxLength": 5}}},
)
def anything(arguments: dict[str, Any]) -> str:
    """Take what a schema of its author's own allows."""
    return ", ".join(sorted(arguments))


def which_hall(task: TaskContext, seats: int) -> None:
    """What has to be known before there is a task."""
    if seats > 10:
        task.ask("Which hall?", Hall, key="hall")


@tool(task="optional", ask_first=which_hall)
def book(task: TaskContext, seats: int, name: str = "") -> str:
    """Book seats; many of them only in a hall that somebody chooses first."""
    hall = task.ask("Which hall?", Hall, key="hall").hall if seats > 10 else "small"
    return f"{seats} seats in {hall}"
