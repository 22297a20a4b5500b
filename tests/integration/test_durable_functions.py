"""Durable operations on a deployed stack: what is done is kept, whatever ends the run."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.deployment import LocalStack
from mcp_tasks.crash_report import reference_in, without_reference
from mcp_tasks.registry.catalogue import PACKAGE, Catalogue
from mcp_tasks.workflows.replay import Replayed
from operations.deployed_stack import outputs_of
from operations.replay_tasks import Records, replayed
from tests.integration.support.client import Client, accept
from tests.integration.support.stacks import INTEGRATION


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The file that steps write to."""
    return tmp_path / "ledger"


def noted(ledger: Path) -> Counter[str]:
    """How often each line was written."""
    return Counter(ledger.read_text().splitlines())


def test_a_tool_sleeps_asks_and_retries_and_each_step_runs_once(
    client: Client, ledger: Path
) -> None:
    task_id = client.start("onboard", ledger=str(ledger), company="Acme")
    key = client.until_asked(task_id, "answer")["answer"]
    client.update(task_id, {key: accept(yes=True)})
    task = client.end(task_id)

    assert task["status"] == "completed", task
    assert task["result"]["structuredContent"] == ["there, ValueError", "Acme", "12", "True"]
    lines = noted(ledger)
    assert lines["look up Acme"] == 1
    assert lines["flaky"] == 3
    assert lines["broken"] == 1
    assert lines["run"] == 5
    assert sum(line.startswith("constant") for line in lines) == 1


def test_a_tool_works_for_longer_than_its_function_may_run(client: Client, ledger: Path) -> None:
    task_id = client.start("march", ledger=str(ledger), steps=12)
    task = client.end(task_id)
    assert task["status"] == "completed", task
    assert task["result"]["structuredContent"] == sum(range(12))
    lines = noted(ledger)
    assert {line: lines[line] for line in lines if line != "run"} == {
        f"step {number}": 1 for number in range(12)
    }
    assert lines["run"] > 2


def test_a_map_runs_each_item_once_and_keeps_their_order(client: Client, ledger: Path) -> None:
    numbers = [*range(1000), -1]
    task_id = client.start("squares", ledger=str(ledger), numbers=numbers, concurrency=20)
    task = client.end(task_id, 120)
    assert task["status"] == "completed", task
    *squares, failed = task["result"]["structuredContent"]
    assert squares == [str(number * number) for number in range(1000)]
    assert failed == "square failed: ValueError: negative"
    assert set(noted(ledger).values()) == {1}


@pytest.mark.parametrize("by_signal", [False, True], ids=["its time limit", "a signal"])
def test_a_killed_step_runs_again_and_no_other(
    client: Client, ledger: Path, by_signal: bool
) -> None:
    task_id = client.start("survive", ledger=str(ledger), by_signal=by_signal)
    task = client.end(task_id)
    assert task["status"] == "completed", task
    assert task["result"]["content"] == [{"type": "text", "text": "alive"}], task["result"]
    assert noted(ledger) == {"before": 1, "killed": 2}


RELEASED = ["release car", "release hotel", "release flight", "on cancel"]


@pytest.mark.parametrize("end", ["refuse", "crash"])
def test_what_a_failing_tool_did_is_undone_last_first(
    client: Client, ledger: Path, end: str
) -> None:
    task_id = client.start("book_trip", ledger=str(ledger), end=end)
    task = client.end(task_id)
    assert ledger.read_text().splitlines()[3:] == RELEASED
    if end == "refuse":
        assert task["result"]["isError"]
        assert task["result"]["content"] == [{"type": "text", "text": "too expensive"}]
    else:
        assert without_reference(task["error"]["message"]) == "The tool failed: ValueError"
        assert reference_in(task["statusMessage"]) == task["error"]["data"]["reference"]


def test_what_a_cancelled_task_did_is_undone(client: Client, ledger: Path) -> None:
    task_id = client.start("book_trip", ledger=str(ledger))
    client.until_asked(task_id, "answer")
    client.cancel(task_id)
    assert client.get(task_id)["status"] == "cancelled"
    wait_until(lambda: len(ledger.read_text().splitlines()) >= 7)
    assert ledger.read_text().splitlines()[3:] == RELEASED


def test_what_a_sleeping_task_did_is_undone_when_it_is_cancelled_and_not_when_it_would_wake(
    client: Client, ledger: Path
) -> None:
    task_id = client.start("book_trip", ledger=str(ledger), end="sleep")
    wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) == 3)
    client.cancel(task_id)
    wait_until(lambda: len(ledger.read_text().splitlines()) >= 7)
    assert ledger.read_text().splitlines()[3:] == RELEASED


@pytest.fixture
def catalogue() -> Iterator[Catalogue]:
    """The tools of the stack, in this process."""
    before = set(sys.modules)
    yield Catalogue.discover(INTEGRATION / "tools")
    for name in [name for name in sys.modules.keys() - before if name.startswith(PACKAGE)]:
        del sys.modules[name]


def test_a_waiting_task_is_replayed_on_this_machine(
    client: Client, stack: LocalStack, aws: Any, catalogue: Catalogue, ledger: Path
) -> None:
    task_id = client.start("book_trip", ledger=str(ledger))
    client.until_asked(task_id, "answer")
    records = Records(outputs_of(aws("cloudformation"), stack.name), aws)
    assert replayed(records.find(task_id), catalogue) == Replayed(4, "asks answer")
    assert task_id in [recorded.task_id for recorded in records.live()]
    lines = noted(ledger)
    client.cancel(task_id)
    wait_until(lambda: len(ledger.read_text().splitlines()) >= 7)
    assert replayed(records.find(task_id), catalogue) == Replayed(4, "asks answer")
    assert lines == {"reserve flight": 1, "reserve hotel": 1, "reserve car": 1}


def wait_until(reached: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for a condition."""
    until = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.2)
