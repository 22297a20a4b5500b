"""A workflow with a step, and a question of its own."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolError, workflow_tool


class Text(BaseModel):
    """What is reviewed."""

    text: str


class Reviewed(BaseModel):
    """What comes of it."""

    words: int


def count_words(task: TaskContext, text: str) -> Reviewed:
    """The only step."""
    task.report("reading")
    if not text.strip():
        raise ToolError("There is nothing to review")
    return Reviewed(words=len(text.split()))


review = workflow_tool(
    "review",
    title="Review a text",
    description="Count the words of a text.",
    arguments=Text,
    result=Reviewed,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[count_words],
)
