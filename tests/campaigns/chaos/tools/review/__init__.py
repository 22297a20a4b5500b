"""A workflow that asks two questions at once, in a state that is retried."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mcp_tasks import TaskContext, workflow_tool

from .._ledger import apply, ran


class Arguments(BaseModel):
    """What the tool takes."""

    mark: int


class Reviewed(BaseModel):
    """What it returns."""

    title: str
    text: str


def draft(task: TaskContext, mark: int) -> dict[str, Any]:
    """Say what is to be asked."""
    ran(task, mark, "draft")
    form = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    return {name: {"message": f"The {name}?", "schema": form} for name in ("title", "text")}


def publish(task: TaskContext, mark: int, answers: dict[str, Any]) -> Reviewed:
    """Note the answers, and return them."""
    texts = {name: answer["content"]["text"] for name, answer in answers.items()}
    for name, text in texts.items():
        apply(task, mark, "heard", name, text)
    return Reviewed(**texts)


review = workflow_tool(
    "review",
    description="Ask for a title and a text.",
    arguments=Arguments,
    result=Reviewed,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[draft, publish],
    poll_every=timedelta(seconds=2),
)
