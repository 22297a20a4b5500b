"""A journal in memory, which crashes the run on demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from ..durable.journal import HEAD
from ..durable.journal_table import JournalExpired
from ..durable.record import Record


class Crash(BaseException):
    """Kills a run, as when Lambda kills a function: no code of the tool sees it."""


def _never(_: int, before: bool) -> bool:
    return False


@dataclass
class MemoryJournalTable:
    """What `JournalTable` does, without DynamoDB."""

    partitions: dict[str, dict[str, Record]] = field(default_factory=lambda: defaultdict(dict))
    writes: int = 0
    """How many writes there were."""
    beginnings: set[int] = field(default_factory=set)
    """Which of them were a tool's first."""
    crashes: Callable[[int, bool], bool] = _never
    """Whether to crash at a write, counted from 1: before it, or after it."""

    def read(self, partition: str, prefix: str = "") -> list[Record]:
        """The records whose ids begin with `prefix`, in the order of their ids."""
        found = self.partitions[partition]
        return [found[each] for each in sorted(found) if each.startswith(prefix)]

    def write(self, partition: str, record: Record, seen: Record | None, expires_at: int) -> Record:
        """Write a record in the place of the one that was `seen` there."""
        self.writes += 1
        number = self.writes
        if record.id == HEAD:
            self.beginnings.add(number)
        if self.crashes(number, True):
            raise Crash
        stands = self._write(partition, record, seen)
        if self.crashes(number, False):
            raise Crash
        return stands

    def keep(self, partition: str, record: Record) -> None:
        """Write a record as the platform does, which is not killed here."""
        self._write(partition, record, None)

    def _write(self, partition: str, record: Record, seen: Record | None) -> Record:
        there = self.partitions[partition].get(record.id)
        if seen is None:
            if there is not None:
                return there
        elif there is None:
            raise JournalExpired(record.id)
        elif (there.state, there.attempts) != (seen.state, seen.attempts):
            return there
        self.partitions[partition][record.id] = record
        return record


@dataclass
class MemoryClock:
    """A time that passes only when it is told to."""

    ms: int

    def __call__(self) -> int:
        """The time in milliseconds since the epoch."""
        return self.ms

    def wait_until(self, ms: int) -> None:
        """Let the time pass."""
        self.ms = max(self.ms, ms)
