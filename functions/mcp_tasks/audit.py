"""The audit log: who did what to which task, one line each.

    {"message": "audit", "action": "read", "task_id": "c1-...", "principal": "https://...|alice"}

`create`, `read`, `answer` and `cancel` are a client's; `end` is the server's. A line says nothing
of what was in the task. `refused` marks what was not done: for the caller there is no such task.
"""

from __future__ import annotations

from typing import Any, Literal

from aws_lambda_powertools import Logger

Action = Literal["create", "read", "answer", "cancel", "end"]

logger = Logger()


def audit(action: Action, task_id: str, principal: str, **more: str | bool) -> None:
    """Write a line."""
    about: dict[str, Any] = {"action": action, "task_id": task_id, "principal": principal, **more}
    logger.info("audit", **about)
