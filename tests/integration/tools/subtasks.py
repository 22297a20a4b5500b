"""Tools that call other tools: three levels, one of which asks. Each writes a line to a file when a
step's function runs."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import AsyncTaskContext, SubtaskFailed, TaskContext, ToolError, tool

QUICK = timedelta(milliseconds=200)


class Approve(BaseModel):
    """A yes or a no."""

    yes: bool


def note(ledger: str, line: str) -> int:
    """Write a line; returns how often it has been written."""
    with Path(ledger).open("a") as file:
        file.write(f"{line}\n")
    return Path(ledger).read_text().splitlines().count(line)


def begin_chapter(ledger: str, title: str) -> str:
    """A step that something undoes."""
    note(ledger, f"begin {title}")
    return title


@tool(task="required", poll_every=QUICK)
def write_page(task: TaskContext, ledger: str, title: str, seconds: float = 0) -> int:
    """Write a page: a leaf of the tree. It may fail, and may take a while."""
    if title.endswith("!"):
        raise ToolError(f"{title} is too loud")
    if title.endswith("?"):
        raise ValueError(title)
    task.report(f"writing {title}")
    task.step(begin_chapter, ledger, title, undo=lambda begun: note(ledger, f"undo {begun}"))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        task.report("writing")
        time.sleep(0.2)
    return len(title)


@tool(task="required", poll_every=QUICK)
async def write_chapter(
    task: AsyncTaskContext, ledger: str, titles: list[str], ask: bool = False, seconds: float = 0
) -> int:
    """Write a chapter: a page after the other, or an answer first."""
    await task.step(
        begin_chapter, ledger, titles[0][:1], undo=lambda begun: note(ledger, f"undo {begun}")
    )
    if ask:
        answer = await task.ask(f"Write {titles}?", Approve)
        if not answer.yes:
            raise ToolError("not this chapter")
    pages = [{"ledger": ledger, "title": title, "seconds": seconds} for title in titles]
    return sum(await task.map(write_page, pages, concurrency=2))


@tool(task="required", poll_every=QUICK)
async def write_book(
    task: AsyncTaskContext,
    ledger: str,
    chapters: list[list[str]],
    ask: bool = False,
    seconds: float = 0,
) -> list[int | str]:
    """Write a book: its chapters side by side. One that fails does not fail the book."""
    each = [
        {"ledger": ledger, "titles": titles, "ask": ask, "seconds": seconds} for titles in chapters
    ]
    written = await task.map(write_chapter, each, concurrency=3, tolerate=len(each))
    return [str(chapter) if isinstance(chapter, Exception) else chapter for chapter in written]


@tool(task="required", poll_every=QUICK)
async def write_letter(task: AsyncTaskContext, ledger: str, title: str, seconds: float = 0) -> str:
    """Write one page, and say how it went."""
    try:
        length = await task.call(write_page, ledger=ledger, title=title, seconds=seconds)
    except SubtaskFailed as failed:
        return f"{failed.status}: {failed.message}"
    return f"{length} letters"
