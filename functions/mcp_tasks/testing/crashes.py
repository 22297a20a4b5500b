"""Crash a tool at every operation in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from .local_task import Answers, LocalTask, start_task
from .memory import MemoryJournalTable


def crash_everywhere(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    answers: Answers | None = None,
    steps: Mapping[Any, Callable[..., Any]] | None = None,
    effects: Callable[[], Any] | None = None,
) -> int:
    """Run a tool once without a crash, and then once for each moment at which it can be killed:
    before and after each write of its journal, and of its subtasks'. What is killed before its
    first durable operation is not run again, so these moments are left out.

    Each run has to end as the first one did. Each step has to run as often as in the first one. The
    step that was killed after its function had run, and before that was written, runs once more:
    no platform can know what it did. So give it `task.step_token`, or make it idempotent.

    `effects` returns what the steps have done, and forgets it: what a fake service has stored, for
    instance. That has to be the same after each run, the step that ran once more included. Without
    it, effects are not compared.

    Returns the number of crashes. Raises AssertionError, which says where the crash was and what
    differs.
    """

    def run(table: MemoryJournalTable) -> tuple[LocalTask, Any]:
        if effects is not None:
            effects()
        task = start_task(function, arguments, answers=answers, steps=steps, journal_table=table)
        return task, effects() if effects is not None else None

    expected, wanted = run(MemoryJournalTable())
    table = expected.journal_table
    moments = [(n, True) for n in range(1, table.writes + 1) if n not in table.beginnings]
    moments += [(n, False) for n in range(1, table.writes + 1)]
    for number, before in moments:
        task, done = run(MemoryJournalTable(crashes=_once(number, before=before)))
        where = f"killed {'before' if before else 'after'} write {number} of the journal"
        _compare(where, expected, task, repeated=1 if before else 0)
        _check(done == wanted, f"{where}: the effects are {done!r}, and not {wanted!r}")
    return len(moments)


def _once(number: int, *, before: bool) -> Callable[[int, bool], bool]:
    left = [True]

    def crashes(write: int, before_it: bool) -> bool:
        if left and (write, before_it) == (number, before):
            left.pop()
            return True
        return False

    return crashes


def _compare(where: str, expected: LocalTask, task: LocalTask, repeated: int) -> None:
    for name in ("status", "result", "error", "not_undone"):
        was, wanted = getattr(task, name), getattr(expected, name)
        _check(was == wanted, f"{where}: {name} is {was!r}, and not {wanted!r}")
    ran, wanted = Counter(task.executed), Counter(expected.executed)
    more = sum((ran - wanted).values())
    _check(not wanted - ran, f"{where}: did not run: {', '.join((wanted - ran).elements())}")
    _check(more <= repeated, f"{where}: ran once more: {', '.join((ran - wanted).elements())}")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
