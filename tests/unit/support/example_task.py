"""A task, for tests that need one in the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from mcp_tasks.tasks.questions import Kind
from mcp_tasks.tasks.reconcile_schedule import FIRST_RECONCILE_MS
from mcp_tasks.tasks.state import Status
from mcp_tasks.tasks.task import Task

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
ID: Final = "c1-0123456789abcdef0123456789abcdef"


def a_task(**changes: Any) -> Task:
    """A new task of alice's that lives for an hour from NOW."""
    task = Task(
        task_id=ID,
        tool="count",
        principal="alice",
        status=Status.WORKING,
        created_at=NOW,
        last_updated_at=NOW,
        ttl_ms=HOUR,
        poll_interval_ms=2000,
        state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:count",
        accepts=frozenset({Kind.FORM}),
        input='{"upto":3}',
    )
    task = replace(task, **changes)
    return replace(task, **{"reconcile_at": task.created_at + FIRST_RECONCILE_MS, **changes})
