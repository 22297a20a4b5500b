"""A deployment that removes a tool with running tasks says so, and stops unless told."""

from __future__ import annotations

import pytest

from operations.preflight.deployment import Deployment
from operations.preflight.removed_tools import run
from tests.unit.operations.removed_stack import PREFIX, REGION, Account, machine


def template(*tools: str) -> dict[str, object]:
    return {"Resources": {tool: machine(f"notes-{tool}") for tool in tools}}


def deployment(account: Account, *wanted: str, removed: str = "") -> Deployment:
    words = frozenset(removed.split())
    return Deployment("notes", template(*wanted), account, REGION, removed=words)


@pytest.fixture
def account() -> Account:
    """The tools `ask`, with two tasks, and `idle`, with none."""
    account = Account(template=template("ask", "idle"), running={PREFIX + "notes-idle": {}})
    account.run("ask", "c1-1", "c1-2")
    return account


def test_a_tool_with_running_tasks_is_not_removed(account: Account) -> None:
    found = run(deployment(account, "idle"))
    assert found.refused
    assert "    ask: 2 running tasks\n" in found.text
    assert "\n    remove='ask'\n" in found.text
    assert account.calls == []


def test_it_is_when_told(account: Account) -> None:
    found = run(deployment(account, "idle", removed="ask"))
    assert not found.refused
    assert found.text == "the deployment removes tools: ask (2 running tasks)"


def test_the_words_to_add_are_complete(account: Account) -> None:
    account.run("idle", "c1-3")
    found = run(deployment(account, removed="idle"))
    assert found.refused
    assert "remove='ask idle'" in found.text


def test_a_tool_without_tasks_is_removed_without_words(account: Account) -> None:
    found = run(deployment(account, "ask"))
    assert not found.refused
    assert found.text == "the deployment removes tools: idle (0 running tasks)"


@pytest.mark.parametrize("removed", ["idle", "aks"])
def test_nobodys_tasks_are_ended_for_nothing(account: Account, removed: str) -> None:
    found = run(deployment(account, "ask", "idle", removed=removed))
    assert found.refused
    assert f"does not remove: {removed}" in found.text


def test_a_tool_comes_back_only_when_its_state_machine_is_gone(account: Account) -> None:
    """CreateStateMachine: StateMachineDeleting."""
    arn = account.run("again", "c1-9")
    account.status[arn] = "DELETING"
    found = run(deployment(account, "ask", "idle", "again"))
    assert found.refused
    assert "\n    make drain tool=again" in found.text
    del account.running[arn]
    assert not run(deployment(account, "ask", "idle", "again")).text


def test_a_first_deployment_and_one_that_changes_no_tool_ask_for_nothing(account: Account) -> None:
    def no_states(service: str) -> Account:
        assert service == "cloudformation"
        return account

    same = Deployment("notes", template("ask", "idle"), no_states, REGION)
    assert run(same).text == ""
    account.template = {}
    assert not run(deployment(account, "ask")).refused
