"""A workflow tool, before a redeploy."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import TaskContext, workflow_tool


class Arguments(BaseModel):
    """Seconds to wait, unless the workflow asks."""

    wait: int
    ask: bool


def start(task: TaskContext, wait: int, ask: bool) -> dict[str, object]:
    """What runs before the redeploy."""
    task.report("on its way")
    return {"started": "first", "wait": wait, "ask": ask}


def arrive(task: TaskContext, started: str) -> dict[str, str]:
    """What runs after it."""
    return {"started": started, "arrived": "first"}


relay = workflow_tool(
    "relay",
    description="Run a relay.",
    arguments=Arguments,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[start, arrive],
)
