"""Run the checks one after the other, and report how each of them ended."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Final

from mcp import MCPError

from .checks import CHECKS
from .demo import Check, Demo
from .expectations import CheckFailed
from .questions import Content
from .screen import Outcome, Screen
from .task_line import TaskLine

ANSWERS: Final[Content] = {
    "show_values": True,
    "title": "US airports",
    "share_of_stocks": 0.7,
    "publish": True,
}
"""The demo's own answers, by the name of the field, for when the person is not asked."""

CHECK_SECONDS: Final = 90
"""How long one check may take: several times what it needs on a slow machine."""


async def run(url: str, streaming_url: str, *, ask: bool) -> int:
    """Run all checks against the server at `url`; returns the exit code, 0 when all passed."""
    screen = Screen()
    demo = Demo(url, streaming_url, screen, ask=ask and screen.is_terminal and sys.stdin.isatty())
    show_introduction(demo, ask)
    outcomes: list[Outcome] = []
    begun = time.monotonic()
    for number, check in enumerate(CHECKS, start=1):
        screen.heading(f"{number}  {check.title}")
        screen.say(" ".join((check.run.__doc__ or "").split()), "dim")
        outcomes.append(outcome := await outcome_of(demo, check))
        if not demo.connected:
            screen.say(f"{screen.bad} No MCP server answers at {url}: {outcome.problem}", "red")
            screen.line()
            screen.say("Is it up? `make up` starts it here and writes its URL to .local/endpoint.")
            return 1
        if outcome.skipped is not None:
            screen.say(f"skipped: {outcome.skipped}", "yellow")
        if outcome.problem is not None:
            screen.say(f"{screen.bad} {outcome.problem}", "red")
    screen.summary(outcomes, time.monotonic() - begun)
    return 0 if all(outcome.problem is None for outcome in outcomes) else 1


def show_introduction(demo: Demo, asked_to_ask: bool) -> None:
    """Print what the demo is, and who answers the tools' questions."""
    screen = demo.screen
    screen.line("An MCP server with durable tasks, seen by its client", "bold")
    screen.line(demo.url, "dim")
    if asked_to_ask and not demo.ask:
        screen.line("--ask needs a terminal; the demo answers the tools' questions", "yellow")
    elif not asked_to_ask and screen.is_terminal:
        screen.line("The demo answers the tools' questions; --ask lets you answer them", "dim")


async def outcome_of(demo: Demo, check: Check) -> Outcome:
    """Run one check, or skip it when the server does not have the samples that it needs."""
    if missing := demo.missing(check):
        reason = f"the server has no {', '.join(missing)}"
        return Outcome(check.title, None, 0, skipped=reason)
    return await run_check(demo, check)


async def run_check(demo: Demo, check: Check) -> Outcome:
    """Run one check. An exception becomes the outcome's problem, so that the next check still runs.

    A check has no time limit while the person at the terminal answers.
    """
    begun = time.monotonic()
    problem = None
    demo.task_line = TaskLine(demo.screen, None if demo.ask else ANSWERS)
    try:
        async with (
            asyncio.timeout(None if demo.ask else CHECK_SECONDS),
            demo.task_line.spinning(),
            demo.new_client() as client,
        ):
            demo.connected = True
            await check.run(demo, client)
    except Exception as error:
        problem = "; ".join(causes(error))
    return Outcome(check.title, problem, time.monotonic() - begun)


def causes(error: BaseException) -> Iterator[str]:
    """Say in words what went wrong. The SDK wraps exceptions in groups: each one's is yielded."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from causes(inner)
    elif isinstance(error, CheckFailed):
        yield str(error)
    elif isinstance(error, TimeoutError):
        yield f"the check did not end within {CHECK_SECONDS} seconds"
    elif isinstance(error, MCPError):
        yield f"JSON-RPC error {error.code}: {error.message}"
    else:
        yield f"{type(error).__name__}: {error}"
