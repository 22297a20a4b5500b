"""The task's state machine against the specification's diagram (tasks.md, "Task Status")."""

from __future__ import annotations

from typing import Final

import pytest

from mcp_tasks.tasks.state import TRANSITIONS, Status, sources

TERMINAL: Final = {"completed", "failed", "cancelled"}

DIAGRAM: Final = {
    ("working", "input_required"),
    ("working", "completed"),
    ("working", "failed"),
    ("working", "cancelled"),
    ("input_required", "working"),
    ("input_required", "completed"),
    ("input_required", "failed"),
    ("input_required", "cancelled"),
}
"""Every arrow between two states; "terminal" stands for its three states."""


def test_the_states_have_the_specifications_names() -> None:
    assert {status.value for status in Status} == {"working", "input_required", *TERMINAL}


@pytest.mark.parametrize("origin", Status)
@pytest.mark.parametrize("target", Status)
def test_a_state_leads_where_the_diagram_leads(origin: Status, target: Status) -> None:
    """A running state may also be written again: its message or its questions change."""
    rewritten = origin is target and origin.value not in TERMINAL
    expected = (origin.value, target.value) in DIAGRAM or rewritten
    assert (target in TRANSITIONS[origin]) is expected


@pytest.mark.parametrize("status", Status)
def test_a_terminal_state_leads_nowhere(status: Status) -> None:
    assert status.terminal is (status.value in TERMINAL)
    assert status.terminal is not bool(TRANSITIONS[status])


@pytest.mark.parametrize("target", Status)
def test_sources_are_the_transitions_read_backwards(target: Status) -> None:
    """`rows` makes its conditions of these."""
    assert set(sources(target)) == {s for s in Status if target in TRANSITIONS[s]}
    assert len(sources(target)) == len(set(sources(target)))


@pytest.mark.parametrize("target", Status)
def test_nothing_is_written_over_a_terminal_state(target: Status) -> None:
    assert not any(source.terminal for source in sources(target))
