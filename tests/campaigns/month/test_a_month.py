"""A task that takes a month and asks three questions, by stepping the clock.

moto interprets the workflow, whose waits wait for the stepped clock; the functions are the real
ones, made anew every day as on Lambda. The sweeper runs every few hours instead of every minute.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)

from mcp_tasks.limits import Limits
from mcp_tasks.tasks import task as task_module
from tests.unit.support.aws import Calls, refusing
from tests.unit.support.cloud import Cloud, Context

TOOLS: Final = Path(__file__).with_name("tools")
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
BEGIN: Final = time.time_ns() // 10**6
"""When moto's executions start, by the machine's clock."""
EVERY: Final = 3
"""Hours between two sweeps."""
PATIENCE: Final = 20.0
HEARD: Final = ["an owl", "nothing", "the baker"]
ANSWERED_AFTER: Final = [21, 3, 27]
"""Hours."""


@dataclass
class Clock:
    """A clock that is stepped."""

    now: int = BEGIN
    waiting: int = 0
    """How many wait for it."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def step(self, milliseconds: int) -> None:
        with self.changed:
            self.now += milliseconds
            self.changed.notify_all()

    def wait(self, seconds: int) -> None:
        """Wait, as a Wait state does."""
        with self.changed:
            until = self.now + seconds * 1000
            self.waiting += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.now >= until)
            self.waiting -= 1

    def until_waited_for(self) -> None:
        """Until the workflow waits: before that, stepping would be too early."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.waiting > 0, PATIENCE)


class LongContext(Context):
    """The sweeper's, which looks how much time it has."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@dataclass
class Month:
    """The task, and the time that passes."""

    cloud: Cloud
    clock: Clock
    calls: Calls
    task_id: str = ""
    sweeps: int = 0
    intervals: list[int] = field(default_factory=list)
    functions: tuple[str, ...] = ("ask", "finish")
    """Those that are made anew."""

    def begin(self) -> None:
        self.task_id = self.cloud.start("vigil", {"over": "the bridge"})
        self.clock.until_waited_for()

    def pass_time(self, hours: int) -> None:
        """Some hours at a time: a sweep, then a poll; new instances about every day."""
        for _ in range(0, hours, EVERY):
            if self.sweeps % (24 // EVERY) == 0:
                self._begin_anew()
            self.clock.step(EVERY * HOUR)
            self._sweep({}, LongContext())
            self.sweeps += 1
            self.intervals.append(self.cloud.get(self.task_id)["pollIntervalMs"])

    def _begin_anew(self) -> None:
        self.cloud._api = self.cloud._handler("api")
        self._sweep = self.cloud._handler("sweep")
        for name in self.functions:
            self.cloud._functions[name] = self.cloud._handler(name)

    def until_asked(self) -> None:
        """The nine days of a watch, and the question at their end."""
        self.pass_time(9 * 24)
        task = self.cloud.settled(self.task_id)
        assert task["status"] == "input_required"

    def answer(self, what: str) -> None:
        assert self.cloud.answer(self.task_id, what=what).status == 200
        self.clock.until_waited_for()

    def until_over(self) -> dict[str, Any]:
        """The last day."""
        self.pass_time(24 + EVERY)
        return self.cloud.settled(self.task_id)

    @property
    def made(self) -> Counter[str]:
        """How often AWS was called, by operation."""
        return Counter(self.calls.operations)


@pytest.fixture
def month(no_account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Month]:
    clock, calls = Clock(), Calls()

    def wait_interval(self: WaitFunction, env: Any, wait_seconds: int) -> None:
        clock.wait(wait_seconds)

    monkeypatch.setattr(WaitFunction, "_wait_interval", wait_interval)
    monkeypatch.setattr(task_module, "time", SimpleNamespace(time_ns=lambda: clock.now * 10**6))
    monkeypatch.setenv("LIMITS", Limits(polls_per_second=0).to_json())
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        cloud = Cloud(monkeypatch, tmp_path, TOOLS)
        session = SimpleNamespace(create_client=lambda service, config: calls.client(service))
        monkeypatch.setattr("mcp_tasks.aws.clients.get_session", lambda: session)
        yield Month(cloud, clock, calls)
        clock.step(100 * DAY)  # whatever still waits may end


def run(month: Month) -> dict[str, Any]:
    """The whole month."""
    month.begin()
    for what, after in zip(HEARD, ANSWERED_AFTER, strict=True):
        month.until_asked()
        month.pass_time(after)
        month.answer(what)
    return month.until_over()


def test_a_month_with_three_questions_ends_well(month: Month) -> None:
    """It costs a look every few hours, and holds nothing: each day has new instances."""
    task = run(month)
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"] == {"over": "the bridge", "heard": HEARD}
    assert 29 * DAY < month.clock.now - BEGIN < 32 * DAY

    made = month.made
    assert made["describe_execution"] <= month.sweeps
    assert made["send_task_heartbeat"] <= month.sweeps
    assert (made["start_execution"], made["send_task_success"]) == (1, 3)
    assert made["query"] == 8 * month.sweeps
    # Beyond the looks: its place; three questions, answers and tombstones; the end.
    assert made["update_item"] - made["describe_execution"] <= 2 + 3 * 3 + 1
    # Polls slow down with the task's age.
    assert max(month.intervals) == 60_000
    assert month.cloud.row(month.task_id).reconcile_at is None


def test_an_answer_whose_delivery_dies_is_delivered_by_the_sweeper(month: Month) -> None:
    month.begin()
    month.until_asked()
    month.calls.instead["send_task_success"] = refusing("stepfunctions", "ThrottlingException")
    assert month.cloud.answer(month.task_id, what="an owl").status == 503
    assert month.cloud.row(month.task_id).undelivered
    del month.calls.instead["send_task_success"]
    month.pass_time(EVERY)
    month.clock.until_waited_for()
    assert not month.cloud.row(month.task_id).asks


def test_an_end_that_nobody_hears_of_is_found_by_the_sweeper(month: Month) -> None:
    month.functions = ("ask",)
    month.cloud._functions["finish"] = lambda event, context: None
    run(month)
    month.pass_time(EVERY)
    task = month.cloud.get(month.task_id)
    assert task["result"]["structuredContent"]["heard"] == HEARD
