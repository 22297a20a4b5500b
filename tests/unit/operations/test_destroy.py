"""`make destroy`: it says what stays, ends what would keep the stack, and asks before."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from operations.deployed_stack import DeployedStack, NotDeployed
from operations.destroy import destroy
from tests.unit.operations.removed_stack import PREFIX, Account, machine


@pytest.fixture
def account() -> Account:
    """A stack with two tools, one of which has a task."""
    account = Account(running={PREFIX + "notes-other": {}})
    account.run("ask", "c1-1")
    account.template = {
        "Resources": {
            "Ask": machine("notes-ask"),
            "Other": machine("notes-other"),
            "Own": {"Type": "AWS::Events::Rule", "PhysicalId": "notes|own"},
            "Bucket": {"Type": "AWS::S3::Bucket", "PhysicalId": "b", "DeletionPolicy": "Retain"},
            "Tasks": {"Type": "AWS::DynamoDB::Table", "PhysicalId": "tasks"},
        }
    }
    account.rules = {"own": ["t"]}
    return account


def run(account: Account, **options: Any) -> int:
    chosen = {"confirm": "notes", "rules": None, "seconds": 60, **options}
    return destroy(DeployedStack("notes", account), argparse.Namespace(**chosen))


def changed(account: Account) -> list[str]:
    return [what for what, _ in account.calls]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.drain.PAUSE", 0)


def test_tasks_end_before_their_state_machines_are_deleted(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(account) == 0
    assert changed(account) == [
        "end tasks",
        *("delete_state_machine", "delete_state_machine"),
        "termination protection",
    ]
    _, request = account.calls[0]
    assert (request["removed"], request["undo"]) == ("server", True)
    assert account.calls[-1] == ("termination protection", False)
    out = capsys.readouterr().out
    assert "the stack notes has 1 running executions, which are ended first" in out
    assert "stays, and costs what it holds: AWS::S3::Bucket b\n" in out


def test_what_is_called_meanwhile_is_ended_when_no_more_can_begin(account: Account) -> None:
    account.arrivals = [f"c1-{n}" for n in range(2, 30)]
    assert run(account) == 0
    assert not any(account.running.values())
    deleted = changed(account).index("delete_state_machine")
    assert "end tasks" in changed(account)[deleted:]


def test_a_stack_that_is_being_deleted_already_gets_no_update(account: Account) -> None:
    """CloudFormation would refuse it. The executions that it waits for are ended."""
    account.protects_stack = False
    assert run(account) == 0
    assert "termination protection" not in changed(account)
    assert not any(account.running.values())


@pytest.mark.parametrize("given", [None, "", "note"])
def test_nothing_happens_without_the_stacks_name(
    account: Account, given: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(account, confirm=given, rules="remove") == 1
    assert account.calls == []
    assert "add confirm=notes" in capsys.readouterr().err


def test_rules_of_others_are_named_and_removed_when_told(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    account.rules["theirs"] = ["t1", "t2"]
    assert run(account) == 1
    assert account.calls == []
    err = capsys.readouterr().err
    assert "the event bus notes has rules that are not the stack's" in err
    assert "\n    theirs\n" in err
    assert "own" not in err.splitlines()
    assert run(account, rules="remove") == 0
    assert list(account.rules) == ["own"]


def test_a_protected_table_that_would_go_is_named(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    account.protected = {"tasks"}
    assert run(account) == 1
    assert account.calls == []
    assert "deletion protection" in capsys.readouterr().err
    account.template["Resources"]["Tasks"]["DeletionPolicy"] = "Retain"
    assert run(account) == 0, "it stays"


def test_a_stack_whose_tasks_do_not_end_is_not_deleted(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.drain.LAST_SECONDS", 0)
    monkeypatch.setattr(account, "_list_executions", _always_one)
    assert run(account, seconds=0) == 1
    assert "termination protection" not in changed(account)
    assert "still run, and the stack was not deleted" in capsys.readouterr().err


def _always_one(first: bool, **_: Any) -> dict[str, Any]:
    from tests.unit.operations.removed_stack import BEGAN

    return {"executions": [{"name": "c1-1", "startDate": BEGAN}] if first else []}


def test_there_is_nothing_to_do_without_a_stack() -> None:
    with pytest.raises(NotDeployed, match="no stack notes"):
        run(Account())
