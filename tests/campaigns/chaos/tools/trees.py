"""A tool that calls itself, so that its tasks are trees of three levels."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

from mcp_tasks import TaskContext, ToolError, tool

from ._ledger import HOLDING, begin
from .durable import CALLS, LONG, POLLED, TIMEOUT, Done, Steps

ROOT: Final = "root"
DEPTH: Final = 2
WIDTH: Final = CALLS
REFUSING: Final = "root.1.0"
"""The leaf that refuses, where one does."""
KEPT: Final = timedelta(hours=1)


class Tree(Done):
    """What a task returns."""

    below: dict[str, str] = {}
    """The results of the steps of all tasks below it."""


@tool(task="required", poll_every=POLLED, timeout=TIMEOUT, ttl=KEPT)
def grow(
    task: TaskContext,
    mark: int,
    path: str = ROOT,
    depth: int = DEPTH,
    refuse: bool = False,
    hold: bool = False,
) -> Tree:
    """Do a step that something undoes, and call itself for each branch."""
    begin()
    steps = Steps(task, mark)
    own = {path: task.step(partial(steps.do, path), key=path, undo=steps.undo)}
    if hold and path == ROOT:
        task.report(HOLDING)
    if not depth:
        if refuse and path == REFUSING:
            raise ToolError(f"Refused: {mark}")
        if hold:
            task.sleep(LONG)
        return Tree(steps=own)
    about: dict[str, Any] = {"mark": mark, "depth": depth - 1, "refuse": refuse, "hold": hold}
    branches = [{**about, "path": f"{path}.{number}"} for number in range(WIDTH)]
    below: dict[str, str] = {}
    for branch in task.map(grow, branches, concurrency=WIDTH):
        below |= branch.steps | branch.below
    return Tree(steps=own, below=below)
