"""A server with limits, for a client that reaches them."""

from __future__ import annotations

from typing import Final

from mcp_tasks.limits import Limits
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.example_task import a_task
from tests.unit.support.listening import Time
from tests.unit.support.stack import Answer, Stack

INTERNAL: Final = -32603
TOO_MANY: Final = (429, INTERNAL)


class Limited:
    """A server with limits, whose clock stands still."""

    def __init__(self, stack: Stack, time: Time) -> None:
        self.stack = stack
        self.time = time

    def serve(self, **limits: int) -> Stack:
        """Start it with these limits of a caller, and no others."""
        off = {"max_open_tasks": 0, "creations_per_minute": 0}
        off |= {"max_open_subscriptions": 0, "new_subscriptions_per_minute": 0}
        off |= {"polls_per_second": 0, "max_open_calls": 0}
        self.stack.environment["LIMITS"] = Limits(**{**off, **limits}).to_json()
        self.stack.serve()
        return self.stack


def refused(answer: Answer, retry_after: int | None) -> str:
    """Check that the answer is HTTP 429 with this `Retry-After`; returns its message."""
    assert (answer.status, answer.code) == TOO_MANY
    assert answer.headers.get("Retry-After") == (retry_after and str(retry_after))
    assert answer.error.get("data") == (retry_after and {"retryAfterSeconds": retry_after})
    message: str = answer.error["message"]
    return message


def new_task(limited: Limited, principal: str = ANYONE) -> str:
    now = limited.time.now
    task = a_task(principal=principal, created_at=now, last_updated_at=now)
    limited.stack.deployment.task_table.create(task)
    return task.task_id


def new_id() -> str:
    """An id that a task may have."""
    return f"c1-{'0' * 32}"
