"""Prompts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from mcp_tasks import Message, TaskContext, ToolError, assistant, content, prompt, user


def subjects(typed: str, others: Mapping[str, str]) -> list[str]:
    """What somebody could write about, by the tone."""
    return [f"{others.get('tone', 'any')} {typed}"]


@prompt(
    title="A letter",
    icons=[{"src": "https://example.com/letter.png"}],
    meta={"example.com/group": "words"},
    complete={"subject": subjects},
)
def letter(
    task: TaskContext,
    subject: Annotated[str, Field(title="Subject", description="What about.")],
    day: date = date(2026, 1, 1),
    tone: Literal["kind", "firm", "furious"] = "kind",
) -> str:
    """Write a letter."""
    task.report("writing", 0.5)
    return f"A {tone} letter about {subject}, {day}"


@prompt
def talk() -> list[Message]:
    """A conversation with contents of all types."""
    return [
        user("Look:"),
        user(content.image(b"image", "image/png")),
        user(content.audio(b"audio", "audio/wav")),
        user(content.embedded_resource("docs://a", "text")),
        assistant(content.resource_link("docs://handbook", "handbook")),
    ]


@prompt
def failing(how: str) -> str:
    """Fail in one way or another."""
    if how == "tool":
        raise ToolError("There are no words for this")
    raise KeyError("hunter2")
