"""The tools that the conformance suite's `tasks-*` scenarios expect of the server under test."""

from __future__ import annotations

import time
from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import AskForm, TaskContext, ToolError, tool

QUICK = timedelta(milliseconds=200)
HOUR = timedelta(hours=1)


class Confirmation(BaseModel):
    """A yes or a no."""

    confirm: bool


class Name(BaseModel):
    """A name."""

    name: str


@tool
def greet(name: str) -> str:
    """Greet, within the request."""
    return f"Hello, {name}!"


@tool(task="optional", ttl=HOUR, poll_every=QUICK, timeout=timedelta(seconds=90))
def slow_compute(task: TaskContext, seconds: float, label: str = "") -> str:
    """Take `seconds`, and notice a cancellation within half a second."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        task.report(f"{left:.0f} s left")
        time.sleep(min(0.5, left))
    return f"computed {label} for {seconds} s"


@tool(task="required", ttl=HOUR, poll_every=QUICK, without_tasks="refuse")
def failing_job() -> str:
    """End with a tool error after a while. A client without tasks gets error -32021."""
    time.sleep(1)
    raise ToolError("The job failed, as it always does")


@tool(task="optional", ttl=HOUR, poll_every=QUICK)
def protocol_error_job() -> str:
    """Crash."""
    raise RuntimeError("a message that no client must see")


@tool(task="optional", ttl=HOUR, poll_every=QUICK)
def confirm_delete(task: TaskContext, filename: str) -> str:
    """Ask before deleting (nothing is deleted)."""
    if task.ask(f"Delete {filename}?", Confirmation, key="confirm").confirm:
        return f"Deleted {filename}"
    return f"Kept {filename}"


@tool(task="optional", ttl=HOUR, poll_every=QUICK)
def multi_input(task: TaskContext) -> str:
    """Ask two questions at once."""
    answers = task.ask_all(
        {"name": AskForm("What is your name?", Name), "confirm": AskForm("Go on?", Confirmation)}
    )
    return f"{answers['name'].name}: {answers['confirm'].confirm}"


def ask_name(task: TaskContext) -> str:
    """Ask who it is for."""
    return task.ask("What is your name?", Name, key="user_name").name


@tool(task="required", ttl=HOUR, poll_every=QUICK, ask_first=ask_name)
def test_tool_with_task(task: TaskContext) -> str:
    """Ask within the request, and then become a task."""
    return f"Hello, {ask_name(task)}!"
