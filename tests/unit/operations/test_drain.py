"""`make drain`: the running tasks of a tool end, however many there are, whoever can end them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from operations.deployed_stack import NoStack
from operations.drain import BATCH, LAST_SECONDS, Drain, drain_tools
from tests.unit.operations.removed_stack import BEGAN, Account, machine


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = BEGAN

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def read(self) -> datetime:
        return self.now


def drain(account: Account, seconds: float = 60, *, all_of_them: bool = True) -> int:
    clock = Clock()
    drain = Drain(account, "sweep", "tool", clock.sleep, clock.read)
    return drain.run(list(account.running), seconds, all_of_them=all_of_them)


def test_tasks_are_ended_by_the_function_that_may(capsys: pytest.CaptureFixture[str]) -> None:
    """It writes why to their rows, and the end to the audit log."""
    account = Account()
    arn = account.run("ask", "c1-1", "c1-2")
    assert drain(account) == 0
    (call,) = account.calls
    assert call == (
        "end tasks",
        {"stateMachine": arn, "executions": ["c1-1", "c1-2"], "removed": "tool", "undo": True},
    )
    told = "  2 executions run (notes-ask: 2); 60 s are left for undo\n"
    assert capsys.readouterr().out == told


def test_many_are_ended_in_batches() -> None:
    account = Account()
    account.run("ask", *(f"c1-{n}" for n in range(2 * BATCH + 1)))
    assert drain(account) == 0
    assert [len(request["executions"]) for _, request in account.calls] == [BATCH, BATCH, 1]


def test_what_undoes_is_waited_for_and_stopped_when_the_time_is_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    account = Account(undo={"c1-1"})
    account.run("ask", "c1-1")
    assert drain(account, seconds=60) == 0
    requests = [request for _, request in account.calls]
    assert [each["undo"] for each in requests].count(False) == 1
    assert not requests[-1]["undo"]
    assert requests[-1]["executions"] == ["c1-1-undo"]
    told = "1 executions run (notes-ask: 1), 1 of them to undo what tasks did; 58 s are left"
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("sweeper", ["old", "gone", "failing"])
def test_where_no_function_ends_tasks_their_executions_are_stopped(sweeper: str) -> None:
    """A half-deleted stack, one of an earlier version, and one that is broken."""
    account = Account(sweeper=sweeper)
    account.run("ask", "c1-1", "c1-2")
    assert drain(account) == 0
    assert account.calls == [("stop_execution", "c1-1"), ("stop_execution", "c1-2")]


def test_a_busy_function_is_called_again() -> None:
    account = Account(sweeper="busy")
    account.run("ask", "c1-1")
    assert drain(account) == 0
    assert [what for what, _ in account.calls] == ["end tasks"]


def test_calls_that_go_on_do_not_keep_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a tool may still be called, there may always be tasks: they are ended as long as older
    ones run, and not waited for."""
    account = Account(arrivals=[f"c1-new-{n}" for n in range(1000)])
    account.run("ask", "c1-1")
    assert drain(account, all_of_them=False) == 0
    assert len(account.arrivals) > 990


def test_it_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account()
    account.run("ask", "c1-1")
    monkeypatch.setattr(account, "invoke", lambda **_: {"Payload": _Nothing()})
    clock = Clock()
    assert Drain(account, "sweep", "tool", clock.sleep, clock.read).run(
        list(account.running), 10, all_of_them=True
    )
    assert (clock.now - BEGAN).total_seconds() <= 10 + LAST_SECONDS + 5


class _Nothing:
    def read(self) -> bytes:
        return b'{"left": 1}'


def test_a_tool_that_the_stack_has_is_drained_and_no_other() -> None:
    account = Account()
    account.run("ask", "c1-1")
    account.run("other", "c1-2")
    machines = {name: machine(f"notes-{name}") for name in ("ask", "other", "old")}
    machines["old"]["Status"] = "DELETE_COMPLETE"
    account.template = {"Resources": machines}
    assert drain_tools(account, "notes", ["ask"], 60) == 0
    (request,) = (request for what, request in account.calls if what == "end tasks")
    assert request["executions"] == ["c1-1"]
    with pytest.raises(NoStack, match="the stack notes has no state machine for: old, typo"):
        drain_tools(account, "notes", ["ask", "old", "typo"], 60)
