"""Durable tools from call to result, all functions in one process (see cloud.py).

moto does not end an execution that is stopped while it waits for a token; how a cancelled task is
undone is seen in tests/integration/test_durable_functions.py.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from moto import mock_aws

from mcp_tasks.crash_report import without_reference
from mcp_tasks.workflows import run_event, tool_run
from tests.paths import ROOT
from tests.unit.support.cloud import Cloud

TOOLS: Final = ROOT / "tests" / "integration" / "tools"


@pytest.fixture
def cloud(no_account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    """A deployment of the durable tools."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("durable.py", "subtasks.py"):
        shutil.copy(TOOLS / name, tools)
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield Cloud(monkeypatch, tmp_path, tools)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The file that steps write to."""
    return tmp_path / "ledger"


def noted(ledger: Path) -> Counter[str]:
    """How often each line was written."""
    return Counter(ledger.read_text().splitlines())


def text(task: dict[str, Any]) -> str:
    """A task's result."""
    found: str = task["result"]["content"][0]["text"]
    return found


class Killed:
    """Kills runs of a worker: the first ones, before they begin or when they have ended."""

    def __init__(self, cloud: Cloud, tool: str, error: str, times: int = 1) -> None:
        self._name, self._worker = f"worker-{tool}", cloud._functions[f"worker-{tool}"]
        self._error, self.left = error, times
        cloud._functions[self._name] = self

    def __call__(self, event: Any, context: Any) -> Any:
        output = self._worker(event, context)
        if self.left and not event.get("lane"):
            self.left -= 1
            raise type(self._error, (Exception,), {})
        return output


ERRORS: Final = (
    *("Runtime.ExitError", "Runtime.OutOfMemory", "Sandbox.Timedout", "Lambda.Unknown"),
)


@pytest.mark.parametrize("error", ERRORS)
def test_a_tool_that_was_killed_goes_on_where_it_was(
    cloud: Cloud, ledger: Path, error: str
) -> None:
    Killed(cloud, "march", error)
    task = cloud.settled(cloud.start("march", {"ledger": str(ledger), "steps": 1}))
    assert (task["status"], text(task)) == ("completed", "0")
    assert noted(ledger) == {"run": 2, "step 0": 1}


def test_a_tool_that_is_killed_again_and_again_fails(
    cloud: Cloud, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_event, "MAX_CRASHES", 1)
    Killed(cloud, "march", "Runtime.ExitError", times=2)
    task = cloud.settled(cloud.start("march", {"ledger": str(ledger), "steps": 1}))
    assert task["status"] == "failed"
    assert task["error"]["message"] == "The tool failed: Runtime.ExitError"


def test_a_tool_without_durable_operations_is_not_run_again(cloud: Cloud, ledger: Path) -> None:
    killed = Killed(cloud, "plain", "Runtime.ExitError")
    task = cloud.settled(cloud.start("plain", {"ledger": str(ledger)}))
    assert task["status"] == "failed"
    assert task["error"]["message"] == "The tool failed: Runtime.ExitError"
    assert (noted(ledger), killed.left) == ({"plain": 1}, 0)


def test_a_map_goes_through_its_lanes(cloud: Cloud, ledger: Path) -> None:
    given = {"ledger": str(ledger), "numbers": [1, 2, 3, -1], "concurrency": 2}
    task = cloud.settled(cloud.start("squares", given))
    assert task["result"]["structuredContent"] == [
        *("1", "4", "9"),
        "square failed: ValueError: negative",
    ]
    assert set(noted(ledger).values()) == {1}


def test_a_long_task_goes_on_in_another_execution(
    cloud: Cloud, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_run, "MAX_EVENTS", 20)
    given = {"ledger": str(ledger), "company": "Acme"}
    task_id = cloud.start("onboard", given)
    until(lambda: bool(cloud.row(task_id).outstanding) or cloud.row(task_id).status.terminal)
    cloud.answer(task_id, yes=True)
    until(lambda: cloud.row(task_id).status.terminal)
    assert cloud.get(task_id)["status"] == "completed"
    assert cloud.row(task_id).execution > 1
    assert noted(ledger)["look up Acme"] == 1


def until(reached: Callable[[], bool]) -> None:
    """Wait for something that other threads do."""
    end = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def test_a_tree_of_subtasks_goes_through_its_state_machines(cloud: Cloud, ledger: Path) -> None:
    """Create subtasks, Subtasks, Call tool, and what follows when each has ended."""
    given = {"ledger": str(ledger), "chapters": [["Aa", "Ab", "Ac"], ["Ba", "B!"], ["Ca"]]}
    task_id = cloud.start("write_book", given)
    until(lambda: cloud.row(task_id).status.terminal)
    task = cloud.get(task_id)
    assert task["status"] == "completed", (task, cloud.errors)
    assert task["result"]["structuredContent"] == [6, "B! is too loud", 2]
    assert len(task["childTaskIds"]) == 3
    for child in map(cloud.get, task["childTaskIds"]):
        assert child["parentTaskId"] == task_id
        assert child["status"] == "completed"
    assert set(noted(ledger).values()) == {1}
    assert cloud.row(task["childTaskIds"][0]).reconcile_at is None


def test_a_call_returns_and_raises_as_its_tool_does(cloud: Cloud, ledger: Path) -> None:
    for title, wanted in {
        "hello": "5 letters",
        "no?": "failed: The tool failed: ValueError",
    }.items():
        task_id = cloud.start("write_letter", {"ledger": str(ledger), "title": title})
        until(lambda task_id=task_id: cloud.row(task_id).status.terminal)  # type: ignore[misc]
        assert without_reference(text(cloud.get(task_id))) == wanted
