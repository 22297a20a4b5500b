"""Function tools: one that changes something, fails, asks, or is large; and one that expires."""

from __future__ import annotations

import hashlib
import time
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel

from mcp_tasks import AskForm, TaskContext, ToolError, tool

from ._ledger import apply, ran

POLLED = timedelta(seconds=2)
SHORT = timedelta(seconds=25)


class Text(BaseModel):
    """An answer."""

    text: str


How = Literal["change", "refuse", "crash", "ask", "swell"]


@tool(task="required", poll_every=POLLED)
def work(
    task: TaskContext, mark: int, how: How, text: str = "", size: int = 0
) -> dict[str, int | str]:
    """Do one of several things. One tool for all of them: each has processes of its own."""
    ran(task, mark, how)
    match how:
        case "change":
            return change(task, mark)
        case "refuse":
            raise ToolError(f"Refused: {mark}")
        case "crash":
            raise ValueError(mark)
        case "ask":
            return interview(task, mark)
        case "swell":
            return swell(task, mark, text, size)


def change(task: TaskContext, mark: int) -> dict[str, int | str]:
    """Change something, and report before and after."""
    task.report("changing", progress=0.1)
    apply(task, mark, "changed")
    time.sleep(0.1)
    task.report("changed", progress=0.9)
    return {"changed": 2 * mark}


def interview(task: TaskContext, mark: int) -> dict[str, int | str]:
    """Ask two questions at once, then a third, and note the answers."""
    both = task.ask_all({"a": AskForm("A?", Text), "b": AskForm("B?", Text)})
    third = task.ask("C?", Text, key="c").text
    answers = {"a": both["a"].text, "b": both["b"].text, "c": third}
    for name, answer in answers.items():
        apply(task, mark, "heard", name, answer)
    return {**answers}


def swell(task: TaskContext, mark: int, text: str, size: int) -> dict[str, int | str]:
    """Take a text, and return a larger one."""
    apply(task, mark, "swollen")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"digest": digest, "text": (digest * (size // len(digest) + 1))[:size]}


@tool(task="required", poll_every=POLLED, ttl=SHORT)
def unheard(task: TaskContext, mark: int) -> str:
    """Ask what nobody answers before the task has expired."""
    ran(task, mark, "unheard")
    return task.ask("Is anybody there?", Text).text
