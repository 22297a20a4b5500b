"""The task's state machine, apart from any I/O (tasks.md, "Task Status").

    working <-> input_required
       |              |
       +--> terminal <+        completed, failed, cancelled: final

`row_updates` derives the condition of every write from TRANSITIONS. So a transition that is not
listed here cannot be written, whatever event arrives late, twice or out of order.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """The specification's five states, by their names."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether the task has ended; a terminal task never changes again."""
        return not TRANSITIONS[self]


TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    Status.WORKING: frozenset(
        {
            Status.WORKING,
            Status.INPUT_REQUIRED,
            Status.COMPLETED,
            Status.FAILED,
            Status.CANCELLED,
        }
    ),
    Status.INPUT_REQUIRED: frozenset(
        {
            Status.INPUT_REQUIRED,
            Status.WORKING,
            Status.COMPLETED,
            Status.FAILED,
            Status.CANCELLED,
        }
    ),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
}
"""From -> to. A state leads to itself when its message or its open questions may change."""


def sources(target: Status) -> tuple[Status, ...]:
    """The states from which `target` may be written, in the table's order."""
    return tuple(state for state, targets in TRANSITIONS.items() if target in targets)
