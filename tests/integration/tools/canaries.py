"""Tools, a prompt and a resource that quote what they are given wherever they can."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from mcp_tasks import Message, TaskContext, ToolError, prompt, resource, tool, user

QUICK = timedelta(milliseconds=200)


class Name(BaseModel):
    """A name."""

    name: str


@tool(task="required", poll_every=QUICK)
def quote(task: TaskContext, text: str, end: str) -> str:
    """Report, ask and return what is given; or end in another way, with the same words."""
    task.report(f"status of {text}")
    answer = task.ask(f"question about {text}", Name, key="name").name
    text_and_answer = f"{text} and {answer}"
    if end == "error":
        raise ToolError(text_and_answer)
    if end == "crash":
        raise RuntimeError(text_and_answer) from KeyError(answer)
    return text_and_answer


@tool
def quote_at_once(task: TaskContext, text: str, end: str) -> str:
    """Report, log and return what is given; or end in another way, with the same words."""
    task.report(f"status of {text}")
    task.log("info", {"text": text})
    if end == "error":
        raise ToolError(text)
    if end == "crash":
        raise RuntimeError(text)
    return text


@resource("note://quoted/{text}", mime_type="text/plain")
def quoted_note(text: str) -> str:
    """A note that cannot be read."""
    raise RuntimeError(text)


@prompt
def quoted_prompt(text: str, end: str) -> list[Message]:
    """Write what is given, or fail with it."""
    if end == "crash":
        raise RuntimeError(text)
    return [user(text)]
