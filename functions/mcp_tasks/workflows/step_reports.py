"""A running step's reports to its client, and why it failed: both are written to the task's row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aws_lambda_powertools import Logger

from ..aws.errors import error_code, is_transient
from ..durable.journal import JournalUnavailable
from ..registry.context import TaskCancelled
from ..tasks.errors import TaskEnded, UnknownTask
from ..tasks.task_table import TaskTable

MAX_TOOL_ERROR_CHARACTERS: Final = 8_000

logger = Logger()


def status_reporter(
    task_table: TaskTable, task_id: str, clock: Callable[[], int]
) -> Callable[[str, float | None], None]:
    """The function behind `TaskContext.report`: it writes the task's status message.

    It raises TaskCancelled when the task has ended. A report that fails with a transient error is
    left out: the step's work is worth more than its reports.
    """

    def report(message: str, progress: float | None) -> None:
        text = message if progress is None else f"{progress:.0%} {message}"
        try:
            task_table.report(task_id, text, clock())
        except (TaskEnded, UnknownTask):
            raise TaskCancelled from None
        except Exception as error:
            if not is_transient(error):
                raise
            logger.warning("A status message was not written", error=error_code(error))

    return report


def cancellation_check(
    task_table: TaskTable, task_id: str, clock: Callable[[], int]
) -> Callable[[], None]:
    """A function that raises TaskCancelled when the task has ended.

    When that cannot be read for a moment, the tool goes on: it asks again a second later, and
    `undo_notice` before each step that is to be undone. Other errors end the run, not the tool.
    """

    def check() -> None:
        try:
            running = task_table.is_running(task_id, clock())
        except Exception as error:
            if not is_transient(error):
                raise JournalUnavailable(error) from None
            logger.warning("A task's status was not read", error=error_code(error))
            return
        if not running:
            raise TaskCancelled

    return check


def undo_notice(
    task_table: TaskTable, task_id: str, clock: Callable[[], int]
) -> Callable[[bool], None]:
    """A function that notes on the task's row whether anything is to be undone.

    It raises TaskCancelled when the task has ended. When the row cannot be written, it ends the
    run, which is repeated: the tool would take an Exception for the failure of its step.
    """

    def note(undo: bool) -> None:
        try:
            task_table.set_undo(task_id, undo, clock())
        except (TaskEnded, UnknownTask):
            raise TaskCancelled from None
        except Exception as error:
            raise JournalUnavailable(error) from None

    return note


def tool_error_reporter(
    task_table: TaskTable, task_id: str, clock: Callable[[], int]
) -> Callable[[str], None]:
    """A function that stores a ToolError's message on the task's row, so that no log has it."""

    def explain(message: str) -> None:
        try:
            task_table.store_tool_error(task_id, message[:MAX_TOOL_ERROR_CHARACTERS], clock())
        except (TaskEnded, UnknownTask):
            return
        except Exception as error:
            # The step fails all the same; its client does not get the message.
            if not is_transient(error):
                raise
            logger.error("A tool error's message was not written", error=error_code(error))

    return explain
