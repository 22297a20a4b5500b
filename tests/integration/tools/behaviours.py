"""Tools that end in every way a tool can end, and ask in every way a tool can ask."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_tasks import (
    AskForm,
    AsyncTaskContext,
    InputDeclined,
    TaskContext,
    ToolError,
    ToolResult,
    tool,
    workflow_tool,
)

QUICK = timedelta(milliseconds=200)


class Colour(StrEnum):
    """Some colours."""

    RED = "red"
    BLUE = "blue"


class Choice(BaseModel):
    """A form with one of each kind of field."""

    name: Annotated[str, Field(min_length=2)]
    colour: Colour
    count: Annotated[int, Field(ge=1, le=9)] = 1
    sure: bool = False


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def refuse(reason: str) -> str:
    """End with a ToolError."""
    raise ToolError(f"Refused: {reason}")


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def crash(secret: str) -> str:
    """End with an exception whose message quotes an argument."""
    raise ValueError(f"invalid value: {secret}")


@tool(task="required", poll_every=QUICK, timeout=timedelta(seconds=2))
def over_time() -> str:
    """Run longer than its time."""
    time.sleep(30)
    return "late"


@tool(task="required", poll_every=QUICK)
def count_atoms() -> dict[str, int]:
    """Return an integer that an event cannot carry."""
    return {"atoms": 10**30}


@tool(task="required", poll_every=QUICK, max_concurrency=1)
def one_at_a_time(seconds: float) -> list[float]:
    """Return when the run began and when it ended. No two runs overlap."""
    began = time.time()
    time.sleep(seconds)
    return [began, time.time()]


@tool(task="required", poll_every=QUICK, ttl=timedelta(seconds=2))
def short_lived() -> str:
    """A task that expires soon."""
    return "done"


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def ask_choice(task: TaskContext) -> Choice:
    """Ask one form, and return it."""
    return task.ask("What would you like?", Choice)


@tool(task="optional", poll_every=QUICK, without_tasks="request")
async def await_choice(task: AsyncTaskContext) -> Choice:
    """Ask one form in a coroutine, and return it."""
    await asyncio.sleep(0.01)
    return await task.ask("What would you like?", Choice)


@tool(task="required", poll_every=QUICK)
def ask_three(task: TaskContext, secret: str = "") -> str:
    """Ask two questions at once, then a third, and survive a declined one."""
    first = task.ask_all({"a": AskForm("A?", Yes), "b": AskForm("B?", Yes)})
    try:
        third = str(task.ask("C?", Yes, key="c").yes)
    except InputDeclined as declined:
        third = declined.action
    return f"{first['a'].yes} {first['b'].yes} {third}"


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def picture(task: TaskContext) -> ToolResult:
    """Return content of its own kind."""
    task.report("drawing", progress=0.5)
    return ToolResult(
        content=[{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}],
        structured_content={"width": 1},
    )


@tool
def routed(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    priority: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Priority"})] = 0,
) -> str:
    """Take parameters that are mirrored as headers."""
    return f"{region} {priority}"


class Quarter(BaseModel):
    """Arguments of the wrapped workflow."""

    quarter: str


class Report(BaseModel):
    """What the wrapped workflow returns."""

    quarter: str
    revenue: float


legacy_report = workflow_tool(
    "legacy_report",
    description="Run a state machine that exists already.",
    arguments=Quarter,
    result=Report,
    state_machine_arn="arn:aws:states:us-east-1:000000000000:stateMachine:legacy-report",
    poll_every=QUICK,
)


@tool(task="required", poll_every=QUICK)
def count_up(task: TaskContext, to: int, every_ms: int = 0, ask_first: bool = False) -> int:
    """Report every number up to `to`, and return it. With `ask_first`, ask before the start."""
    if ask_first:
        task.ask("Now?", Yes)
    for number in range(1, to + 1):
        task.report(str(number))
        time.sleep(every_ms / 1000)
    return to
