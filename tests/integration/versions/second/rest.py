"""Durable tools of the second version."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool

QUICK = timedelta(milliseconds=200)
VERSION = "second"


class Go(BaseModel):
    """An answer."""

    on: bool


def made_by() -> str:
    """Which version runs the step."""
    return VERSION


def fry() -> str:
    """A step of this version."""
    return VERSION


@tool(task="required", poll_every=QUICK)
def rest(task: TaskContext, seconds: int) -> str:
    """Sleep between two steps."""
    before = task.step(made_by)
    task.report("sleeping")
    task.sleep(timedelta(seconds=seconds))
    return f"{before}, then {task.step(made_by, key='after')}"


@tool(task="required", poll_every=QUICK)
def cook(task: TaskContext) -> str:
    """Take another way in each version."""
    made = task.step(fry)
    task.ask("Go on?", Go, key="go")
    return made
