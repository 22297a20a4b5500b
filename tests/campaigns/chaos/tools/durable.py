"""Tools with durable operations. Each effect that they have is noted with its step's token.

A step returns what its effect was noted as, and a later step gets what an earlier one returned: so
a result that changes from one run to the next is noticed, as NonDeterminism.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal

from pydantic import BaseModel

from mcp_tasks import AsyncTaskContext, Retry, StepFailed, TaskContext, ToolError, tool
from mcp_tasks.workflows import tool_run
from mcp_tasks.workflows.run_event import LANE_EVENTS, RUN_EVENTS, SUBTASK_EVENTS

from ._ledger import FOLDER, HOLDING, ITEMS, LEGS, begin, did, did_before, note, ran

LANES: Final = 3
CALLS: Final = 2
"""Lanes of a map, and subtasks, at once."""
MAX_EVENTS: Final = RUN_EVENTS + max(LANES * LANE_EVENTS, CALLS * SUBTASK_EVENTS) + 20
"""Of an execution's history, for the tools of this file: a task goes on in another execution after
some five runs, and not after 600. A run, a map and a few throttled calls have to fit into it: else
the task would go on in another execution for ever."""
if FOLDER in os.environ:  # within a function of the campaign
    setattr(tool_run, "MAX_EVENTS", MAX_EVENTS)  # noqa: B010  it is final for everybody else

POLLED: Final = timedelta(seconds=2)
TIMEOUT: Final = timedelta(seconds=30)
SHORT: Final = timedelta(seconds=25)
A_SECOND: Final = timedelta(seconds=1)
LONG: Final = timedelta(minutes=1)
AGAIN: Final = Retry(attempts=5, delay=A_SECOND, jitter=False)


class Text(BaseModel):
    """An answer."""

    text: str


class Done(BaseModel):
    """What the tools return: the results of their steps by key, their answers, their items."""

    steps: dict[str, str]
    answers: dict[str, str] = {}
    items: list[str] = []


@dataclass(frozen=True)
class Steps:
    """The functions of a task's steps."""

    task: TaskContext | AsyncTaskContext
    mark: int

    def do(self, key: str, before: str = "") -> str:
        """Change something."""
        return did(self.task, self.mark, key)

    def undo(self, value: str) -> None:
        """Undo it."""
        note(self.task, self.mark, "undid", value=value)

    def on_cancel(self) -> None:
        """Undo what no step did."""
        note(self.task, self.mark, "undid", value="on cancel")

    def fail_twice(self) -> str:
        """Change something at the third attempt."""
        if note(self.task, self.mark, "tried") < 3:
            raise ConnectionError("not yet")
        return did(self.task, self.mark, "flaky")

    def fail(self) -> str:
        """Never change anything."""
        note(self.task, self.mark, "tried")
        raise ValueError(self.mark)

    def be_killed(self, before: str) -> str:
        """Change something, and be killed, the first time, before anybody knows of it."""
        first = not did_before(self.task)
        value = did(self.task, self.mark, "b")
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    def take_long(self) -> str:
        """Change something in the end."""
        time.sleep(6)
        return did(self.task, self.mark, "held")

    def item(self, number: int) -> str:
        """An item of a map; each fourth one fails at first."""
        tries = note(self.task, self.mark, "tried")
        if number % 4 == 0 and tries == 1:
            raise ConnectionError("not yet")
        return did(self.task, self.mark, str(number))

    def slow_item(self, number: int) -> str:
        """An item that takes a second."""
        time.sleep(1)
        return did(self.task, self.mark, str(number))

    def refused_item(self, number: int) -> str:
        """An item of which one cannot be done."""
        if number == ITEMS // 2:
            raise ToolError(f"Refused: {self.mark}")
        return self.item(number)

    def looked_thrice(self) -> bool:
        """Whether something is there: not before the third look."""
        return note(self.task, self.mark, "looked") >= 3

    def hear(self, name: str, text: str) -> str:
        """Note an answer."""
        ran(self.task, self.mark, "heard", name, text)
        return did(self.task, self.mark, "heard", name)


How = Literal["wait", "retry", "confirm", "die", "relay", "refuse", "crash", "hold"]
Held = Literal["step", "sleep", "ask", "map"]


@tool(task="required", poll_every=POLLED, timeout=TIMEOUT)
def endure(task: TaskContext, mark: int, how: How, held: Held = "step") -> Done:
    """Do one of several things. One tool for all of them: each has processes of its own."""
    begin()
    steps = Steps(task, mark)
    match how:
        case "wait":
            return wait(task, steps)
        case "retry":
            return retry(task, steps)
        case "confirm":
            return confirm(task, steps)
        case "die":
            return die(task, steps)
        case "relay":
            return relay(task, steps)
        case "refuse":
            book(task, steps)
            raise ToolError(f"Refused: {mark}")
        case "crash":
            book(task, steps)
            raise ValueError(mark)
        case "hold":
            return hold(task, steps, held)


def do(task: TaskContext, steps: Steps, key: str, before: str = "") -> str:
    """A step that nothing undoes."""
    return task.step(partial(steps.do, key), before, key=key)


