"""What a run of a tool tells its state machine to do next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_tasks.durable.run import Mode
from mcp_tasks.workflows.run_event import MAX_EVENTS
from mcp_tasks.workflows.tool_run import ToolRun

WAIT = {"wait": {"until": "2026-11-24T18:36:28Z"}}


@pytest.mark.parametrize(
    ("mode", "next_"), [(Mode.FORWARD, {"successor"}), (Mode.UNDO, {"wait", "events", "journal"})]
)
def test_what_undoes_stays_in_its_execution(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, next_: set[str]
) -> None:
    """A tool with a long history goes on in another execution, and `finish` starts it. After an
    execution that undoes, nobody starts one: what is left would never be undone."""
    monkeypatch.setattr(ToolRun, "_next", lambda *_: WAIT)
    monkeypatch.setattr(ToolRun, "_context", lambda _, task: task)
    run: Any = SimpleNamespace(mode=mode, journal=SimpleNamespace(records={}))
    tool: Any = None
    operations: Any = SimpleNamespace(run=run)
    context: Any = None
    output = ToolRun(tool, operations, lambda: None).output({"events": MAX_EVENTS}, {}, context)
    assert set(output) == next_
