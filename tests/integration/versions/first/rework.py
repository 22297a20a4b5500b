"""A function tool that asks something else after a redeploy."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Marks(BaseModel):
    """What is asked."""

    marks: int


@tool(task="required")
def rework(task: TaskContext, text: str) -> str:
    """Have a text marked."""
    answer = task.ask("How many marks?", Marks, key="marks")
    return f"first: {answer.marks} marks for {text}"
