"""A function tool, after it."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Verdict(BaseModel):
    """What is asked."""

    good: bool


@tool(task="required")
def review(task: TaskContext, text: str) -> str:
    """Have a text judged."""
    verdict = task.ask("Is it any good?", Verdict, key="verdict")
    return f"second: {text} is {'good' if verdict.good else 'bad'}"
