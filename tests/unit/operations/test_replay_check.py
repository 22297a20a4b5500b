"""`make replay-check` as a gate of a pipeline: its exit code."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from operations import replay_tasks
from operations.deployed_stack import NotDeployed
from tests.paths import PLATFORM_TOOLS


@pytest.fixture
def not_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account without the stack."""

    def outputs_of(_: Any, stack: str) -> dict[str, str]:
        raise NotDeployed(f"the account has no stack {stack} in this region")

    monkeypatch.setattr(replay_tasks, "outputs_of", outputs_of)
    monkeypatch.setattr(replay_tasks, "clients_of", lambda _: lambda _: None)


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    words = ["replay_tasks", "--stack", "notes", "--tools", str(PLATFORM_TOOLS), *arguments]
    monkeypatch.setattr(sys, "argv", words)
    return replay_tasks.main()


@pytest.mark.usefixtures("not_deployed")
def test_a_first_deployment_breaks_no_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch) == 0
    assert capsys.readouterr().out == (
        "the account has no stack notes in this region: there is no task that a deployment could "
        "break\n"
    )


@pytest.mark.usefixtures("not_deployed")
def test_a_task_cannot_be_replayed_from_a_stack_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "--task", "c1-0") == 1
    assert "the account has no stack notes" in capsys.readouterr().err
