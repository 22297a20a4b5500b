"""Number the durable operations of a tool, so that each run finds them in the journal again.

The first operation that a tool comes to is number 1, and so on. A tool that runs again comes to the
same operations in the same order: those that are recorded return what they returned then, and the
first one that is not recorded goes on.

Every operation is a method that takes its number when it is called, and returns a coroutine. So the
numbers are the same however an `async def` awaits its operations.
"""

from __future__ import annotations

from typing import Any, Final

from ..registry.durable_errors import NeedsTask
from . import identity
from .attempts import current_token
from .record import Kind, Operation
from .run import Mode, Run
from .slot import Slot
from .suspension import NonDeterminism, ReplayEnded

MAX_NAME_CHARACTERS: Final = 200
"""Of an operation's key, and of a change's name."""


class NumberedOperations:
    """The operations that one run of a tool comes to."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._count = 0
        self._unrecorded_count = 0

    @property
    def count(self) -> int:
        """How many operations the tool has come to."""
        return self._count

    def check_end(self) -> None:
        """Raises NonDeterminism when the journal has operations that the tool did not come to."""
        last = self.run.journal.last_operation
        forward = self.run.mode in (Mode.FORWARD, Mode.REPLAY)
        if forward and last is not None and int(last.id) > self._count:
            raise NonDeterminism(last.operation, None)

    @property
    def in_step(self) -> bool:
        """Whether the function of a step runs."""
        return current_token.get() is not None

    def has_news(self) -> bool:
        """Whether what the tool reports here is news: no earlier run has come further.

        Raises ReplayEnded in a run that undoes, when the tool is past all that its journal has: it
        need not work on.
        """
        if self.in_step:
            return True
        last = self.run.journal.last_operation
        repeats = last is not None and int(last.id) > self._count
        if self.run.mode is Mode.UNDO and not repeats:
            raise ReplayEnded
        return self.run.mode is Mode.FORWARD and not repeats

    def _next(self, kind: Kind, name: str, key: str | None = None, *arguments: Any) -> Slot:
        """The operation that the tool comes to. Raises NonDeterminism when another one was here."""
        check_name(key)
        self._enter(kind.value)
        self._count += 1
        operation = Operation(kind, name, key, identity.arguments_hash(*arguments))
        record = self.run.journal.find(f"{self._count:06}")
        if record is not None and record.operation != operation:
            raise NonDeterminism(record.operation, operation)
        return Slot(f"{self._count:06}", operation, record)

    def _enter(self, operation: str) -> None:
        if self.in_step:
            raise NeedsTask(operation)
        self.run.enter()

    def _unrecorded(self, what: str) -> str:
        """The place of an operation that is not recorded. It does not count among the others."""
        self._enter(what)
        self._unrecorded_count += 1
        return f"{what}#{self._unrecorded_count}"


def check_name(name: str | None) -> None:
    """Raises ValueError for a key or a change's name that is too long to be kept."""
    if name is not None and len(name) > MAX_NAME_CHARACTERS:
        raise ValueError(f"a key, or a change's name, has at most {MAX_NAME_CHARACTERS} characters")
