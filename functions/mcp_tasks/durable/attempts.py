"""Run a step, keep what came of it, and try again by its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..redaction import log_crash
from ..registry.asking import ToolError
from ..registry.context import TaskCancelled
from ..registry.durable_errors import StepFailed
from ..registry.durable_operations import StepOptions
from .identity import function_name, unique_id
from .record import Failure, Record, State
from .run import Run
from .slot import Slot
from .time_limit import run_limited
from .typed_value import TypedValue

MAX_MESSAGE_CHARACTERS: Final = 2_000
"""Of an exception's text, as the journal keeps it."""

current_token: ContextVar[str | None] = ContextVar("current_token", default=None)
"""The token of the step that runs."""

logger = Logger()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A step to run."""

    slot: Slot
    call: Callable[[], Any]
    typed: TypedValue
    options: StepOptions
    undo: Callable[[Any], Any] | None = None
    map_id: str | None = None
    """The map that the step is an item of."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Runs the steps of one run."""

    run: Run

    async def result(self, attempt: Attempt) -> Any:
        """What a step returns, from the journal if it is there.

        Raises ToolError and StepFailed; and Suspended when the step is to be tried again later.
        """
        record = attempt.slot.record
        while record is None or not record.ended:
            due_at = record.due_at or 0 if record is not None else 0
            if due_at > self.run.clock():
                self.run.go_forward()
                self.run.suspend(due_at)
            self.run.go_forward(attempt.options.timeout)
            record = await self.once(attempt, record)
        return self.value(attempt, record)

    def value(self, attempt: Attempt, record: Record) -> Any:
        """What a step has returned; raises what it has raised."""
        if record.failure is not None:
            raise failure_of(attempt.slot.operation.name, record.failure)
        return attempt.typed.from_json(self.run.journal.value(record))

    async def once(self, attempt: Attempt, record: Record | None) -> Record:
        """Run a step once more, and write what came of it. Returns the record that stands then."""
        tries = (record.attempts if record is not None else 0) + 1
        undo = function_name(attempt.undo) if attempt.undo is not None else None
        if undo is not None:
            begun = self._announce(attempt, tries - 1, undo)
            if begun.ended:
                return begun  # by another run
        return await self.run_counted(attempt, tries, undo)

    async def run_counted(self, attempt: Attempt, tries: int, undo: str | None = None) -> Record:
        """Run a step for the time that `tries` counts, and write what came of it."""
        try:
            value = attempt.typed.to_json(await self.call(attempt.slot, attempt.call, attempt))
        except Exception as error:
            return self._failed(attempt, error, tries)
        new = attempt.slot.new(State.DONE, value=value, attempts=tries, undo=undo)
        return self.run.journal.write(new, attempt.map_id)

    async def call(
        self, slot: Slot, function: Callable[[], Any], attempt: Attempt | None = None
    ) -> Any:
        """Run a function as a step, in which there are no durable operations."""
        place = slot.id
        if attempt is not None and attempt.map_id is not None:
            place = f"{attempt.map_id}#{slot.id}"
        token = str(unique_id(self.run.journal.task_id, place))
        limit = attempt.options.timeout if attempt is not None else None
        with _running(token):
            self.run.in_flight += 1
            try:
                return await run_limited(function, limit)
            finally:
                self.run.in_flight -= 1

    def _announce(self, attempt: Attempt, tries: int, undo: str) -> Record:
        """Write that a step begins which may have to be undone.

        Race: the task is cancelled at this moment. Whoever undoes it does so after the row says
        cancelled, and then reads the journal. So the journal has the step before the row is asked;
        if the row says cancelled, the step does not begin.
        """
        journal, slot = self.run.journal, attempt.slot
        mine = journal.claim(slot.new(State.STARTED, attempts=tries, undo=undo))
        begun = journal.records[slot.id]
        try:
            self.run.announce_undo()
        except TaskCancelled:
            # Race: another run of the tool, which was taken for dead, has begun the step, or has
            # done it. Then its record stands: it is undone, or named.
            if mine and (slot.record is None or slot.record.state is State.WAITING):
                failure = Failure(TaskCancelled.__name__, "")
                journal.write(slot.new(State.FAILED, attempts=tries, failure=failure))
            raise
        return begun

    def _failed(self, attempt: Attempt, error: Exception, tries: int) -> Record:
        """Write that a step has failed: for good, or until its next attempt."""
        slot, name = attempt.slot, type(error).__name__
        final = isinstance(error, ToolError)
        message, step = str(error)[:MAX_MESSAGE_CHARACTERS], slot.operation.name
        if final:
            logger.warning("A step failed", error=name, attempt=tries, step=step)
            failure = Failure(ToolError.__name__, message)
        else:
            reference = log_crash(logger, error, "A step failed", attempt=tries, step=step)
            failure = Failure(name, message, reference)
        if not final and attempt.options.retry.again(error, tries):
            due_at = self.run.clock() + attempt.options.retry.delay_ms(tries)
            new = slot.new(State.WAITING, attempts=tries, due_at=due_at)
        else:
            new = slot.new(State.FAILED, attempts=tries, failure=failure)
        return self.run.journal.write(new, attempt.map_id)


def failure_of(step: str, failure: Failure) -> Exception:
    """The exception that a tool gets for a step that has failed for good."""
    if failure.name == ToolError.__name__:
        return ToolError(failure.message)
    return StepFailed(step, failure.name, failure.message, failure.reference)


@contextmanager
def _running(token: str) -> Iterator[None]:
    before = current_token.set(token)
    try:
        yield
    finally:
        current_token.reset(before)
