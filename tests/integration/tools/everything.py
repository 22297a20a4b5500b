"""Tools, prompts and resources that use all that a function may do besides working."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_tasks import (
    AskModel,
    AskRoots,
    Message,
    NotFound,
    TaskContext,
    assistant,
    content,
    prompt,
    resource,
    tool,
    user,
)

QUICK = timedelta(milliseconds=200)


class Name(BaseModel):
    """A name."""

    name: str


class Size(BaseModel):
    """A size."""

    size: Literal["small", "large"]


def who(task: TaskContext, greeting: str) -> str:
    """Ask for a name."""
    return task.ask(f"{greeting}! Who are you?", Name, key="who").name


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def survey(task: TaskContext, secret: str = "") -> list[str]:
    """Ask for everything that a client can be asked for, each in a repeated request."""
    name = who(task, "Hello")
    task.ask_url("Please sign the form", "https://example.com/sign", key="sign")
    rest = task.ask_all({"poem": AskModel(f"A poem about {name}"), "roots": AskRoots()})
    return [name, rest["poem"].text, *(root.uri for root in rest["roots"])]


@tool(task="required", poll_every=QUICK, ask_first=who)
def book(task: TaskContext, greeting: str) -> str:
    """Ask for a name within the request, and for a size as a task."""
    size = task.ask("Which size?", Size, key="size").size
    return f"{who(task, greeting)} gets a {size} one"


@tool(task="optional", poll_every=QUICK, timeout=timedelta(minutes=2))
def linger(
    task: TaskContext,
    seconds: Annotated[int, Field(ge=0, le=90)],
    ask: bool = False,
    quiet: Annotated[int, Field(ge=0, le=10)] = 0,
) -> str:
    """Report every second, for longer than a connection lasts. With `ask`, ask for a name first;
    `quiet` seconds pass before the first report."""
    name = who(task, "Hello") if ask else "nobody"
    time.sleep(quiet)
    for second in range(seconds):
        task.report(f"second {second}", progress=second / seconds)
        time.sleep(1)
    return f"{seconds} seconds with {name}"


@tool
def narrate(task: TaskContext, steps: int) -> str:
    """Report and log every step."""
    for step in range(steps):
        task.report(f"step {step}", progress=step / steps)
        task.log("info", {"step": step}, logger="narrator")
    task.log("debug", "all told")
    return f"{steps} steps"


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def whoami(task: TaskContext) -> dict[str, list[str]]:
    """Tell what the client says it can be asked for."""
    return {"can": sorted(task.client_can)}


@tool(task="optional", poll_every=QUICK, without_tasks="request")
def edit_note(task: TaskContext, text: str) -> str:
    """Tell that the note has changed."""
    task.resource_changed("note://fixed")
    return text


@resource("note://fixed", mime_type="text/plain", fresh_for=timedelta(minutes=5))
def fixed_note() -> str:
    """A note."""
    return "a note"


@resource("note://pixels", mime_type="image/png")
def pixels() -> bytes:
    """Some bytes."""
    return b"\x89PNG"


@resource("note://by/{name}", mime_type="text/plain", complete={"name": ["ada", "alan", "grace"]})
def note_by(name: str) -> str:
    """A note by one person."""
    if name not in ("ada", "alan", "grace"):
        raise NotFound(name)
    return f"a note by {name}"


@resource("note://guarded", mime_type="text/plain")
def guarded_note(task: TaskContext) -> str:
    """A note for those who say their name."""
    return f"a note for {who(task, 'Stop')}"


@prompt(complete={"topic": lambda typed, others: [f"{typed}{i}" for i in range(150)]})
def essay(topic: str, length: Literal["short", "long"] = "short") -> list[Message]:
    """Write an essay."""
    return [
        user(f"Write a {length} essay about {topic}"),
        user(content.resource_link("note://fixed", "a note")),
        assistant("With pleasure."),
    ]


@prompt
def personal(task: TaskContext) -> str:
    """A prompt that asks first."""
    return f"Write a poem about {who(task, 'Hello')}"
