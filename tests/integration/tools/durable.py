"""Tools with durable operations. Each writes a line to a file whenever a step's function runs."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import AsyncTaskContext, Retry, StepFailed, TaskContext, ToolError, tool

QUICK = timedelta(milliseconds=200)
AT_ONCE = Retry(attempts=3, delay=timedelta(seconds=1), jitter=False)


class Approve(BaseModel):
    """A yes or a no."""

    yes: bool


@dataclass
class Facts:
    """What a step returns."""

    company: str
    staff: int


def note(ledger: str, line: str) -> int:
    """Write a line; returns how often it has been written."""
    with Path(ledger).open("a") as file:
        file.write(f"{line}\n")
    return Path(ledger).read_text().splitlines().count(line)


def look_up(ledger: str, company: str) -> Facts:
    """A step with a typed result."""
    note(ledger, f"look up {company}")
    return Facts(company, 12)


def flaky(ledger: str) -> str:
    """A step that succeeds at the third attempt."""
    if note(ledger, "flaky") < 3:
        raise ConnectionError("not yet")
    return "there"


def broken(ledger: str) -> None:
    """A step that always fails."""
    note(ledger, "broken")
    raise ValueError("never")


@tool(task="required", poll_every=QUICK)
def onboard(task: TaskContext, ledger: str, company: str) -> list[str]:
    """Steps, a sleep, a question, and what is the same in each run."""
    note(ledger, "run")
    facts = task.step(look_up, ledger, company)
    began, number, name = task.now(), task.random(), task.uuid()
    task.sleep(timedelta(seconds=2))
    if not task.ask(f"Approve {facts.company}?", Approve).yes:
        raise ToolError("not approved")
    there = task.step(flaky, ledger, retry=AT_ONCE)
    try:
        task.step(broken, ledger)
    except StepFailed as failed:
        there += f", {failed.name}"
    slept = (task.now() - began).total_seconds()
    note(ledger, f"constant {began} {number} {name}")
    return [there, facts.company, str(facts.staff), str(slept >= 2)]


def slow(ledger: str, number: int) -> int:
    """A step of a second."""
    time.sleep(1)
    note(ledger, f"step {number}")
    return number


@tool(task="required", poll_every=QUICK, timeout=timedelta(seconds=5))
def march(task: TaskContext, ledger: str, steps: int) -> int:
    """Work for longer than a run may take."""
    note(ledger, "run")
    return sum(task.step(slow, ledger, number) for number in range(steps))


def square(ledger: str, number: int) -> int:
    """An item's step."""
    note(ledger, f"item {number}")
    if number < 0:
        raise ValueError("negative")
    return number * number


@tool(task="required", poll_every=QUICK)
async def squares(
    task: AsyncTaskContext, ledger: str, numbers: list[int], concurrency: int = 10
) -> list[str]:
    """Square numbers side by side."""
    results = await task.map(
        partial(square, ledger), numbers, concurrency=concurrency, tolerate=len(numbers)
    )
    return [str(each) for each in results]


def killed_once(ledger: str, by_signal: bool) -> str:
    """A step that is killed in its midst, the first time: by its time limit, or by a signal."""
    if note(ledger, "killed") < 2:
        if by_signal:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(30)
    return "alive"


@tool(task="required", poll_every=QUICK, timeout=timedelta(seconds=3))
def survive(task: TaskContext, ledger: str, by_signal: bool = False) -> str:
    """Go on after a crash."""
    task.step(note, ledger, "before")
    return task.step(killed_once, ledger, by_signal)


def reserve(ledger: str, what: str) -> str:
    """A step that something undoes."""
    note(ledger, f"reserve {what}")
    return what


def release(ledger: str, what: str) -> None:
    """Undo `reserve`."""
    if what == "stuck":
        raise ConnectionError("it cannot be undone")
    note(ledger, f"release {what}")


@tool(task="required", poll_every=QUICK)
def book_trip(task: TaskContext, ledger: str, end: str = "") -> str:
    """Reserve three things, and ask."""
    task.on_cancel(partial(note, ledger, "on cancel"))
    for what in ("flight", "hotel", "car"):
        task.step(reserve, ledger, what, key=what, undo=partial(release, ledger))
    if end == "refuse":
        raise ToolError("too expensive")
    if end == "crash":
        raise ValueError("a bug")
    if end == "sleep":
        task.sleep(timedelta(hours=1))
    if not task.ask("Pay?", Approve).yes:
        raise ToolError("not paid")
    return "paid"


@tool(task="required", poll_every=QUICK)
def plain(task: TaskContext, ledger: str) -> str:
    """Do nothing durable."""
    task.report("working")
    note(ledger, "plain")
    return "done"
