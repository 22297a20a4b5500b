"""Steps: once, kept, tried again, and undone; whatever kills the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_tasks import (
    AsyncTaskContext,
    NeedsTask,
    Retry,
    StepFailed,
    TaskContext,
    ToolError,
    WaitTimedOut,
    tool,
)
from mcp_tasks.testing import crash_everywhere, start_task


class Yes(BaseModel):
    """A yes or a no."""

    yes: bool


ACCEPTED = {"answer": {"action": "accept", "content": {"yes": True}}}


@dataclass
class Account:
    """What a step returns."""

    number: int
    owner: str


@dataclass
class Bank:
    """A service that takes idempotency tokens."""

    accounts: dict[str, str] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)

    def state(self) -> Any:
        """What was done; and forget it."""
        found = (sorted(self.accounts.values()), sorted(set(self.closed)))
        self.accounts, self.closed = {}, []
        return found


BANK = Bank()
TASK: list[TaskContext | AsyncTaskContext] = []


def open_account(owner: str) -> Account:
    BANK.accounts[TASK[-1].step_token] = owner
    return Account(len(BANK.accounts), owner)


def close_account(account: Account) -> None:
    BANK.closed.append(account.owner)


async def look_up(name: str) -> str:
    return name.upper()


def letter(account: Account, number: int) -> str:
    return f"{account.owner}: {number}"


@tool(task="required", ttl=timedelta(days=30))
async def onboard(task: AsyncTaskContext, owner: str, refuse: bool = False) -> list[str]:
    """Do some of everything."""
    TASK.append(task)
    name = await task.step(look_up, owner)
    account = await task.step(open_account, name, undo=close_account)
    await task.sleep(timedelta(days=2))
    if not (await task.ask("Sure?", Yes)).yes:
        raise ToolError("not sure")
    letters = await task.map(partial(letter, account), [1, 2, 3], concurrency=2)
    if refuse:
        raise ToolError("refused")
    return letters


def test_a_tool_goes_through_all_its_operations() -> None:
    task = start_task(onboard, {"owner": "ada"})
    assert task.status == "input_required"
    assert task.waited >= timedelta(days=2)
    task.answer(ACCEPTED)
    assert task.status == "completed"
    assert task.result is not None
    assert task.result["structuredContent"] == ["ADA: 1", "ADA: 2", "ADA: 3"]
    assert task.executed == ["look_up", "open_account", "letter", "letter", "letter"]


@pytest.mark.parametrize("refuse", [False, True])
def test_a_tool_survives_a_crash_at_every_moment(refuse: bool) -> None:
    crashes = crash_everywhere(
        onboard, {"owner": "ada", "refuse": refuse}, answers=ACCEPTED, effects=BANK.state
    )
    assert crashes > 20


def test_what_was_done_is_undone_when_the_tool_fails() -> None:
    task = start_task(onboard, {"owner": "ada", "refuse": True}, answers=ACCEPTED)
    assert task.result == {"content": [{"type": "text", "text": "refused"}], "isError": True}
    assert task.executed[-1] == "close_account"
    assert not task.to_undo


def test_what_was_done_is_undone_when_the_task_is_cancelled() -> None:
    task = start_task(onboard, {"owner": "ada"}).cancel()
    assert task.status == "cancelled"
    assert task.executed == ["look_up", "open_account", "close_account"]
    assert (task.to_undo, task.not_undone) == (False, [])


def fails() -> str:
    raise ValueError("no")


def refuses() -> str:
    raise ToolError("I will not")


@tool(task="required")
def try_hard(task: TaskContext, attempts: int, refused: bool = False) -> str:
    """Try something that fails."""
    retry = Retry(attempts=attempts, delay=timedelta(minutes=1), backoff=1, jitter=False)
    try:
        return task.step(refuses if refused else fails, retry=retry)
    except StepFailed as failed:
        return f"{failed}"


def test_a_step_is_tried_again_and_nothing_runs_meanwhile() -> None:
    task = start_task(try_hard, {"attempts": 4})
    assert text(task.result) == "fails failed: ValueError: no"
    assert task.executed == ["fails"] * 4
    assert task.waited == timedelta(minutes=3)
    assert task.runs == 4


def test_a_tool_error_is_not_tried_again() -> None:
    task = start_task(try_hard, {"attempts": 4, "refused": True})
    assert (text(task.result), task.executed) == ("I will not", ["refuses"])


def test_retries_survive_crashes() -> None:
    assert crash_everywhere(try_hard, {"attempts": 3}) == 2 * 4 - 1


SEEN: list[int] = []


def look(finds: int) -> str | None:
    SEEN.append(1)
    return "here" if len(SEEN) >= finds else None


@tool(task="required", ttl=timedelta(hours=3))
def wait(task: TaskContext, finds: int) -> str:
    """Wait for something outside."""
    try:
        return (
            task.wait_for(
                partial(look, finds), every=timedelta(minutes=10), until=timedelta(hours=1)
            )
            or ""
        )
    except WaitTimedOut:
        return "too late"


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def test_a_check_is_called_until_it_is_true() -> None:
    task = start_task(wait, {"finds": 4})
    assert text(task.result) == "here"
    assert (len(SEEN), task.waited) == (4, timedelta(minutes=30))


def test_a_check_that_is_never_true_ends_in_time() -> None:
    task = start_task(wait, {"finds": 100})
    assert text(task.result) == "too late"
    assert task.waited == timedelta(hours=1)


@tool(task="required")
def nested(task: TaskContext, what: str) -> str:
    """Use an operation where there is none."""

    def inside() -> str:
        if what == "ask":
            task.ask("Sure?", Yes)
        elif what == "sleep":
            task.sleep(timedelta(seconds=1))
        elif what == "random":
            task.random()
        else:
            task.step(fails)
        return ""

    try:
        return task.step(inside)
    except StepFailed as failed:
        return failed.name


@pytest.mark.parametrize("what", ["ask", "sleep", "random", "step"])
def test_a_step_has_no_operations_of_its_own(what: str) -> None:
    assert text(start_task(nested, {"what": what}).result) == NeedsTask.__name__


@pytest.mark.parametrize("use", [lambda task: task.sleep(timedelta(1)), lambda task: task.uuid()])
def test_there_are_no_operations_without_a_task(use: Any) -> None:
    with pytest.raises(NeedsTask, match="needs a task of its own"):
        use(TaskContext())


def not_json() -> object:
    return object()


def undeclared():  # type: ignore[no-untyped-def]
    return {"when": timedelta(1)}


@tool(task="required")
def keep(task: TaskContext, typed: bool) -> str:
    """Keep what cannot be kept."""
    try:
        task.step(not_json if typed else undeclared)
    except StepFailed as failed:
        return failed.message
    return "kept"


def test_a_result_that_cannot_be_kept_is_a_failure_that_says_so() -> None:
    message = text(start_task(keep, {"typed": False}).result)
    assert "which JSON does not keep" in message
    assert "declare the type" in message
    assert text(start_task(keep, {"typed": True}).result) != "kept"


@tool(task="required")
def long_result(task: TaskContext) -> int:
    """Keep a large value."""
    large = task.step(make_large)
    task.sleep(timedelta(seconds=1))
    return len(large)


def make_large() -> str:
    return "x" * 1_000_000


def test_a_large_result_is_kept() -> None:
    task = start_task(long_result)
    assert text(task.result) == "1000000"
    assert task.executed == ["make_large"]


@tool(task="required", timeout=timedelta(minutes=10))
def march(task: TaskContext, steps: int) -> int:
    """Work for longer than a run may take."""
    return sum(task.step(slow, number) for number in range(steps))


def slow(number: int) -> int:
    return number


def test_a_tool_goes_on_in_another_run_when_its_time_is_nearly_up() -> None:
    begun: list[Any] = []

    def takes_two_minutes(number: int) -> int:
        clock = begun[0].clock
        clock.wait_until(clock() + 120_000)
        return number

    class Later(dict[Any, Any]):
        pass

    task = start_task(march, {"steps": 0})
    begun.append(task)
    task.arguments = {"steps": 20}
    task.steps = {slow: takes_two_minutes}
    task.status = "working"
    task._go_on()
    assert text(task.result) == str(sum(range(20)))
    assert task.executed == ["slow"] * 20
    assert task.runs > 5


def text(result: dict[str, Any] | None) -> str:
    """A result's text."""
    assert result is not None
    found: str = result["content"][0]["text"]
    return found
