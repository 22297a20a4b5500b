"""Tools that crash where it is hard to see, with what they were given in every message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import timedelta

from mcp_tasks import AsyncTaskContext, Message, TaskContext, prompt, tool, user

QUICK = timedelta(milliseconds=200)


def parse(text: str) -> str:
    """Parse what is no JSON, as a library does: the innermost line is not this file's."""
    return str(json.loads(f"{{{text}"))


async def parse_later(text: str) -> None:
    """The same, in a coroutine."""
    await asyncio.sleep(0)
    parse(text)


@tool(task="required", poll_every=QUICK)
async def crash_in_group(task: AsyncTaskContext, text: str) -> str:
    """Crash in one of several coroutines."""
    async with asyncio.TaskGroup() as group:
        group.create_task(parse_later(text))
    return text


@tool(task="required", poll_every=QUICK)
def crash_in_step(task: TaskContext, text: str) -> str:
    """Crash in a step, and do not catch it."""
    return str(task.step(parse, text))


@tool(task="required", poll_every=QUICK)
def crash_in_map(task: TaskContext, text: str) -> str:
    """Crash in an item of a map, and do not catch it."""
    return str(task.map(parse, [text]))


def forget(text: str) -> None:
    """Undo it."""


def keep(text: str) -> str:
    """Do something."""
    return text


@tool(task="required", poll_every=QUICK)
def crash_in_undone(task: TaskContext, text: str) -> str:
    """Crash when something is to be undone."""
    task.step(keep, text, undo=forget)
    return parse(text)


@tool
def crash_at_once(text: str) -> str:
    """Crash within the request."""
    return parse(text)


def complete_badly(value: str, others: Mapping[str, str]) -> Iterable[str]:
    """Crash."""
    return [parse(value)]


@prompt(complete={"text": complete_badly})
def crashing_prompt(text: str) -> list[Message]:
    """Crash."""
    return [user(parse(text))]
