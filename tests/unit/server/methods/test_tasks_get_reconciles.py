"""`tasks/get` of a task that was silent for too long: its execution is asked after, once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.exceptions import ReadTimeoutError

from mcp_tasks.deployment import Deployment
from mcp_tasks.limits import Limits
from mcp_tasks.payloads.pointer import PayloadPointer
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.tasks.questions import Ask, FormQuestion, open_ask
from mcp_tasks.tasks.reconcile_schedule import FIRST_RECONCILE_MS, SILENCE_MARGIN_MS
from mcp_tasks.tasks.state import Status
from mcp_tasks.workflows.executions import execution_arn
from tests.unit.support import rows_of_version_3 as before
from tests.unit.support.aws import refusing
from tests.unit.support.example_task import HOUR, ID, NOW
from tests.unit.support.listening import Time
from tests.unit.support.stack import ENVIRONMENT, PREFIX, Stack
from tests.unit.support.states import States

MACHINE: Final = f"{PREFIX}count"
RESULT: Final = {"content": [{"type": "text", "text": "done"}]}
ALICE: Final = "arn:aws:iam::1:user/alice"
LOOK: Final = ["get_item", "update_item", "describe_execution"]
FORM: Final = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
YES: Final = {"action": "accept", "content": {"sure": True}}


class Lost:
    """A server whose tasks' events get lost, and Step Functions as it is."""

    def __init__(self, stack: Stack, time: Time) -> None:
        self.stack, self.time = stack, time
        self.states = States()
        self.states.serve(stack.calls)
        stack.environment["LIMITS"] = Limits(polls_per_second=0).to_json()
        stack.serve()

    def created(self, started: bool = True, **options: Any) -> str:
        """A task whose execution Step Functions throttled, unless it was `started`."""
        start = self.stack.calls.instead["start_execution"]
        if not started:
            refuse = refusing("stepfunctions", "ThrottlingException")
            self.stack.calls.instead["start_execution"] = refuse
        task_id = self.stack.created("count", {"upto": 3}, **options)
        self.stack.calls.instead["start_execution"] = start
        self.stack.calls.forget()
        return task_id

    def end(self, task_id: str) -> None:
        """Its execution ends, and the event of it is lost."""
        self.states.end(execution_arn(MACHINE, task_id), RESULT)

    def poll(self, task_id: str, **options: Any) -> tuple[str, list[str]]:
        """What a poll tells, and what it calls."""
        self.stack.calls.forget()
        status = str(self.stack.task(task_id, **options)["status"])
        return status, self.stack.calls.operations

    def asked(self, task_id: str, token: str = "token") -> Ask:
        """A question of a state that waits."""
        ask = open_ask(token, {"sure": FormQuestion("Sure?", FORM)})
        self.states.wait(token)
        self.stack.deployment.task_table.ask(task_id, ask, self.time.now)
        return ask


