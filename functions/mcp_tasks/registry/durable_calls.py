"""The durable operations of a TaskContext: what they do is kept, and not done again.

A tool that runs as a task runs again from its first line after each question, each wait, and each
crash. Its durable operations then return what they returned before. `docs/durable-functions.md` has
what is promised.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from .called_tool import called_tool
from .durable_operations import DEFAULT_CONCURRENCY, Durable, StepOptions
from .retry_policy import Retry

if TYPE_CHECKING:
    from .tool import Tool

Result = TypeVar("Result")


class DurableCalls(Durable):
    """The durable operations of a `def`."""

    __slots__ = ()

    def step(
        self,
        function: Callable[..., Result],
        *args: Any,
        key: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        undo: Callable[[Result], Any] | None = None,
    ) -> Result:
        """Run `function(*args)` once, and keep its result; later runs get the kept one.

        The result is JSON, or of the type that the function declares to return. `undo` is called
        with it when the task is cancelled or fails. `key` tells steps of one function apart. A step
        that is killed in its midst runs again: see `step_token`.

        Raises StepFailed, or the step's own ToolError, when its last attempt has failed. Raises
        NonDeterminism, which ends the run, when the tool came to another operation before.
        """
        operation = self.durable("step").step(
            function, args, StepOptions.of(key, retry, timeout), undo
        )
        result: Result = _done(operation, function)
        return result

    def map(
        self,
        function: Callable[..., Any] | Tool,
        items: Sequence[Any],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        tolerate: int = 0,
        key: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
    ) -> list[Any]:
        """Run `function(item)` for each item, as a step of its own, `concurrency` (at most 40) at
        once. Returns the results in the order of the items, of which there may be 10,000.

        Where up to `tolerate` items have failed, their results are the exceptions. Raises the first
        of them when there are more.

        `function` may be a tool: then each item is a mapping of its arguments, and a subtask.
        """
        options = StepOptions.of(key, retry, timeout)
        operation = self._map(function, items, options, concurrency=concurrency, tolerate=tolerate)
        return _done(operation, function)

    def call(self, tool: Callable[..., Any] | Tool, /, **arguments: Any) -> Any:
        """Call another tool as a subtask: a task of its own, with an id, progress and questions
        that clients can follow (`childTaskIds`). Returns what the tool returns.

        `tool` is a function with `@tool(task=...)`, or a workflow tool. It is cancelled when this
        task is, and this task ends after it.

        Raises SubtaskFailed when it failed or was cancelled, its ToolError if it raised one, and
        InvalidArguments for arguments that it does not take.
        """
        called = called_tool(tool)
        operation = self.durable("call").call(called, [arguments], None, concurrency=1, tolerate=0)
        return _done(operation)[0]

    def gather(
        self,
        *functions: Callable[[], Any],
        tolerate: int = 0,
        key: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
    ) -> list[Any]:
        """Run several functions without arguments side by side, each as a step of its own. Make
        them with `functools.partial`. Returns their results in order; see `map`.
        """
        operation = self.durable("gather").gather(
            functions, StepOptions.of(key, retry, timeout), tolerate=tolerate
        )
        return _done(operation, *functions)

    def sleep(self, until: timedelta | datetime) -> None:
        """Wait for so long, or until then, at most for the tool's ttl. Nothing runs meanwhile.

        Raises ValueError for a longer time, and for a datetime without a time zone.
        """
        _done(self.durable("sleep").sleep(until))

    def wait_for(
        self,
        check: Callable[[], Result],
        *,
        every: timedelta,
        until: timedelta | datetime,
        key: str | None = None,
    ) -> Result:
        """Call `check()` now and again, `every` so often, until it returns something true, which is
        returned. Nothing runs meanwhile. Raises WaitTimedOut when the time has passed.
        """
        operation = self.durable("wait_for").wait_for(check, every=every, until=until, key=key)
        found: Result = _done(operation, check)
        return found

    def on_cancel(self, function: Callable[[], Any]) -> None:
        """Have `function()` called when the task is cancelled or fails, as the `undo` of a step."""
        _done(self.durable("on_cancel").on_cancel(function))

    def version(self, change: str, number: int = 1) -> int:
        """Which way this task takes through code that was changed: `number`, or 0 for a task that
        had come past this place before the change. See "Change a tool" in the documentation.
        """
        return _done(self.durable("version").version(change, number))

    def now(self) -> datetime:
        """The time when the tool first came here, in UTC: the same in each run."""
        return _done(self.durable("now").now())

    def random(self) -> float:
        """A random number from 0 to 1: the same in each run."""
        return self.durable("random").random()

    def uuid(self) -> UUID:
        """A UUID: the same in each run, and another one for each call."""
        return self.durable("uuid").uuid()


def _done(operation: Coroutine[Any, Any, Result], *functions: object) -> Result:
    """Run an operation to its end. Only one of an `async def` needs an event loop."""
    if any(map(inspect.iscoroutinefunction, functions)):
        import asyncio  # most functions need none

        return asyncio.run(operation)
    try:
        operation.send(None)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    operation.close()
    raise TypeError("a step's function returned a coroutine; make it an async def")
