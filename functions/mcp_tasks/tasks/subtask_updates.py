"""What is written to the rows of a task and its subtasks, and on which condition. Pure.

`row_updates` has what is written to every task's row.
"""

from __future__ import annotations

from typing import Final

from .conditional_update import ConditionalUpdate
from .reconcile_schedule import FIRST_RECONCILE_MS
from .row_updates import HAS_SUBTASKS, NO_SUBTASKS, NOT_TERMINAL
from .state import Status
from .task import Task

TERMINAL: Final = tuple(state for state in Status if state.terminal)


def add(parent: Task, subtask_ids: tuple[str, ...]) -> ConditionalUpdate:
    """Give a task more subtasks, whose rows are written in the same transaction."""
    seen = len(parent.subtask_ids)
    # Races: the task ends, or its cancel is requested, while its subtasks are written: it would
    # have subtasks that nobody ends. Two functions start the same subtasks: each would add them.
    return ConditionalUpdate(
        sources=NOT_TERMINAL,
        conditions=(
            "attribute_not_exists(cancelRequested)",
            HAS_SUBTASKS if seen else NO_SUBTASKS,
        ),
        values={":subtasks": seen} if seen else {},
        sets={"childTaskIds": [*parent.subtask_ids, *subtask_ids]},
    )


def begin(name: str, token: str) -> ConditionalUpdate:
    """Note that the parent waits for the subtask, whose execution is started next."""
    # Race: the subtask is cancelled before its turn has come. Whoever ends it tells those whose
    # tokens the row has; so a token that comes later is not written, and is answered at once.
    return ConditionalUpdate(
        sources=NOT_TERMINAL,
        sets={"parent.tokens.#token": token},
        names={"#token": name},
        visible=False,
        # The function may die before it has started the execution.
        reconcile_in_ms=FIRST_RECONCILE_MS,
    )


def parent_told(to_be_undone: bool) -> ConditionalUpdate:
    """Note that the parent of an ended subtask knows of its end.

    The row leaves the reconcile schedule, unless something of the subtask is `to_be_undone`.
    """
    # Race: the row was removed since it was read; the write would make one that holds nothing.
    return ConditionalUpdate(
        sources=TERMINAL,
        sets={"parent.tokens": {}},
        visible=False,
        execution_ended=not to_be_undone,
        expired=None,
    )
