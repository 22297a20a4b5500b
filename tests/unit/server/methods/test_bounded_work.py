"""What one caller may have running, however it calls: no quota is freed before the work ends.

StopExecution does not stop a Lambda function that runs. A step that was called runs until its
timeout, whatever became of its task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from mcp_tasks.tasks.reconcile_schedule import SILENCE_MARGIN_MS
from tests.unit.support.limited import TOO_MANY, Limited

STEP_MS: Final = 120_000


def test_who_creates_and_cancels_in_turn_has_no_more_steps_running_than_tasks_allowed(
    limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It creates as fast as it may for as long as two steps take."""
    stack = limited.serve(max_open_tasks=5, creations_per_minute=30)
    tools = stack.catalogue.tools
    monkeypatch.setitem(tools, "count", replace(tools["count"], timeout_ms=STEP_MS))
    time, begun = limited.time, limited.time.now
    started: list[int] = []
    most = 0
    while time.now < begun + 2 * STEP_MS:
        answer = stack.call("count", {"upto": 3})
        if answer.status == 200:
            started.append(time.now)
            stack.cancel(answer.result["taskId"])
        else:
            assert (answer.status, answer.code) == TOO_MANY
            time.now += 1000 * int(answer.headers["Retry-After"])
        most = max(most, sum(at + STEP_MS > time.now for at in started))
    assert most == 5
    assert len(started) == 10


def test_whoever_waits_for_its_steps_to_end_may_go_on(limited: Limited) -> None:
    stack = limited.serve(max_open_tasks=1)
    entry = stack.catalogue.tools["count"]
    stack.cancel(stack.created("count", {"upto": 3}))
    limited.time.now += entry.timeout_ms + SILENCE_MARGIN_MS
    stack.created("count", {"upto": 3})
