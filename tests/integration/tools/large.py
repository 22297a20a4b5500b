"""Functions whose arguments and results are larger than a row, an execution or an answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from mcp_tasks import TaskContext, tool

QUICK = timedelta(milliseconds=200)
LINE = 16


def lines(size: int) -> str:
    """So many bytes, of which no two lines are the same."""
    return "".join(f"line {n:>10}\n" for n in range(size // LINE + 1))[:size]


@tool(task="required", poll_every=QUICK, memory_mb=1024, ttl=timedelta(hours=1))
def fill(size: int) -> str:
    """Return a text of so many bytes."""
    return lines(size)


@tool(task="required", poll_every=QUICK)
def count_lines(text: str) -> int:
    """Count the lines of a text."""
    return len(text.splitlines())


@tool(task="required", poll_every=QUICK)
def echo(value: dict[str, Any]) -> dict[str, Any]:
    """Return what it was given."""
    return value


class Page(BaseModel):
    """A form with text."""

    text: str


@tool(task="required", poll_every=QUICK)
def gather(task: TaskContext, pages: int) -> list[str]:
    """Ask for one page after the other, and return them all."""
    return [task.ask(f"Page {n}?", Page, key=f"page{n}").text for n in range(pages)]
