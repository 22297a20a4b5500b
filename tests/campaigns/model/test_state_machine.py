"""The double of a function tool's state machine does what its definition says."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from infra.state_machine_definition import LANE
from tests.campaigns.model import programs
from tests.campaigns.model.state_machine import (
    ASK,
    KILLED,
    SUBTASKS,
    THROTTLED,
    WORKER,
    Doing,
    FunctionExecution,
    FunctionExecutions,
    Invocation,
    definitions,
)
from tests.campaigns.model.step_functions import RETRIES

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:quick"
DEFINITIONS = definitions(programs.TOOLS)
INPUT = {"arguments": {"a": 1}, "answers": {"first": 1}, "client_can": ["form"], "trace": {}}


class Account:
    """An account with a clock, and one execution."""

    def __init__(self) -> None:
        self.ms = 0
        self.states = FunctionExecutions(
            lambda: self.ms, lambda _, given: json.loads(given), lambda _: DEFINITIONS["quick"]
        )
        self.states.start_execution(stateMachineArn=MACHINE, name="c1-a-2", input=json.dumps(INPUT))

    @property
    def execution(self) -> FunctionExecution:
        return self.states.executions[0]

    def next(self) -> Invocation:
        """Go on until a function is invoked."""
        self.go_on()
        (invocation,) = self.execution.invocations
        return invocation

    def go_on(self) -> None:
        while lines := self.states.movable(self.execution):
            self.states.go_on(self.execution, lines[0])

    def pass_time(self, ms: int) -> None:
        self.ms += ms
        self.states.time_passes()


@pytest.fixture
def account() -> Account:
    return Account()


def test_a_worker_gets_its_tasks_id_and_input(account: Account) -> None:
    run = account.next()
    assert run.function == WORKER
    assert run.event["task"] == "c1-a"
    assert (run.event["input"], run.event["answers"]) == ({"a": 1}, {"first": 1})
    assert (run.event["undo"], run.event["retries"]) == (False, 0)


def test_a_result_ends_the_execution(account: Account) -> None:
    account.states.returned(account.next(), {"result": {"content": []}})
    account.go_on()
    assert (account.execution.status, account.execution.output) == ("SUCCEEDED", '{"content": []}')


def test_an_answer_is_added_to_those_before(account: Account) -> None:
    account.states.returned(account.next(), {"ask": {"q": {}}, "events": 15, "journal": True})
    asked = account.next()
    assert (asked.function, asked.event["requests"]) == (ASK, {"q": {}})
    account.states.returned(asked, None)
    assert not account.states.movable(account.execution)
    account.states.send_task_success(taskToken=asked.event["token"], output='{"q": 2}')
    again = account.next()
    assert again.event["answers"] == {"first": 1, "q": 2}
    assert (again.event["events"], again.event["journal"]) == (15, True)


def test_a_wait_is_not_shorter_than_said(account: Account) -> None:
    account.states.returned(account.next(), {"wait": {"until": "1970-01-01T00:00:09Z"}})
    account.go_on()
    account.pass_time(8_999)
    assert not account.states.movable(account.execution)
    account.pass_time(1)
    assert account.next().function == WORKER


def test_lanes_run_side_by_side_and_killed_ones_are_counted(account: Account) -> None:
    account.states.returned(account.next(), {"map": {"id": "000001", "lanes": [0, 1, 2]}})
    account.go_on()
    lanes = account.execution.invocations
    assert [lane.event["lane"]["number"] for lane in lanes] == [0, 1, 2]
    assert {lane.line.at for lane in lanes} == {LANE}
    account.states.returned(lanes[0], {"lane": "ended"})
    account.states.failed(lanes[1], KILLED)
    for attempt in range(RETRIES + 1):
        account.go_on()
        throttled = account.execution.invocations[-1]
        assert throttled.event["lane"]["number"] == 2, attempt
        account.states.failed(throttled, THROTTLED)
    account.go_on()
    assert account.execution.line.doing is Doing.MAPS
    account.pass_time(10_000)
    assert account.next().event["killed_lanes"] == 1


def test_a_killed_run_is_repeated_when_its_function_must_have_ended(account: Account) -> None:
    account.states.failed(account.next(), KILLED, "gone")
    account.go_on()
    assert not account.execution.invocations
    account.pass_time(10_000)
    assert account.next().event["crash"] == {"error": KILLED, "cause": "gone", "count": 1}


def test_a_run_that_takes_too_long_is_taken_for_dead(account: Account) -> None:
    run = account.next()
    account.pass_time(79_999)
    assert run.pending
    account.pass_time(1)
    assert not run.pending
    account.states.returned(run, {"result": {}})
    account.go_on()
    assert account.execution.line.doing is Doing.WAITS


def test_a_transient_error_is_retried_and_counted(account: Account) -> None:
    account.states.failed(account.next(), "McpTasksTransientError")
    assert account.next().event["retries"] == 1


@pytest.mark.parametrize("output", [{"fail": {"error": "E", "cause": "c"}}, None])
def test_an_execution_fails(account: Account, output: Any) -> None:
    run = account.next()
    if output is None:
        account.states.failed(run, "E", "c")
    else:
        account.states.returned(run, output)
    account.go_on()
    assert (account.execution.status, account.execution.error) == ("FAILED", "E")
    assert account.execution.cause == "c"


def test_an_execution_ends_when_its_task_expires(account: Account) -> None:
    account.states.returned(account.next(), {"wait": {"until": "1970-01-02T00:00:00Z"}})
    account.go_on()
    account.pass_time(1_800_000)
    assert account.execution.status == "TIMED_OUT"


CALL: Final = {"operation": "000001", "count": 3}
TRANSIENT: Final = "McpTasksTransientError"


def subtasks_of(account: Account, numbers: list[int], concurrency: int) -> list[Invocation]:
    """The functions that start subtasks, when those have been written."""
    account.states.returned(account.next(), {"call": CALL})
    created = account.next()
    assert (created.function, created.event["operation"]) == (SUBTASKS, "000001")
    account.states.returned(created, {"numbers": numbers, "concurrency": concurrency})
    account.go_on()
    return account.execution.invocations


def answer(account: Account, subtask: Invocation) -> None:
    """A subtask has begun, and its end is told."""
    account.states.returned(subtask, {"begun": True})
    account.states.send_task_success(taskToken=subtask.event["token"], output="{}")
    account.go_on()


def test_so_many_subtasks_run_side_by_side(account: Account) -> None:
    first, second = subtasks_of(account, [0, 1, 2], 2)
    assert [each.event["number"] for each in (first, second)] == [0, 1]
    account.states.returned(first, {"begun": True})
    account.go_on()
    assert account.execution.invocations == [second]
    account.states.send_task_success(taskToken=first.event["token"], output="{}")
    account.go_on()
    _, third = account.execution.invocations
    assert third.event["number"] == 2
    answer(account, second)
    answer(account, third)
    assert account.next().function == WORKER


def test_no_subtask_is_waited_for_when_there_is_none(account: Account) -> None:
    assert [each.function for each in subtasks_of(account, [], 1)] == [WORKER]


def test_a_state_that_starts_a_subtask_is_tried_again_with_another_token(account: Account) -> None:
    (first,) = subtasks_of(account, [4], 1)
    account.states.failed(first, KILLED)
    second = account.next()
    assert second.event["number"] == 4
    assert second.event["token"] != first.event["token"]
    with pytest.raises(account.states.exceptions.TaskTimedOut):
        account.states.send_task_success(taskToken=first.event["token"], output="{}")
    answer(account, second)
    assert account.next().function == WORKER


def test_a_subtask_that_is_throttled_is_left_for_the_next_run(account: Account) -> None:
    subtasks_of(account, [0], 1)
    for _ in range(RETRIES + 1):
        account.states.failed(account.next(), THROTTLED)
    account.go_on()
    assert not account.execution.invocations
    account.pass_time(10_000)
    assert account.next().function == WORKER


def test_a_call_of_one_subtask_is_one_state(account: Account) -> None:
    account.states.returned(account.next(), {"call": {**CALL, "count": 1}})
    account.states.failed(account.next(), TRANSIENT)
    call = account.next()
    assert call.function == SUBTASKS
    assert "number" not in call.event
    answer(account, call)
    assert account.next().function == WORKER
