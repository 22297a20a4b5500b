"""Resources and a prompt."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import Message, NotFound, TaskContext, ToolError, assistant, prompt, resource, user


class Who(BaseModel):
    """A form."""

    name: str


@resource(
    "docs://handbook",
    mime_type="text/plain",
    fresh_for=timedelta(minutes=1),
    cache_scope="public",
)
def handbook() -> str:
    """The whole handbook."""
    return "Chapter 1"


@resource("docs://chapters/{number}", complete={"number": ["1", "2", "12"]})
def chapter(number: int) -> str:
    """One chapter of it."""
    if number > 12:
        raise NotFound
    return f"Chapter {number}"


@resource("docs://letters/{kind}")
def letter(task: TaskContext, kind: str) -> str:
    """A letter to somebody, who is asked for."""
    if kind == "rude":
        raise ToolError("Not a rude one")
    return f"Dear {task.ask('To whom?', Who).name}"


@prompt(complete={"language": ["English", "French"]})
def review(task: TaskContext, text: str, language: str = "English") -> list[Message]:
    """Review a text, as the workflow of the same name does."""
    if text == "ask":
        text = task.ask("Whose?", Who).name
    if text == "none":
        raise ToolError("There is nothing to review")
    return [user(f"Review this in {language}: {text}"), assistant("Certainly.")]
