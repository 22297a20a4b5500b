"""The durable operations of an AsyncTaskContext, each of which is awaited; see `durable_calls`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .called_tool import called_tool
from .durable_operations import DEFAULT_CONCURRENCY, Durable, StepOptions
from .retry_policy import Retry

if TYPE_CHECKING:
    from .tool import Tool


class AsyncDurableCalls(Durable):
    """The durable operations of an `async def`, each of which is awaited; see DurableCalls."""

    __slots__ = ()

    def step(
        self,
        function: Callable[..., Any],
        *args: Any,
        key: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        undo: Callable[[Any], Any] | None = None,
    ) -> Awaitable[Any]:
        """Run `function(*args)`, `def` or `async def`, once; see DurableCalls.step."""
        return self.durable("step").step(function, args, StepOptions.of(key, retry, timeout), undo)

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
    ) -> Awaitable[list[Any]]:
        """Run `function(item)` for each item, side by side; see DurableCalls.map."""
        options = StepOptions.of(key, retry, timeout)
        return self._map(function, items, options, concurrency=concurrency, tolerate=tolerate)

    def call(self, tool: Callable[..., Any] | Tool, /, **arguments: Any) -> Awaitable[Any]:
        """Call another tool as a subtask; see DurableCalls.call."""
        called = called_tool(tool)
        operation = self.durable("call").call(called, [arguments], None, concurrency=1, tolerate=0)
        return _only(operation)

    def gather(
        self,
        *functions: Callable[[], Any],
        tolerate: int = 0,
        key: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
    ) -> Awaitable[list[Any]]:
        """Run several functions side by side; see DurableCalls.gather."""
        return self.durable("gather").gather(
            functions, StepOptions.of(key, retry, timeout), tolerate=tolerate
        )

    def sleep(self, until: timedelta | datetime) -> Awaitable[None]:
        """Wait, while nothing runs; see DurableCalls.sleep."""
        return self.durable("sleep").sleep(until)

    def wait_for(
        self,
        check: Callable[[], Any],
        *,
        every: timedelta,
        until: timedelta | datetime,
        key: str | None = None,
    ) -> Awaitable[Any]:
        """Call `check()` until it is true; see DurableCalls.wait_for."""
        return self.durable("wait_for").wait_for(check, every=every, until=until, key=key)

    def on_cancel(self, function: Callable[[], Any]) -> Awaitable[None]:
        """Have a function called when the task is cancelled; see DurableCalls.on_cancel."""
        return self.durable("on_cancel").on_cancel(function)

    def version(self, change: str, number: int = 1) -> Awaitable[int]:
        """Which way this task takes; see DurableCalls.version."""
        return self.durable("version").version(change, number)

    def now(self) -> Awaitable[datetime]:
        """The time when the tool first came here; see DurableCalls.now."""
        return self.durable("now").now()

    async def random(self) -> float:
        """A random number; see DurableCalls.random."""
        return self.durable("random").random()

    async def uuid(self) -> UUID:
        """A UUID; see DurableCalls.uuid."""
        return self.durable("uuid").uuid()


async def _only(operation: Awaitable[list[Any]]) -> Any:
    return (await operation)[0]
