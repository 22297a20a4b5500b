"""Find the subtasks that wait for an answer, for a client that knows nothing of subtasks.

A subtask asks without its parent being `input_required` (SEP-2268, "Input Required Status"). A
client that follows tasks finds it by `childTaskIds`. One that waits for the result of the parent's
call is asked there, or it would never be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ...tasks.state import Status
from ...tasks.task import Task
from ...tasks.task_table import TaskTable

READ_EVERY_MS: Final = 2_000
"""How often the subtasks of one task are read for one client."""


@dataclass(slots=True)
class AskingSubtasks:
    """The subtasks of one task, with what is known of them."""

    task_table: TaskTable
    _ended: set[str] = field(default_factory=set)
    _found: list[Task] = field(default_factory=list)
    _read_at: int = 0

    def that_ask(self, task: Task, now: int) -> list[Task]:
        """The subtasks of a task, and theirs, that wait for answers, as they were a moment ago.

        A task without subtasks costs nothing. Those that have ended are not read again. Raises
        Busy.
        """
        if not task.subtask_ids or task.status.terminal:
            return []
        if now >= self._read_at + READ_EVERY_MS:
            self._read_at = now
            self._found = list(self._asking(task))
        return self._found

    def _asking(self, task: Task) -> Iterator[Task]:
        left = [each for each in task.subtask_ids if each not in self._ended]
        for subtask in self.task_table.subtasks.read(left):
            if subtask.status.terminal:
                self._ended.add(subtask.task_id)
                continue
            if subtask.status is Status.INPUT_REQUIRED:
                yield subtask
            yield from self._asking(subtask)
