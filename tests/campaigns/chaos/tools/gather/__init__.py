"""A workflow without questions: three items in a Map, each with an effect, and their sum."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolError, workflow_tool

from .._ledger import apply, ran


class Arguments(BaseModel):
    """What the tool takes."""

    mark: int
    refuse: bool = False


class Gathered(BaseModel):
    """What it returns."""

    total: int


def split(task: TaskContext, mark: int, refuse: bool = False) -> list[dict[str, Any]]:
    """Make the items."""
    ran(task, mark, "split")
    task.report("splitting")
    if refuse:
        raise ToolError(f"Refused: {mark}")
    return [{"mark": mark, "item": item} for item in range(3)]


def take(task: TaskContext, mark: int, item: int) -> dict[str, int]:
    """Take one item."""
    apply(task, mark, "take", item)
    time.sleep(0.1)
    return {"mark": mark, "value": mark * item}


def merge(task: TaskContext, parts: list[dict[str, int]]) -> Gathered:
    """Add up the items."""
    apply(task, parts[0]["mark"], "merge")
    task.report("merging")
    return Gathered(total=sum(part["value"] for part in parts))


gather = workflow_tool(
    "gather",
    description="Take three items, and add them up.",
    arguments=Arguments,
    result=Gathered,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[split, take, merge],
    poll_every=timedelta(seconds=2),
)
