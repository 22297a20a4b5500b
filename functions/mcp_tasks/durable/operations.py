"""The durable operations of a tool that runs, each of which the journal knows by its number
(`numbered_operations`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from ..registry.durable_errors import WaitTimedOut
from ..registry.durable_operations import StepOptions
from ..registry.tool import Tool
from . import identity
from .attempts import Attempt, Attempts, current_token
from .calls import Calls, checked_arguments
from .maps import Map
from .numbered_operations import NumberedOperations, check_name
from .record import Kind, Operation, State
from .run import Mode, Run
from .slot import Slot
from .suspension import ReplayEnded
from .typed_value import TypedValue

Result = TypeVar("Result")
Operating = Coroutine[Any, Any, Result]

SETTLE_SECONDS: Final = 0.01

VERSION: Final = "version#"
"""What the ids of versions begin with; the name of the change follows."""


@dataclass(frozen=True, slots=True)
class Undo:
    """What undoes an operation that is done."""

    operation_id: str
    name: str
    """Of what was done."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class DurableOperations(NumberedOperations):
    """Behind `task.step`, `task.sleep` and the others, for one run of a tool."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.undos: list[Undo] = []
        """What undoes the operations that are done, in their order."""
        self._attempts = Attempts(run)

    def step(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        options: StepOptions,
        undo: Callable[[Any], Any] | None = None,
    ) -> Operating[Any]:
        """Run a function once, and keep its result."""
        self.run.check_step_timeout(options.timeout)
        name = identity.function_name(function)
        attempt = Attempt(
            self._next(Kind.STEP, name, options.key, *arguments),
            functools.partial(self.run.stand_in(function), *arguments),
            TypedValue(function),
            options,
            undo,
        )
        return self._step(attempt)

    async def _step(self, attempt: Attempt) -> Any:
        value = await self._attempts.result(attempt)
        if attempt.undo is not None:
            self._register(attempt.slot, attempt.undo, value)
        return value

    def on_cancel(self, function: Callable[[], Any]) -> Operating[None]:
        """Have a function called when the task is cancelled or fails."""
        slot = self._next(Kind.ON_CANCEL, identity.function_name(function))
        return self._on_cancel(slot, function)

    async def _on_cancel(self, slot: Slot, function: Callable[[], Any]) -> None:
        if slot.record is not None:
            self._register(slot, function)
            if slot.record.ended:
                return
        self.run.go_forward()
        # Race: the task is cancelled at this moment. Whoever undoes it reads the journal after the
        # row says so; so the journal has the function before the row is asked.
        begun = self.run.journal.write(slot.new(State.STARTED, undo=slot.operation.name))
        self.run.announce_undo()
        if not begun.ended:
            self.run.journal.write(slot.new(State.DONE, undo=slot.operation.name))
        if slot.record is None:
            self._register(slot, function)

    def sleep(self, until: timedelta | datetime) -> Operating[None]:
        """Wait, while nothing runs."""
        slot = self._next(Kind.SLEEP, "until" if isinstance(until, datetime) else "for", None)
        return self._sleep(slot, until)

    async def _sleep(self, slot: Slot, until: timedelta | datetime) -> None:
        record = slot.record
        if record is None:
            self.run.go_forward()
            due_at = self.run.time(until)
            record = self.run.journal.write(slot.new(State.WAITING, due_at=due_at))
        if (record.due_at or 0) > self.run.clock():
            if self.run.mode is not Mode.FORWARD:
                raise ReplayEnded  # what is undone does not wait until the tool would have woken
            self.run.suspend(record.due_at or 0)

    def wait_for(
        self,
        check: Callable[[], Any],
        *,
        every: timedelta,
        until: timedelta | datetime,
        key: str | None = None,
    ) -> Operating[Any]:
        """Call a function again and again, until it returns something true."""
        if every < timedelta(seconds=1):
            raise ValueError("task.wait_for: every is at least a second")
        slot = self._next(Kind.WAIT_FOR, identity.function_name(check), key)
        return self._wait_for(slot, check, every, until)

    async def _wait_for(
        self,
        slot: Slot,
        check: Callable[[], Any],
        every: timedelta,
        until: timedelta | datetime,
    ) -> Any:
        record, typed = slot.record, TypedValue(check)
        if record is None or not record.ended:
            self.run.go_forward()
            limit = self.run.time(until) if record is None else record.value
            found = typed.to_json(await self._attempts.call(slot, self.run.stand_in(check)))
            now = self.run.clock()
            if found:
                record = self.run.journal.write(slot.new(State.DONE, value=found))
            elif now >= limit:
                record = self.run.journal.write(slot.new(State.FAILED))
            elif record is None:
                record = self.run.journal.write(slot.new(State.STARTED, value=limit))
            # Race: another run has begun to wait, or has found it, since the journal was read. What
            # stands is its record, which has no result as long as it has not ended.
            if not record.ended:
                self.run.suspend(min(limit, now + round(every.total_seconds() * 1000)))
        if record.state is State.FAILED:
            raise WaitTimedOut(f"{slot.operation.name} was not true in time")
        return typed.from_json(self.run.journal.value(record))

    def map(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        options: StepOptions,
        *,
        concurrency: int,
        tolerate: int,
    ) -> Operating[list[Any]]:
        """Run a function for each item, side by side."""
        self.run.check_step_timeout(options.timeout)
        name = identity.function_name(function)
        slot = self._next(Kind.MAP, name, options.key, list(items), concurrency)
        call = self.run.stand_in(function)
        calls = [functools.partial(call, item) for item in items]
        types = [TypedValue(function)] * len(calls)
        items_map = Map(self._attempts, slot, calls, types, options)
        return items_map.results(concurrency, tolerate)

    def gather(
        self,
        functions: Sequence[Callable[[], Any]],
        options: StepOptions,
        *,
        tolerate: int,
    ) -> Operating[list[Any]]:
        """Run several functions side by side."""
        self.run.check_step_timeout(options.timeout)
        slot = self._next(Kind.MAP, "gather", options.key, list(functions))
        types = [TypedValue(function) for function in functions]
        calls = [self.run.stand_in(function) for function in functions]
        functions_map = Map(self._attempts, slot, calls, types, options)
        return functions_map.results(len(functions), tolerate)

    def call(
        self,
        tool: Tool,
        arguments: Sequence[Mapping[str, Any]],
        key: str | None,
        *,
        concurrency: int,
        tolerate: int,
    ) -> Operating[list[Any]]:
        """Call a tool once for each of the arguments, each call a subtask."""
        given = [checked_arguments(tool, each) for each in arguments]
        slot = self._next(Kind.CALL, tool.name, key, given, concurrency)
        return Calls(self.run, slot, tool, given).results(concurrency, tolerate)

    def now(self) -> Operating[datetime]:
        """The time, when the tool first came here."""
        return self._now(self._next(Kind.NOW, "now"))

    async def _now(self, slot: Slot) -> datetime:
        record = slot.record
        if record is None:
            self.run.go_forward()
            record = self.run.journal.write(slot.new(State.DONE, value=self.run.clock()))
        return datetime.fromtimestamp(record.value / 1000, UTC)

    def version(self, change: str, number: int) -> Operating[int]:
        """Which way a task takes: `number`; or 0, if it had passed here before there was one."""
        check_name(change)
        self._enter(Kind.VERSION.value)
        return self._version(change, number)

    async def _version(self, change: str, number: int) -> int:
        record = self.run.journal.find(f"{VERSION}{change}")
        if record is None:
            last = self.run.journal.last_operation
            if last is not None and int(last.id) > self._count:
                return 0
            self.run.go_forward()
            operation = Operation(Kind.VERSION, change)
            slot = Slot(f"{VERSION}{change}", operation, None)
            record = self.run.journal.write(slot.new(State.DONE, value=number))
        return int(record.value)

    def uuid(self) -> UUID:
        """A UUID that is the same each time. It needs no record: it follows from its place."""
        return identity.unique_id(self.run.journal.task_id, self._unrecorded("uuid"))

    def random(self) -> float:
        """A number from 0 to 1 that is the same each time. It needs no record, either."""
        return identity.fraction(self.run.journal.task_id, self._unrecorded("random"))

    def answered(self, key: str, answer: Any) -> None:
        """Keep an answer that the tool uses."""
        self.run.answered(key, answer)

    @property
    def step_token(self) -> str:
        """The token of the step that runs. Raises LookupError outside of a step."""
        token = current_token.get()
        if token is None:
            raise LookupError("task.step_token is a step's: read it in the function of a step")
        return token

    async def settle(self) -> None:
        """Wait until the steps have ended that other coroutines have begun in this run."""
        import asyncio  # this is awaited by its loop

        while self.run.in_flight:
            await asyncio.sleep(SETTLE_SECONDS)

    def _register(self, slot: Slot, function: Callable[..., Any], *arguments: Any) -> None:
        self.undos.append(Undo(slot.id, slot.operation.name, function, arguments))
