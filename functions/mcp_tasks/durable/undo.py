"""Undo what a tool has done: last first, each once, with several attempts."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Final

from ..registry.durable_operations import StepOptions
from ..registry.retry_policy import Retry
from .attempts import Attempt, Attempts
from .identity import function_name
from .operations import DurableOperations, Undo
from .record import Kind, Operation, Record, State
from .run import Run
from .slot import Slot
from .typed_value import NO_VALUE

UNDO_OPTIONS: Final = StepOptions(retry=Retry(attempts=8))
"""Eight attempts, within about four minutes."""

STILL_RUNS_MS: Final = 5_000
"""How often to look whether a step has ended that began before its task was cancelled; and how long
after a run's deadline its function may still run (`worker.handler.END_MARGIN_MS`)."""

UNDO: Final = "undo#"
"""What the ids of records of undoing begin with; the id of what is undone follows."""


async def undo_all(operations: DurableOperations) -> list[str]:
    """Undo what the run has found to be done. Returns the names of the steps that are not undone.

    Those are steps whose undo has failed for good, steps that ended nobody knows how, and those
    that the tool did not come to again. Raises Suspended to go on later.
    """
    run = operations.run
    run.suspension = None
    attempts, not_undone = Attempts(run), _unknown(operations)
    for undo in reversed(operations.undos):
        record = await _undo(undo, attempts)
        if record.state is State.FAILED:
            not_undone.append(undo.name)
    return not_undone


def may_have_to_be_undone(operations: DurableOperations) -> bool:
    """Whether the tool has done anything that something undoes."""
    return bool(operations.undos) or bool(_undoable(operations.run))


async def _undo(undo: Undo, attempts: Attempts) -> Record:
    run = attempts.run
    record_id = f"{UNDO}{undo.operation_id}"
    operation = Operation(Kind.UNDO, function_name(undo.function))
    slot = Slot(record_id, operation, run.journal.find(record_id))
    call = functools.partial(run.stand_in(undo.function), *undo.arguments)
    attempt = Attempt(slot, call, NO_VALUE, UNDO_OPTIONS)
    while slot.record is None or not slot.record.ended:
        record = slot.record
        due_at = (record.due_at or 0) if record is not None else 0
        if due_at > run.clock() or not run.has_time():
            run.suspend(max(due_at, run.clock()))
        tries = (record.attempts if record is not None else 0) + 1
        # Race: a run that undoes the same goes on although its execution was stopped. Lambda ends
        # it a moment after its deadline; the second one waits for that, and takes it for dead.
        until = run.deadline + STILL_RUNS_MS
        if run.journal.claim(slot.new(State.STARTED, attempts=tries, due_at=until)):
            await attempts.run_counted(attempt, tries)
        slot = replace(slot, record=run.journal.find(record_id))
        attempt = replace(attempt, slot=slot)
    return slot.record


def _unknown(operations: DurableOperations) -> list[str]:
    """The names of steps that cannot be undone: they began and did not end, or the tool did not
    come to them again.

    Raises Suspended while such a step may still run: nothing stops a Lambda function that runs when
    its task is cancelled.
    """
    run, found = operations.run, {undo.operation_id for undo in operations.undos}
    unknown = [record for record in _undoable(run) if record.id not in found]
    began = [record.written_at for record in unknown if record.state is State.STARTED]
    now = run.clock()
    if began and now < max(began) + run.length_ms + STILL_RUNS_MS:
        run.suspend(now + STILL_RUNS_MS)
    return [record.operation.name for record in unknown]


def _undoable(run: Run) -> list[Record]:
    """The records of steps that may have had an effect, and that something undoes."""
    records = run.journal.records.values()
    return [each for each in records if each.undo is not None and each.state is not State.FAILED]
