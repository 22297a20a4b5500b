"""A function tool that asks something else than before."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Marks(BaseModel):
    """What is asked."""

    stars: int


@tool(task="required")
def rework(task: TaskContext, text: str) -> str:
    """Have a text marked."""
    answer = task.ask("How many stars?", Marks, key="marks")
    return f"second: {answer.stars} stars for {text}"
