"""The event of a worker that runs a function tool, as one run of the tool.

Beside what every run has (`worker/handler.py`), an event may have

    "lane": {"id": "000004", "number": 7}              to run some items of a map
    "undo": true                                       to undo what the tool did
    "calls": true                                      the state machine starts subtasks
    "crash": {"error", "cause", "count"}               the last run was killed
    "journal": true                                    an earlier run did durable operations
    "killed_lanes": 2                                  of the map that has just run
    "events": 120, "retries": 0                        of the execution's history, so far
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..durable.run import Lane, Mode

MAX_CRASHES: Final = 5
"""Runs that are killed one after the other before the task fails."""

MAX_EVENTS: Final = 9_000
"""Of an execution's history, before the tool goes on in another execution. A history has at most
25,000 events (Step Functions developer guide, "Quotas"). One call that Lambda throttles may take
half of them, so a run begins in the first part only."""

MAX_AT_ONCE: Final = 100
"""Subtasks that one Map state starts; the tool then calls for those that are left."""

RUN_EVENTS: Final = 15
"""Of one run, and of the question, the wait or the map that follows it."""
LANE_EVENTS: Final = 12
SUBTASK_EVENTS: Final = 25
"""With some of its attempts that were throttled."""
RETRY_EVENTS: Final = 3


def mode_of(event: Mapping[str, Any]) -> Mode:
    """What a run is for."""
    if event.get("undo"):
        return Mode.UNDO
    return Mode.LANE if event.get("lane") else Mode.FORWARD


def lane_of(event: Mapping[str, Any]) -> Lane | None:
    """The items of a map that a run works on."""
    lane = event.get("lane")
    return Lane(lane["id"], lane["number"]) if lane else None


def too_many_crashes(event: Mapping[str, Any]) -> bool:
    """Whether the tool is not run again, after it was killed several times."""
    return bool(event.get("crash")) and event["crash"]["count"] > MAX_CRASHES


def crashed(event: Mapping[str, Any]) -> dict[str, Any]:
    """The output of a tool that was killed and may not be repeated."""
    return {"fail": {"error": event["crash"]["error"], "cause": event["crash"]["cause"]}}


def events_after(event: Mapping[str, Any], output: Mapping[str, Any]) -> int:
    """About how many events the execution's history has when the tool runs again."""
    lanes = len(output["map"]["lanes"]) if "map" in output else 0
    subtasks = min(output["call"]["count"], MAX_AT_ONCE) if "call" in output else 0
    retries = event.get("retries") or 0
    now: int = event.get("events") or 0
    side_by_side = lanes * LANE_EVENTS + subtasks * SUBTASK_EVENTS
    return now + RUN_EVENTS + side_by_side + retries * RETRY_EVENTS
