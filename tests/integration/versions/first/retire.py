"""A function tool that a redeploy removes."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool


class Farewell(BaseModel):
    """What is asked."""

    words: str


@tool(task="required")
def retire(task: TaskContext) -> str:
    """Say something at last."""
    return task.ask("Last words?", Farewell, key="words").words
