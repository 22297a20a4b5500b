"""`pollIntervalMs`: how long a client should wait before it polls a task again. Pure."""

from __future__ import annotations

from typing import Final

from .state import Status
from .task import Task

MAX_POLL_INTERVAL_MS: Final = 60_000
"""The longest interval that a task's age leads to; a tool may suggest a longer one."""


def poll_interval_ms(task: Task, now: int) -> int:
    """Milliseconds until the next poll of a task (tasks.md, "Task Polling").

    A tenth of the task's age, or of the time that it has been waiting for an answer; at least what
    its tool suggests, and at most a minute. So a task of hours is not polled every second, and a
    task that has just asked its client is polled as often as a new one.
    """
    if task.status.terminal:
        return task.poll_interval_ms
    asked = task.status is Status.INPUT_REQUIRED
    age = max(0, now - (task.last_updated_at if asked else task.created_at))
    return max(task.poll_interval_ms, min(age // 10, MAX_POLL_INTERVAL_MS))
