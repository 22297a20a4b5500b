"""Find the subtasks that wait for an answer, for a client that knows nothing of subtasks.

A subtask asks without its parent being `input_required` (SEP-2268, "Input Required Status"). A
client that follows tasks finds it by `childTaskIds`. One that waits for the result of the parent's
call is asked there, or it would never be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from aws_lambda_powertools import Logger

from ...aws.errors import error_code, is_transient
from ...tasks.errors import Busy
from ...tasks.state import Status
from ...tasks.task import Task
from ...tasks.task_table import TaskTable

READ_EVERY_MS: Final = 2_000
"""How often up to READ_AT_ONCE subtasks are read for one client. More are read less often."""
READ_AT_ONCE: Final = 50

logger = Logger()


@dataclass(slots=True)
class AskingSubtasks:
    """The subtasks of one task, with what is known of them."""

    task_table: TaskTable
    _ended: set[str] = field(default_factory=set)
    _found: list[Task] = field(default_factory=list)
    _read_at: int = 0

    def that_ask(self, task: Task, now: int) -> list[Task]:
        """The subtasks of a task, and theirs, that wait for answers, as they were a moment ago.

        A task without subtasks costs nothing. Those that have ended are not read again. When AWS
        fails for the moment, they are those that were found before.
        """
        if not task.subtask_ids or task.status.terminal:
            return []
        left = len(task.subtask_ids) - len(self._ended)
        if now >= self._read_at + READ_EVERY_MS * max(1, left // READ_AT_ONCE):
            self._read_at = now
            try:
                self._found = list(self._asking(task))
            except Exception as error:
                if not (isinstance(error, Busy) or is_transient(error)):
                    raise
                logger.warning("Subtasks could not be read", error=error_code(error))
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
