"""Something of every kind that a server can offer. Nothing here crashes by design."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mcp_tasks import (
    AskForm,
    AskModel,
    AskRoots,
    AskUrl,
    Message,
    NotFound,
    TaskContext,
    ToolError,
    ToolResult,
    assistant,
    content,
    prompt,
    resource,
    tool,
    user,
    workflow_tool,
)

ANY_FILE = Path(__file__)
"""Nothing here is deployed, so nobody reads the workflow's definition."""


class Who(BaseModel):
    """A form."""

    name: str = Field(min_length=1, max_length=40)
    age: int = Field(default=0, ge=0)
    colour: Literal["red", "blue"] = "red"


class Point(BaseModel):
    """A nested argument."""

    x: float
    label: str | None = None
    near: list[Point] = []


class Report(BaseModel):
    """A declared result."""

    on: date
    points: list[Point]
    total: float


# tools that run within the request


@tool
def echo(value: Any = None) -> Any:
    """Give back what came."""
    return value


@tool(title="Measure", annotations={"readOnlyHint": True}, icons=[{"src": "https://a.example/i"}])
def measure(
    on: date, points: list[Point], scale: Annotated[float, Field(gt=0)] = 1, exact: bool = False
) -> Report:
    """Add up points."""
    return Report(on=on, points=points, total=len(points) * (1 if exact else scale))


@tool
def routed(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
    shard: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Shard"})] = 0,
    dry: Annotated[bool, Field(json_schema_extra={"x-mcp-header": "Dry-Run"})] = False,
) -> str:
    """Say where the call went."""
    return f"{region} {shard} {dry}"


TREE = {
    "type": "object",
    "properties": {
        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "uniqueItems": True},
        "size": {"type": "integer", "multipleOf": 3},
        "word": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 9},
        "when": {"type": "string", "format": "date-time"},
        "either": {"oneOf": [{"type": "string"}, {"type": "number", "maximum": 5}]},
    },
}


@tool(
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TREE,
        "required": ["children"],
        "unevaluatedProperties": False,
        "$defs": {"tree": TREE},
    },
    output_schema={"type": "object", "required": ["given"]},
)
def checked(tree: dict[str, Any]) -> dict[str, Any]:
    """Take what a written schema allows."""
    return {"given": tree}


@tool
def show(task: TaskContext, steps: Annotated[int, Field(le=20)] = 3) -> ToolResult:
    """Report, log, and answer with blocks of all kinds."""
    for step in range(steps):
        task.report(f"step {step}", step / steps)
        task.log("info", {"step": step})
    task.report("and back", 0)
    task.log("debug", "done")
    return ToolResult(
        [
            content.text("a text"),
            content.image(b"\x89PNG", "image/png"),
            content.audio(b"RIFF", "audio/wav"),
            content.resource_link("notes://all", "all"),
            content.embedded_resource("notes://one", "one", "text/plain"),
        ]
    )


@tool
def refuse(why: str) -> str:
    """Fail as a tool may."""
    raise ToolError(why)


@tool
def ask_everything(task: TaskContext, topic: str = "life") -> dict[str, str]:
    """Ask in two rounds."""
    who = task.ask(f"Who asks about {topic}?", Who, key="who")
    found = task.ask_all(
        {
            "model": AskModel(f"{who.name} asks about {topic}"),
            "page": AskUrl("Pay first", "https://pay.example.com"),
            "roots": AskRoots(),
            "again": AskForm("Really?", Who),
        }
    )
    return {"answer": found["model"].text, "roots": str(len(found["roots"]))}


# tools that become tasks


@tool(task="optional")
def later(task: TaskContext, text: str, n: int = 1) -> str:
    """Work."""
    task.report("working")
    return text * min(n, 10)


@tool(task="required", ttl=timedelta(hours=1))
def always(text: str) -> str:
    """Work for long."""
    return text


def confirm(task: TaskContext, text: str) -> None:
    """Ask before the task."""
    task.ask(f"Do {text}?", Who, key="sure")


@tool(task="required", ask_first=confirm)
def confirmed(text: str) -> str:
    """Work, when somebody agrees."""
    return text


class Order(BaseModel):
    """Arguments of workflows."""

    text: str
    n: int = 1


flow = workflow_tool("flow", description="A workflow.", arguments=Order, definition=ANY_FILE)
asking_flow = workflow_tool(
    "asking_flow",
    description="A workflow that asks first.",
    arguments=Order,
    definition=ANY_FILE,
    ask_first=confirm,
)
legacy = workflow_tool(
    "legacy",
    description="A state machine that was there before.",
    arguments=Order,
    state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:legacy",
)


# resources


@resource("notes://all", mime_type="application/json", fresh_for=timedelta(minutes=1))
def notes() -> list[str]:
    """All notes."""
    return ["one", "two"]


@resource("notes://{name}", complete={"name": ["one", "two"]}, cache_scope="public")
def note(name: str) -> str:
    """A note."""
    if name.startswith("no"):
        raise NotFound(name)
    return f"about {name}"


@resource("files://{+path}")
def file(path: str) -> bytes:
    """A file."""
    return path.encode()


@resource("trees://{+path}/leaf/{name}/{+rest}#{part}")
def leaf(path: str, name: str, rest: str, part: str) -> str:
    """A part of a leaf, which takes some looking for."""
    return f"{path} {name} {rest} {part}"


@resource("days://{day}/{hour}")
def hour(day: date, hour: int) -> dict[str, Any]:
    """An hour of a day."""
    return {"day": day, "hour": hour}


@resource("secrets://{name}")
def secret(task: TaskContext, name: str) -> str:
    """What is shown to those who say who they are."""
    return f"{name} for {task.ask('Who reads this?', Who, key='who').name}"


def _page(number: int) -> Any:
    @resource(f"pages://{number:03}", name=f"page {number}")
    def page() -> str:
        """One of more pages than a list shows at once."""
        return str(number)

    return page


vars().update({f"page_{number}": _page(number) for number in range(105)})


# prompts


def words(typed: str, others: Mapping[str, str]) -> list[str]:
    """More values than an answer holds, of which some depend on the other arguments."""
    return [f"{typed}{n}{others.get('style', '')}" for n in range(120)]


@prompt(title="Review", complete={"text": words})
def review(
    text: str, style: Literal["kind", "strict"] = "kind", lines: int = 1, by: date | None = None
) -> list[Message]:
    """Ask for a review."""
    return [user(f"{style}, {lines} lines by {by}: {text}"), assistant("Well.")]


@prompt
def introduce(task: TaskContext, topic: str) -> str:
    """Write an introduction, by whoever that is."""
    return f"{task.ask('Who writes?', Who, key='who').name} on {topic}"
