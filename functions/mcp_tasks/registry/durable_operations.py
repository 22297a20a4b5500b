"""What stands behind the durable operations of a TaskContext."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from .durable_errors import NeedsTask
from .retry_policy import ONCE, Retry


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

    def answered(self, key: str, answer: Any) -> None:
        """The tool uses an answer."""

    async def settle(self) -> None:
        """Wait for what other coroutines have begun."""


class Durable:
    """A context that may have durable operations."""

    __slots__ = ()

    operations: Operations | None

    def durable(self, operation: str) -> Operations:
        """What does an operation. Raises NeedsTask where there is no task."""
        if self.operations is None:
            raise NeedsTask(operation)
        return self.operations

    @property
    def step_token(self) -> str:
        """In the function of a step: an idempotency token, the same in each of its attempts.

        Give it to a service that takes one, so that a step which was killed after it had called the
        service does not do it twice. Raises LookupError outside of a step.
        """
        return self.durable("step_token").step_token
