"""Tools that ask first, and then become tasks."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import AskForm, AskUrl, TaskContext, ToolError, tool, workflow_tool


class Sure(BaseModel):
    """A form."""

    sure: bool


class Journey(BaseModel):
    """The arguments of a workflow."""

    place: str


def confirm(task: TaskContext, place: str) -> None:
    """Ask, and perhaps refuse."""
    if place == "Atlantis":
        raise ToolError("Atlantis cannot be reached")
    if place == "nowhere":
        raise KeyError(place)
    if not task.ask(f"To {place}?", Sure, key="sure").sure:
        raise ToolError("Then not")
    task.ask_all(
        {"again": AskForm("Really?", Sure), "page": AskUrl("Pay", "https://pay.example.com")}
    )


@tool(task="optional", ask_first=confirm)
def depart(task: TaskContext, place: str, hours: int = 1) -> str:
    """Depart, as a task when the client knows tasks."""
    confirm(task, place)
    return f"Departed for {place}"


@tool(task="optional", ask_first=confirm)
def fly(place: str) -> str:
    """Fly; only what comes first asks."""
    return f"Flew to {place}"


@tool(task="required", title="Arrive", ask_first=confirm)
def arrive(task: TaskContext, place: str) -> str:
    """Arrive, as a task only."""
    return f"Arrived in {place}"


@tool(task="optional")
def rest(task: TaskContext, hours: int) -> dict[str, int]:
    """Rest; asks nothing."""
    task.report("resting", 0.5)
    return {"hours": hours}


travel = workflow_tool(
    "travel",
    description="Travel.",
    arguments=Journey,
    definition=Path(__file__).with_name("workflow.asl.json"),
    ask_first=confirm,
)

sail = workflow_tool(
    "sail",
    description="Travel with somebody else's workflow.",
    arguments=Journey,
    state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:sail",
)
