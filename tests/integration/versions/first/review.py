"""A function tool, before a redeploy."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Verdict(BaseModel):
    """What is asked."""

    good: bool


@tool(task="required")
def review(task: TaskContext, text: str) -> str:
    """Have a text judged."""
    verdict = task.ask("Is it good?", Verdict, key="verdict")
    return f"first: {text} is {'good' if verdict.good else 'bad'}"