@pytest.fixture
def lost(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Lost:
    time = Time()
    time.rule(monkeypatch)
    return Lost(stack, time)


# when


def test_a_poll_of_a_task_that_is_well_is_one_read(lost: Lost) -> None:
    """And no client of Step Functions is made: that costs more than the poll."""
    task_id = lost.created()
    lost.stack.serve()
    lost.time.now += FIRST_RECONCILE_MS - 1
    assert lost.poll(task_id) == ("working", ["get_item"])
    assert "stepfunctions" not in lost.stack.calls.clients


def test_a_task_that_never_reported_is_reconciled_soon(lost: Lost) -> None:
    task_id = lost.created()
    lost.time.now += FIRST_RECONCILE_MS
    assert lost.poll(task_id) == ("working", LOOK)


def test_a_task_may_be_silent_for_as_long_as_a_step_of_its_tool(lost: Lost) -> None:
    """Its tool's timeout, and a margin until the next step reports."""
    entry = lost.stack.catalogue.tools["count"]
    task_id = lost.created()
    lost.time.now += FIRST_RECONCILE_MS
    lost.stack.deployment.task_table.report(task_id, "half-way", lost.time.now)
    lost.time.now += entry.timeout_ms + SILENCE_MARGIN_MS - 1
    assert lost.poll(task_id) == ("working", ["get_item"])
    lost.time.now += 1
    assert lost.poll(task_id) == ("working", LOOK)


def test_of_many_polls_one_asks(lost: Lost) -> None:
    """At most once per interval, however many clients poll."""
    task_id = lost.created()
    lost.time.now += FIRST_RECONCILE_MS
    calls = [call for _ in range(20) for call in lost.poll(task_id)[1]]
    assert calls.count("describe_execution") == calls.count("update_item") == 1
    lost.time.now += HOUR // 8
    calls = [call for _ in range(20) for call in lost.poll(task_id)[1]]
    assert calls.count("describe_execution") == 1


def test_of_many_polls_at_one_moment_one_asks(lost: Lost) -> None:
    """All of them have read the row before one of them claims the look."""
    task_id = lost.created()
    lost.time.now += FIRST_RECONCILE_MS
    client = lost.stack.deployment.task_table._client
    found = client.get_item(TableName="tasks", Key={"taskId": {"S": task_id}})
    lost.stack.calls.instead["get_item"] = lambda **arguments: found
    calls = [call for _ in range(20) for call in lost.poll(task_id)[1]]
    assert calls.count("update_item") == 20
    assert calls.count("describe_execution") == 1


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED])
def test_a_poll_of_an_ended_task_is_one_read(lost: Lost, status: Status) -> None:
    """A client that reads its result does not wait for what is left to do."""
    task_id = lost.created()
    if status is Status.CANCELLED:
        lost.stack.cancel(task_id)
    else:
        lost.stack.deployment.task_table.complete(task_id, RESULT, lost.time.now)
    lost.time.now += HOUR // 2
    assert lost.poll(task_id) == (status.value, ["get_item"])


def test_another_callers_poll_does_not_reconcile_a_task(lost: Lost) -> None:
    task_id = lost.created(started=False, user_arn=ALICE)
    lost.time.now += FIRST_RECONCILE_MS
    lost.stack.calls.forget()
    answer = lost.stack.post("tasks/get", {"taskId": task_id})
    assert answer.code == -32602
    assert lost.stack.calls.operations == ["get_item"]


# what


def test_a_task_that_was_never_started_is_started_by_a_poll(lost: Lost) -> None:
    task_id = lost.created(started=False)
    lost.time.now += FIRST_RECONCILE_MS
    assert lost.poll(task_id) == ("working", [*LOOK, "start_execution", "get_item"])
    assert list(lost.states.executions) == [execution_arn(MACHINE, task_id)]


def test_a_poll_finds_an_end_that_was_not_written(lost: Lost) -> None:
    """This poll, and not the next one."""
    task_id = lost.created()
    lost.end(task_id)
    lost.time.now += FIRST_RECONCILE_MS
    task = lost.stack.task(task_id)
    assert (task["status"], task["result"]) == (
        "completed",
        {"resultType": "complete", **RESULT},
    )


def test_a_poll_sends_an_answer_that_was_stored_and_not_sent(lost: Lost) -> None:
    task_id = lost.created()
    ask = lost.asked(task_id)
    send = lost.stack.calls.instead["send_task_success"]
    lost.stack.calls.instead["send_task_success"] = refusing("stepfunctions", "Throttling")
    lost.stack.update(task_id, dict.fromkeys(ask.questions, YES))
    lost.stack.calls.instead["send_task_success"] = send
    lost.time.now += FIRST_RECONCILE_MS - 1
    lost.poll(task_id)
    assert lost.states.received == []
    lost.time.now += 1
    assert lost.poll(task_id)[0] == "working"
    assert lost.states.received == [("token", {"sure": YES})]


def test_a_poll_tells_that_nothing_is_asked_any_more(lost: Lost) -> None:
    task_id = lost.created()
    lost.asked(task_id)
    lost.states.tokens["token"] = "gone"
    assert lost.poll(task_id)[0] == "input_required"
    lost.time.now += HOUR // 2
    assert lost.poll(task_id)[0] == "working"


def test_a_poll_tells_that_a_task_cannot_be_started(lost: Lost) -> None:
    task_id = lost.created(started=False)
    refuse = refusing("stepfunctions", "StateMachineDoesNotExist")
    lost.stack.calls.instead["start_execution"] = refuse
    lost.time.now += FIRST_RECONCILE_MS
    assert lost.poll(task_id)[0] == "failed"


