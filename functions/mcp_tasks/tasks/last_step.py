"""Until when a task counts in its caller's quota: until no step of it can run any more. Pure.

Nothing stops a Lambda function that runs. StopExecution ends the execution, and the step that it
has called goes on until it returns, or until its timeout (AWS Step Functions API reference,
"StopExecution"; Lambda developer guide, "Configure timeout"). So a task that was cancelled counts
for as long as its last step may take. Otherwise a caller that creates and cancels in turn would
have more steps running than tasks allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..aws.dynamodb_values import from_attribute
from .reconcile_schedule import UNKNOWN_SILENCE_MS
from .state import Status

ATTRIBUTES: Final = (
    "taskId",
    "status",
    "expiresAtMs",
    "lastUpdatedAt",
    "silenceMs",
    "sequential",
    "endedFrom",
)
"""What of a row this module reads, and the key."""


def open_at(item: Mapping[str, Any], now: int) -> bool:
    """Whether a task, as an item of the tasks table, counts at a time in milliseconds.

    A task that waits for an answer has no step that runs, if its tool is sequential. `silenceMs` is
    a step's timeout with a margin.
    """
    row = {name: from_attribute(value) for name, value in item.items()}
    status, over_at = Status(row["status"]), row["expiresAtMs"]
    if status.terminal:
        if "endedFrom" not in row:
            return False  # its steps had ended
        status, over_at = Status(row["endedFrom"]), row["lastUpdatedAt"]
    waits = status is Status.INPUT_REQUIRED and row.get("sequential", False)
    last_step_ms: int = 0 if waits else row.get("silenceMs", UNKNOWN_SILENCE_MS)
    return bool(now < over_at + last_step_ms)
