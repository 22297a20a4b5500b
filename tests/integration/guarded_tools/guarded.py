"""Tools behind tokens: one for each state that a task may be in, and two that need a scope."""

from __future__ import annotations

import time
from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool

QUICK = timedelta(milliseconds=200)


class Answer(BaseModel):
    """A name."""

    name: str


@tool
def say(text: str) -> str:
    """Answer within the request."""
    return text


@tool(task="optional", poll_every=QUICK)
def note(text: str) -> str:
    """Complete at once, with a result that quotes the argument."""
    return f"noted: {text}"


@tool(task="required", poll_every=QUICK, without_tasks="refuse")
def crash(text: str) -> str:
    """Fail, with a message that quotes the argument."""
    raise ValueError(f"cannot take {text}")


@tool(task="required", poll_every=QUICK)
def interview(task: TaskContext, text: str = "") -> str:
    """Ask, and quote the answer."""
    return f"{text} {task.ask('What is your name?', Answer).name}"


@tool(task="required", poll_every=QUICK, ttl=timedelta(seconds=2))
def short_lived() -> str:
    """A task that expires soon."""
    return "done"


@tool(scopes=["admin"])
def administer() -> str:
    """Answer those who may administer."""
    return "administered"


@tool(task="required", scopes=["admin", "reports:write"], poll_every=QUICK)
def publish_report(task: TaskContext) -> str:
    """Become a task of those who may, and ask them."""
    return f"published by {task.ask('Who publishes it?', Answer).name}"


@tool
def whoever(task: TaskContext) -> str:
    """Ask within the request."""
    return task.ask("What is your name?", Answer).name


@tool(task="required", poll_every=QUICK)
def linger(seconds: float) -> str:
    """Run for a while, whatever becomes of the task."""
    time.sleep(seconds)
    return "done"