def sleep(task: TaskContext, mark: int, key: str, duration: timedelta) -> None:
    """Sleep, and note when."""
    note(task, mark, "sleeps", key, duration.total_seconds())
    task.sleep(duration)
    note(task, mark, "woke", key)


def wait(task: TaskContext, steps: Steps) -> Done:
    """Sleep, wait for something, and see that what is the same in each run is."""
    first = do(task, steps, "a")
    constant = f"{task.now()} {task.random()} {task.uuid()}"
    sleep(task, steps.mark, "short", timedelta(seconds=1.5))
    task.wait_for(steps.looked_thrice, every=A_SECOND, until=timedelta(minutes=10))
    second = do(task, steps, "b", first)
    return Done(steps={"a": first, "b": second, "constant": do(task, steps, "constant", constant)})


def retry(task: TaskContext, steps: Steps) -> Done:
    """A step that is tried again, and one that fails for good."""
    flaky = task.step(steps.fail_twice, key="flaky", retry=AGAIN)
    try:
        task.step(steps.fail, key="fail", retry=Retry(attempts=2, delay=timedelta(0)))
    except StepFailed as failed:
        return Done(steps={"flaky": flaky, "b": do(task, steps, "b", failed.name)})
    raise AssertionError("a step that always fails has not")


def confirm(task: TaskContext, steps: Steps) -> Done:
    """Ask between steps, which nothing has to undo in the end."""
    first = task.step(partial(steps.do, "a"), key="a", undo=steps.undo)
    title = task.ask("The title?", Text, key="title").text
    task.step(partial(steps.hear, "title"), title, key="heard title")
    sleep(task, steps.mark, "between", A_SECOND)
    text = task.ask("The text?", Text, key="text").text
    task.step(partial(steps.hear, "text"), text, key="heard text")
    second = task.step(partial(steps.do, "b"), first, key="b", undo=steps.undo)
    return Done(steps={"a": first, "b": second}, answers={"title": title, "text": text})


def die(task: TaskContext, steps: Steps) -> Done:
    """Have a step that is killed between its effect and its record."""
    first = do(task, steps, "a")
    second = task.step(steps.be_killed, first, key="b")
    return Done(steps={"a": first, "b": second, "c": do(task, steps, "c", second)})


def relay(task: TaskContext, steps: Steps) -> Done:
    """Wait so often that several executions are needed."""
    results, last = {}, ""
    for number in range(LEGS):
        last = results[f"leg {number}"] = do(task, steps, f"leg {number}", last)
        sleep(task, steps.mark, f"after {number}", A_SECOND)
    return Done(steps=results)


def book(task: TaskContext, steps: Steps) -> dict[str, str]:
    """Do what is to be undone, one thing after the other."""
    first = task.step(partial(steps.do, "a"), key="a", undo=steps.undo)
    task.on_cancel(steps.on_cancel)
    with suppress(StepFailed):
        task.step(steps.fail, key="fail", undo=steps.undo)
    second = task.step(partial(steps.do, "b"), first, key="b", undo=steps.undo)
    return {"a": first, "b": second}


def hold(task: TaskContext, steps: Steps, held: Held) -> Done:
    """Be somewhere for a while, to be cancelled meanwhile."""
    done = book(task, steps)
    task.report(HOLDING)
    match held:
        case "step":
            done["held"] = task.step(steps.take_long, key="held", undo=steps.undo)
        case "sleep":
            sleep(task, steps.mark, "long", LONG)
        case "ask":
            task.ask("Is anybody there?", Text)
        case "map":
            items = task.map(steps.slow_item, range(ITEMS), concurrency=LANES)
            return Done(steps=done, items=items)
    return Done(steps=done)


@tool(task="required", poll_every=POLLED, timeout=TIMEOUT)
async def fan(task: AsyncTaskContext, mark: int, refuse: bool = False) -> Done:
    """Do things side by side: two steps in coroutines, the items of a map, several functions."""
    begin()
    steps = Steps(task, mark)
    item = steps.refused_item if refuse else steps.item
    left, right = await asyncio.gather(
        task.step(partial(steps.do, "left"), key="left", undo=steps.undo),
        task.step(partial(steps.do, "right"), key="right", undo=steps.undo),
    )
    items = await task.map(item, range(ITEMS), concurrency=LANES, retry=AGAIN, key="items")
    functions: list[Callable[[], Any]] = [partial(steps.do, f"g{number}") for number in range(2)]
    g0, g1 = await task.gather(*functions, key="functions")
    last = await task.step(partial(steps.do, "last"), items, key="last")
    done = {"left": left, "right": right, "g0": g0, "g1": g1, "last": last}
    return Done(steps=done, items=items)


@tool(task="required", poll_every=POLLED, timeout=TIMEOUT, ttl=SHORT)
def lapse(task: TaskContext, mark: int) -> Done:
    """Do what is to be undone, and wait for longer than the task lives."""
    begin()
    steps = Steps(task, mark)
    done = book(task, steps)
    sleep(task, mark, "before", timedelta(seconds=5))
    task.ask("Is anybody there?", Text)
    return Done(steps=done)