def test_a_task_of_version_3_is_reconciled_by_a_poll(lost: Lost) -> None:
    lost.time.now = NOW + FIRST_RECONCILE_MS
    machine = before.WORKING["stateMachineArn"]["S"]
    before.put(before.WORKING | {"principal": {"S": "anonymous"}})
    lost.states.end(lost.states.run(machine, ID), RESULT)
    assert lost.poll(ID)[0] == "completed"


# what goes wrong

BREAKS: Final[dict[str, Callable[[Lost], None]]] = {
    "claim": lambda lost: fail(lost, "update_item", "dynamodb"),
    "describe": lambda lost: fail(lost, "describe_execution", "stepfunctions"),
    "start": lambda lost: fail(lost, "start_execution", "stepfunctions"),
    "read again": lambda lost: fail_second_read(lost),
    "anything": lambda lost: break_down(lost),
}


def fail(lost: Lost, operation: str, service: str) -> None:
    lost.stack.calls.instead[operation] = refusing(service, "ThrottlingException")


def fail_second_read(lost: Lost) -> None:
    reads = [lost.stack.deployment.task_table._client.get_item]

    def read(**arguments: Any) -> Any:
        if not reads:
            return refusing("dynamodb", "ThrottlingException")()
        reads.pop()
        del lost.stack.calls.instead["get_item"]
        found = lost.stack.deployment.task_table._client.get_item(**arguments)
        lost.stack.calls.instead["get_item"] = read
        return found

    lost.stack.calls.instead["get_item"] = read


def break_down(lost: Lost) -> None:
    def describe(**arguments: Any) -> Any:
        raise RuntimeError("hunter2")

    lost.stack.calls.instead["describe_execution"] = describe


@pytest.mark.parametrize("how", BREAKS.values(), ids=BREAKS)
def test_a_poll_is_answered_when_the_reconciliation_fails(
    lost: Lost, how: Callable[[Lost], None]
) -> None:
    """With the task as its row has it. The task is reconciled later."""
    task_id = lost.created(started=False)
    instead = dict(lost.stack.calls.instead)
    lost.time.now += FIRST_RECONCILE_MS
    how(lost)
    answer = lost.stack.post("tasks/get", {"taskId": task_id})
    assert (answer.status, answer.result["status"]) == (200, "working")
    lost.stack.calls.instead = instead
    lost.time.now += HOUR // 8
    lost.poll(task_id)
    assert list(lost.states.executions) == [execution_arn(MACHINE, task_id)]


def test_a_poll_uses_the_reconciler_within_request(
    lost: Lost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweeper has the time to repeat its calls; a client waits."""

    def refuse(deployment: Deployment) -> Any:
        raise AssertionError("this is the sweeper's")

    monkeypatch.setattr(Deployment, "reconciler", property(refuse))
    lost.stack.serve()
    task_id = lost.created()
    lost.time.now += FIRST_RECONCILE_MS
    assert lost.poll(task_id) == ("working", LOOK)


@pytest.mark.parametrize("service", ["stepfunctions", "s3"])
def test_a_poll_waits_for_step_functions_and_s3_for_a_moment_only(
    catalogue: Catalogue, service: str
) -> None:
    """API Gateway waits 29 seconds for all of it; the row was read long before."""
    made: dict[str, Any] = {}
    bodies: list[str] = []

    class Broken:
        def read(self) -> bytes:
            bodies.append("read")
            raise ReadTimeoutError(endpoint_url="https://s3")

    def client(service: str, config: Any) -> Any:
        made[service] = config
        return SimpleNamespace(get_object=lambda **_: {"Body": Broken()})

    repair = Deployment(ENVIRONMENT, client, catalogue).reconciler_within_request
    with suppress(Exception):
        repair.ends.executions.is_waiting("token")
    with suppress(ReadTimeoutError):
        repair.ends.payloads.get(PayloadPointer(f"count/{ID}/{'0' * 32}", 0, 9))
    config = made[service]
    attempts = config.retries["total_max_attempts"]
    assert attempts * (config.connect_timeout + config.read_timeout) <= 5
    assert bodies == ["read"], "and what breaks off is not read again"
