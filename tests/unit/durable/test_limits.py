"""Limits of time, of number and of patience: each with a clear error, and nothing lost."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mcp_tasks import AsyncTaskContext, Retry, StepFailed, TaskContext, tool
from mcp_tasks.durable.time_limit import run_limited
from mcp_tasks.testing import Crash, LocalTask, start_task
from mcp_tasks.testing.memory import MemoryJournalTable
from tests.unit.support.aws import error_response

SHORT = timedelta(milliseconds=50)


def of(body: Any, **options: Any) -> LocalTask:
    """A task of a tool with this body."""

    @tool(task="required", ttl=timedelta(days=1), **options)
    def limited(task: TaskContext) -> str:
        """A tool."""
        return str(body(task))

    return start_task(limited)


def text(task: LocalTask) -> str:
    """What the task's tool returned."""
    assert task.result is not None, (task.error, task.cause)
    found: str = task.result["content"][0]["text"]
    return found


# time


def spin() -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        pass


async def doze() -> None:
    await asyncio.sleep(10)


@pytest.mark.parametrize("function", [spin, doze])
def test_a_step_that_takes_too_long_fails(function: Any) -> None:
    def body(task: TaskContext) -> str:
        try:
            task.step(function, timeout=SHORT)
        except StepFailed as failed:
            return f"{failed.name}: {failed.message}"
        return "in time"

    assert text(of(body)) == "TimeoutError: The step ran for more than 0.05 s"


def test_a_step_in_time_is_not_disturbed() -> None:
    async def quick() -> int:
        return 1

    assert text(of(lambda task: task.step(quick, timeout=timedelta(seconds=5)))) == "1"
    assert asyncio.run(run_limited(lambda: 2, timedelta(seconds=5))) == 2


@pytest.mark.parametrize("timeout", [timedelta(minutes=2), timedelta(0)])
def test_a_step_s_timeout_is_within_its_run_s(timeout: timedelta) -> None:
    task = of(lambda task: task.step(time.time, timeout=timeout), timeout=timedelta(minutes=1))
    assert task.error == "ValueError"
    assert "a step's timeout is at most 59 s here" in task.cause


@pytest.mark.parametrize(
    ("until", "cause"),
    [
        (timedelta(days=2), "cannot wait for longer than its tool's ttl, 1 day"),
        (datetime(2030, 6, 1, tzinfo=UTC), "cannot wait for longer than its tool's ttl, 1 day"),
        (datetime(2030, 1, 1), "a datetime to wait for needs a time zone"),  # noqa: DTZ001
    ],
)
def test_a_sleep_is_within_the_tool_s_ttl(until: Any, cause: str) -> None:
    task = of(lambda task: task.sleep(until))
    assert task.error == "ValueError"
    assert cause in task.cause


def test_a_sleep_until_a_time_is_not_too_short() -> None:
    task = of(lambda task: task.sleep(datetime(2030, 1, 1, 0, 0, 30, 500_000, tzinfo=UTC)))
    assert task.waited == timedelta(seconds=31)


def test_a_check_is_not_called_all_the_time() -> None:
    task = of(
        lambda task: task.wait_for(
            lambda: True, every=timedelta(milliseconds=1), until=timedelta(hours=1)
        )
    )
    assert "every is at least a second" in task.cause


# maps


def half(number: int) -> float:
    return 1 / number


def test_an_empty_map_is_done_at_once() -> None:
    task = of(lambda task: task.map(half, []))
    assert (text(task), task.runs) == ("[]", 1)


def test_a_map_has_a_limit() -> None:
    assert "at most 10000 items" in of(lambda task: task.map(half, range(10_001))).cause


def test_more_failures_than_tolerated_are_raised() -> None:
    task = of(lambda task: task.map(half, [1, 0, 0], tolerate=1))
    assert (task.error, task.cause) == (
        "StepFailed",
        "half failed: ZeroDivisionError: division by zero",
    )
    tolerated = of(lambda task: task.map(half, [1, 0, 2], tolerate=1))
    assert "1.0" in text(tolerated)
    assert "StepFailed" in text(tolerated)


def test_items_are_tried_again() -> None:
    retry = Retry(attempts=3, delay=timedelta(minutes=1), backoff=1, jitter=False)
    task = of(lambda task: task.map(half, [1, 0], tolerate=1, retry=retry))
    assert task.executed.count("half") == 1 + 3
    assert task.waited >= timedelta(minutes=2)


def test_an_item_that_kills_its_function_each_time_fails_the_map_and_no_other_item() -> None:
    def deadly(number: int) -> int:
        if number == 2:
            raise Crash
        return number

    task = of(lambda task: task.map(deadly, range(6), concurrency=2))
    assert (task.error, task.cause) == (
        "StepFailed",
        "deadly failed: Killed: its function was killed again and again",
    )
    assert task.executed.count("deadly") < 20


def test_lanes_that_were_killed_once_go_on() -> None:
    left = [1]

    def deadly(number: int) -> int:
        if left and number == 2:
            left.pop()
            raise Crash
        return number

    assert text(of(lambda task: task.map(deadly, range(4), concurrency=2))) == "[0, 1, 2, 3]"


def test_functions_run_side_by_side() -> None:
    task = of(lambda task: task.gather(partial(half, 1), partial(half, 2)))
    assert text(task) == "[1.0, 0.5]"


def test_a_coroutine_gathers_functions() -> None:
    @tool(task="required")
    async def both(task: AsyncTaskContext) -> list[float]:
        """Run two functions."""
        return await task.gather(partial(half, 4), partial(half, 2))

    result = start_task(both).result
    assert result is not None
    assert result["structuredContent"] == [0.25, 0.5]


# policies


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"backoff": 0.5}, {"delay": timedelta(seconds=-1)}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Retry: "):
        Retry(**wrong)


def test_delays_grow_up_to_the_longest() -> None:
    retry = Retry(jitter=False)
    assert [retry.delay_ms(n) for n in (1, 2, 3, 50, 10_000)] == [
        *(1_000, 2_000, 4_000),
        *(300_000, 300_000),
    ]
    jittered = [Retry().delay_ms(5) for _ in range(100)]
    assert max(jittered) <= 16_000
    assert len(set(jittered)) > 50


def test_only_some_exceptions_are_tried_again() -> None:
    retry = Retry(attempts=3, only=(ConnectionError,))
    assert of(lambda task: task.step(half, 0, retry=retry)).executed == ["half"]


# the journal


class Throttled(MemoryJournalTable):
    """A journal that DynamoDB throttles."""

    def write(self, *given: Any) -> Any:
        raise ClientError(error_response("ThrottlingException"), "PutItem")


def test_a_throttled_journal_has_the_state_retried_and_no_tool_catches_it() -> None:
    @tool(task="required")
    def careful(task: TaskContext) -> str:
        """A tool that catches everything."""
        try:
            return str(task.step(half, 1))
        except Exception:
            return "caught"

    task = start_task(careful, journal_table=Throttled())
    assert task.error == "McpTasksTransientError"
