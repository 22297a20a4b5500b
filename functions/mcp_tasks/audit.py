"""The audit log: one line for each action on a task.

    {"message": "audit", "action": "read", "task_id": "c1-...", "principal": "https://...|alice"}

A client's actions are `create`, `read`, `answer`, `cancel`, `delete`. The server's are `end`, and
`undo` for what could not be undone of a cancelled or failed task. A line has nothing of the task's
arguments, questions, answers or result. `refused` marks an action that was not done, because the
principal has no such task.
"""

from __future__ import annotations

from typing import Any, Literal

from aws_lambda_powertools import Logger

Action = Literal["create", "read", "answer", "cancel", "delete", "end", "undo"]

logger = Logger()


def audit(action: Action, task_id: str, principal: str | None, **more: str | bool) -> None:
    """Write a line, with further members such as `refused` or `status`.

    A worker does not know the principal.
    """
    line: dict[str, Any] = {"action": action, "task_id": task_id, **more}
    if principal is not None:
        line["principal"] = principal
    logger.info("audit", **line)
