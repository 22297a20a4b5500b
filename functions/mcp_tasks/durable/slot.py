"""The place that a tool has come to: one of its operations, and what the journal has of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .record import Operation, Record, State


@dataclass(frozen=True, slots=True)
class Slot:
    """One operation of a run."""

    id: str
    operation: Operation
    record: Record | None
    """None when the tool comes here for the first time."""

    def new(self, state: State, **more: Any) -> Record:
        """A record of the operation, to be written."""
        return Record(self.id, self.operation, state, **more)
