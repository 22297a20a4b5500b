"""A changed server is deployed while tasks of the version before run and wait.

Step Functions user guide, "UpdateStateMachine": "Running executions will continue to use the
previous definition"; the functions' code is replaced at once. So a task that was started before
goes the way that was laid out then, and what runs on it is the new code.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.integration.support.aws import listed
from tests.integration.support.client import Client, accept
from tests.integration.support.redeploy import SLEEP_SECONDS, Redeployed
from tests.integration.support.stacks import Stacks


@pytest.fixture(scope="session")
def redeployed(stacks: Stacks) -> Redeployed:
    """A stack of the second version, and tasks of the first."""
    found: Redeployed = stacks["redeployed"]
    return found


@pytest.fixture
def tasks(redeployed: Redeployed) -> dict[str, str]:
    """Tasks of the first version, by what they did while the second was deployed."""
    return redeployed.tasks


@pytest.fixture
def client(redeployed: Redeployed) -> Client:
    """A client of the second version."""
    return Client(redeployed.stack.url)


def structured(task: dict[str, Any]) -> dict[str, Any]:
    assert task["status"] == "completed", task
    found: dict[str, Any] = task["result"]["structuredContent"]
    return found


def text(task: dict[str, Any]) -> str:
    assert task["status"] == "completed", task
    found: str = task["result"]["content"][0]["text"]
    return found


def test_a_function_that_waited_for_an_answer_goes_on_in_its_new_version(
    client: Client, tasks: dict[str, str]
) -> None:
    (key,) = client.get(tasks["asked"])["inputRequests"]
    client.update(tasks["asked"], {key: accept(good=True)})
    assert text(client.end(tasks["asked"])) == "second: prose is good"


def test_a_function_whose_question_has_changed_asks_again(
    client: Client, tasks: dict[str, str]
) -> None:
    """The answer to the old question is not an answer to the new one."""
    task_id = tasks["asked something else"]
    (old,) = client.get(task_id)["inputRequests"]
    client.update(task_id, {old: accept(marks=3)})
    task = client.until(task_id, lambda task: set(task.get("inputRequests", {})) - {old} != set())
    ((new, asked),) = task["inputRequests"].items()
    assert asked["params"]["message"] == "How many stars?"
    client.update(task_id, {new: accept(stars=5)})
    assert text(client.end(task_id)) == "second: 5 stars for prose"


def test_a_workflow_keeps_its_definition_and_runs_the_new_steps(
    client: Client, tasks: dict[str, str]
) -> None:
    task_id = tasks["asked by its workflow"]
    (key,) = client.get(task_id)["inputRequests"]
    client.update(task_id, {key: accept(yes=True)})
    assert structured(client.end(task_id)) == {"started": "first", "arrived": "second"}


def test_a_timer_goes_on_after_a_deployment_and_its_task_can_be_cancelled(
    client: Client, tasks: dict[str, str], aws: Any
) -> None:
    task_id = tasks["on a timer"]
    machine = next(
        machine["stateMachineArn"]
        for machine in listed(aws("stepfunctions"), "list_state_machines", "stateMachines")
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


def test_a_task_whose_tool_was_removed_fails_with_that_message(
    client: Client, redeployed: Redeployed, aws: Any
) -> None:
    """It waited for an answer, and its state machine would have waited for it."""
    task = client.get(redeployed.tasks["asked by a tool that goes"])
    message = "The server does not have the tool any more"
    assert task["status"] == "failed"
    assert task["error"] == {"code": -32603, "message": message}
    assert task["statusMessage"] == message
    machines = listed(aws("stepfunctions"), "list_state_machines", "stateMachines")
    names = {machine["name"] for machine in machines}
    assert "mcp-redeployed-relay" in names
    assert "mcp-redeployed-retire" not in names


def test_new_tasks_use_the_new_definition(client: Client) -> None:
    task = client.end(client.start("relay", wait=0, ask=False))
    assert structured(task) == {"started": "second", "arrived": "second", "rested": "second"}


def test_a_tool_that_slept_goes_on_in_its_new_version(
    client: Client, tasks: dict[str, str]
) -> None:
    """The step before the sleep is not run again."""
    assert text(client.end(tasks["asleep"], 2 * SLEEP_SECONDS)) == "first, then second"


def test_a_tool_that_takes_another_way_fails_and_says_so(
    client: Client, tasks: dict[str, str]
) -> None:
    task_id = tasks["asked on its old way"]
    (key,) = client.get(task_id)["inputRequests"]
    client.update(task_id, {key: accept(on=True)})
    task = client.end(task_id)
    assert task["status"] == "failed"
    message = task["error"]["message"]
    assert message.startswith("NonDeterminism: The tool takes another way than before")
    assert "its journal has step bake, and now it comes to step fry" in message
