"""A changed server is deployed while tasks of the one before it run, and wait.

Step Functions user guide, "UpdateStateMachine": "Running executions will continue to use the
previous definition"; the functions' code is replaced at once. So a task that was started before
goes the way that was laid out then, and what runs on it is the new code.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from infra.local.deployment import LocalStack, deploy
from infra.local.emulator import Emulator
from infra.local.environment import ROOT
from tests.integration.client import Client, accept
from tests.limits import RAISED

VERSIONS = Path(__file__).with_name("versions")
CELL = {"cell": "c5", **RAISED}
WAITS_S = 3600
"""Longer than the test; then it is cancelled."""


def deployed(emulator: Emulator, version: str) -> LocalStack:
    tools = ROOT / ".local" / "test" / "versions"
    shutil.rmtree(tools, ignore_errors=True)
    shutil.copytree(VERSIONS / version, tools)
    return deploy(emulator, tools, "mcp-redeployed", CELL)


@pytest.fixture(scope="module")
def tasks(emulator: Emulator) -> dict[str, str]:
    """Tasks of the first version, by what they do while the second is deployed."""
    client = Client(deployed(emulator, "first").url)
    begun = {
        "asked": client.start("review", text="prose"),
        "asked something else": client.start("rework", text="prose"),
        "asked by its workflow": client.start("relay", wait=0, ask=True),
        "on a timer": client.start("relay", wait=WAITS_S, ask=False),
    }
    for doing, key in [
        ("asked", "verdict"),
        ("asked something else", "marks"),
        ("asked by its workflow", "go"),
    ]:
        client.until_asked(begun[doing], key)
    client.until(begun["on a timer"], lambda task: "statusMessage" in task)
    return begun


@pytest.fixture(scope="module")
def client(emulator: Emulator, tasks: dict[str, str]) -> Client:
    """A client of the second version."""
    return Client(deployed(emulator, "second").url)


def structured(task: dict[str, Any]) -> dict[str, Any]:
    assert task["status"] == "completed", task
    found: dict[str, Any] = task["result"]["structuredContent"]
    return found


def text(task: dict[str, Any]) -> str:
    assert task["status"] == "completed", task
    found: str = task["result"]["content"][0]["text"]
    return found


def test_a_function_that_waited_for_an_answer_goes_on_as_it_is_now(
    client: Client, tasks: dict[str, str]
) -> None:
    (key,) = client.get(tasks["asked"])["inputRequests"]
    client.update(tasks["asked"], {key: accept(good=True)})
    assert text(client.end(tasks["asked"])) == "second: prose is good"


def test_a_function_that_asks_something_else_now_asks_again(
    client: Client, tasks: dict[str, str]
) -> None:
    """The answer to the old question does not fit the new one."""
    task_id = tasks["asked something else"]
    (old,) = client.get(task_id)["inputRequests"]
    client.update(task_id, {old: accept(marks=3)})
    task = client.until(task_id, lambda task: set(task.get("inputRequests", {})) - {old} != set())
    ((new, asked),) = task["inputRequests"].items()
    assert asked["params"]["message"] == "How many stars?"
    client.update(task_id, {new: accept(stars=5)})
    assert text(client.end(task_id)) == "second: 5 stars for prose"


def test_a_workflow_goes_the_way_that_it_began_and_its_steps_are_the_new_ones(
    client: Client, tasks: dict[str, str]
) -> None:
    task_id = tasks["asked by its workflow"]
    (key,) = client.get(task_id)["inputRequests"]
    client.update(task_id, {key: accept(yes=True)})
    assert structured(client.end(task_id)) == {"started": "first", "arrived": "second"}


def test_a_timer_runs_through_a_redeploy_and_its_task_can_be_cancelled(
    client: Client, tasks: dict[str, str], aws: Any
) -> None:
    task_id = tasks["on a timer"]
    machine = next(
        machine["stateMachineArn"]
        for machine in aws("stepfunctions").list_state_machines()["stateMachines"]
        if machine["name"] == "mcp-redeployed-relay"
    )
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{task_id}"

    def status() -> str:
        found: str = aws("stepfunctions").describe_execution(executionArn=execution)["status"]
        return found

    assert status() == "RUNNING"
    client.cancel(task_id)
    assert client.get(task_id)["status"] == "cancelled"
    deadline = time.monotonic() + 10
    while status() == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_new_tasks_go_the_new_way(client: Client) -> None:
    task = client.end(client.start("relay", wait=0, ask=False))
    assert structured(task) == {"started": "second", "arrived": "second", "rested": "second"}
