"""Tools, prompts and resources that ask."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from mcp_tasks import (
    AskForm,
    AskModel,
    AskRoots,
    AskUrl,
    InputDeclined,
    TaskContext,
    prompt,
    resource,
    tool,
)


class Place(BaseModel):
    """A form."""

    place: str


class Days(BaseModel):
    """Another form."""

    days: int


@tool
def trip(task: TaskContext, name: str, past: bool = False) -> str:
    """Ask twice, one after the other."""
    place = task.ask("Where to?", Place, key="place").place
    days = task.ask(f"How long in {place}?", Days, key="days").days
    return f"{name}: {days} days in {place}"


@tool
def voyage(task: TaskContext, name: str, past: bool = False) -> str:
    """Ask what another tool asks too."""
    return trip(task, name, past)


def wanted(kind: str) -> Any:
    """A request of a kind."""
    return {
        "form": AskForm("Where to?", Place),
        "url": AskUrl("Pay here", "https://pay.example.com/1"),
        "sampling": AskModel("Say hi", max_tokens=5),
        "roots": AskRoots(),
    }[kind]


@tool
def needs(task: TaskContext, kinds: list[str]) -> list[str]:
    """Ask for several kinds of things at once."""
    found = task.ask_all({kind: wanted(kind) for kind in kinds})
    return [f"{kind}: {found[kind]!r}" for kind in kinds]


@tool
def polite(task: TaskContext) -> str:
    """Go on without an answer."""
    try:
        return task.ask("Where to?", Place).place
    except InputDeclined as declined:
        return f"without: {declined.action}"


@prompt
def plan(task: TaskContext, name: str) -> str:
    """Plan a trip."""
    return f"{name} goes to {task.ask('Where to?', Place, key='place').place}"


@resource("trips://{name}", fresh_for=timedelta(minutes=1), cache_scope="public")
def booked(task: TaskContext, name: str) -> str:
    """A trip, whose place is asked for."""
    return f"{name} is in {task.ask('Where to?', Place, key='place').place}"


@resource("trips://quiet/{name}", fresh_for=timedelta(minutes=1), cache_scope="public")
def quiet(task: TaskContext, name: str) -> str:
    """A trip, without a question."""
    return f"{name} is at home"


@tool
def wander(task: TaskContext) -> str:
    """Report, ask, and report again."""
    task.report("off", 0.1)
    place = task.ask("Where to?", Place).place
    task.report("there", 0.9)
    return place
