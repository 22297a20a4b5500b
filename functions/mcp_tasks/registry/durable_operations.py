"""What stands behind the durable operations of a TaskContext."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from .called_tool import arguments_of_items, tool_of
from .durable_errors import NeedsTask
from .retry_policy import ONCE, Retry

if TYPE_CHECKING:
    from .tool import Tool


@dataclass(frozen=True, slots=True)
class StepOptions:
    """How a step is run."""

    key: str | None = None
    """What tells steps of one function apart."""
    retry: Retry = ONCE
    timeout: timedelta | None = None

    @classmethod
    def of(cls, key: str | None, retry: Retry | None, timeout: timedelta | None) -> StepOptions:
        """The options of a call; a step without a policy is tried once."""
        return cls(key, retry or ONCE, timeout)


class Operations(Protocol):
    """The operations of one run: `mcp_tasks.durable.operations.DurableOperations`."""

    def step(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        options: StepOptions,
        undo: Callable[[Any], Any] | None,
    ) -> Coroutine[Any, Any, Any]:
        """Behind `task.step`."""

    def map(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        options: StepOptions,
        *,
        concurrency: int,
        tolerate: int,
    ) -> Coroutine[Any, Any, list[Any]]:
        """Behind `task.map`."""

    def gather(
        self,
        functions: Sequence[Callable[[], Any]],
        options: StepOptions,
        *,
        tolerate: int,
    ) -> Coroutine[Any, Any, list[Any]]:
        """Behind `task.gather`."""

    def sleep(self, until: timedelta | datetime) -> Coroutine[Any, Any, None]:
        """Behind `task.sleep`."""

    def wait_for(
        self,
        check: Callable[[], Any],
        *,
        every: timedelta,
        until: timedelta | datetime,
        key: str | None,
    ) -> Coroutine[Any, Any, Any]:
        """Behind `task.wait_for`."""

    def on_cancel(self, function: Callable[[], Any]) -> Coroutine[Any, Any, None]:
        """Behind `task.on_cancel`."""

    def version(self, change: str, number: int) -> Coroutine[Any, Any, int]:
        """Behind `task.version`."""

    def call(
        self,
        tool: Tool,
        arguments: Sequence[Mapping[str, Any]],
        key: str | None,
        *,
        concurrency: int,
        tolerate: int,
    ) -> Coroutine[Any, Any, list[Any]]:
        """Behind `task.call`, and `task.map` over a tool."""

    def now(self) -> Coroutine[Any, Any, datetime]:
        """Behind `task.now`."""

    def random(self) -> float:
        """Behind `task.random`."""

    def uuid(self) -> UUID:
        """Behind `task.uuid`."""

    @property
    def step_token(self) -> str:
        """Behind `task.step_token`."""

    @property
    def in_step(self) -> bool:
        """Whether the function of a step runs."""

    def has_news(self) -> bool:
        """Whether what the tool reports here is news: no earlier run of it has come further."""

    def answered(self, key: str, answer: Any) -> None:
        """The tool uses an answer."""

    async def settle(self) -> None:
        """Wait for what other coroutines have begun."""


DEFAULT_CONCURRENCY: Final = 10


class Durable:
    """A context that may have durable operations."""

    __slots__ = ()

    operations: Operations | None

    def durable(self, operation: str) -> Operations:
        """What does an operation. Raises NeedsTask where there is no task."""
        if self.operations is None:
            raise NeedsTask(operation)
        return self.operations

    def _map(
        self,
        function: Any,
        items: Sequence[Any],
        options: StepOptions,
        *,
        concurrency: int,
        tolerate: int,
    ) -> Coroutine[Any, Any, list[Any]]:
        """A step for each item; a subtask, if the function is a tool that runs as a task."""
        if concurrency < 1:
            raise ValueError(f"task.map: concurrency is at least 1, and not {concurrency}")
        operations, tool = self.durable("map"), tool_of(function)
        if tool is None:
            return operations.map(
                function, items, options, concurrency=concurrency, tolerate=tolerate
            )
        arguments = arguments_of_items(items, tool, options)
        return operations.call(
            tool, arguments, options.key, concurrency=concurrency, tolerate=tolerate
        )

    @property
    def step_token(self) -> str:
        """In the function of a step: an idempotency token, the same in each of its attempts.

        Give it to a service that takes one, so that a step which was killed after it had called the
        service does not do it twice. Raises LookupError outside of a step.
        """
        return self.durable("step_token").step_token
