"""The double of Step Functions does what AWS says of it; what `Executions` makes of that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tasks.workflows.executions import Executions
from tests.campaigns.model.step_functions import (
    REMEMBERED_MS,
    Script,
    StepFunctions,
    Token,
    Waits,
)

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:count"
ASK = {"do": "ask", "asks": [1, 2]}
END = {"do": "end", "status": "SUCCEEDED"}


class Account:
    """An account with a clock."""

    def __init__(self) -> None:
        self.ms = 0
        self.states = StepFunctions(lambda: self.ms, lambda _, given: json.loads(given))
        client: Any = self.states
        self.executions = Executions(lambda: client)

    def start(self, *script: dict[str, Any], number: int = 0) -> None:
        given = json.dumps({"script": script, "number": number})
        self.states.start_execution(stateMachineArn=MACHINE, name="task", input=given)

    @property
    def execution(self) -> Script:
        return self.states.executions[-1]

    @property
    def tokens(self) -> list[Token]:
        return list(self.states.tokens.values())

    def status(self) -> str | None:
        end = self.executions.describe(MACHINE, "task")
        return None if end is None else end.status


@pytest.fixture
def account() -> Account:
    return Account()


def test_a_start_with_the_same_input_is_the_same_execution_while_it_runs(account: Account) -> None:
    account.start(END)
    account.start(END)
    assert len(account.states.executions) == 1


@pytest.mark.parametrize("number", [0, 1])
def test_a_closed_executions_name_is_taken(account: Account, number: int) -> None:
    account.start(END)
    account.states.enter(account.execution)
    with pytest.raises(account.states.exceptions.ExecutionAlreadyExists):
        account.start(END, number=number)


def test_so_is_a_running_ones_for_another_input(account: Account) -> None:
    account.start(ASK, END)
    with pytest.raises(account.states.exceptions.ExecutionAlreadyExists):
        account.start(ASK, END, number=1)


def test_a_name_is_free_90_days_after_its_execution_closed(account: Account) -> None:
    account.start(END)
    account.states.enter(account.execution)
    account.ms += REMEMBERED_MS
    assert account.status() is None
    account.start(END)
    assert len(account.states.of("task")) == 2


def test_descriptions_are_late(account: Account) -> None:
    account.states.lag_ms = 10
    account.start(END)
    assert account.status() is None
    account.ms += 10
    account.states.enter(account.execution)
    assert account.status() == "RUNNING"
    account.ms += 10
    assert account.status() == "SUCCEEDED"


def test_an_execution_is_stopped_once(account: Account) -> None:
    account.start(ASK, END)
    account.executions.stop(MACHINE, "task")
    account.executions.stop(MACHINE, "task")
    account.executions.stop(MACHINE, "other")
    assert account.status() == "ABORTED"
    assert [event["status"] for event in account.states.events] == ["ABORTED"]


def test_a_token_is_good_for_one_answer(account: Account) -> None:
    account.start(ASK, END)
    account.states.enter(account.execution)
    token = account.tokens[0]
    assert account.executions.is_waiting(token.value)
    assert account.executions.resume(token.value, {"q0": 1})
    assert not account.executions.resume(token.value, {"q0": 2})
    assert not account.executions.is_waiting(token.value)
    assert token.outputs == [{"q0": 1}]


def test_the_next_state_begins_when_all_parallel_ones_are_done(account: Account) -> None:
    account.start(ASK, END)
    account.states.enter(account.execution)
    for token in account.tokens:
        assert not account.execution.ready
        account.executions.resume(token.value, {})
    account.states.enter(account.execution)
    assert account.status() == "SUCCEEDED"


@pytest.mark.parametrize("again", [True, False])
def test_a_state_that_ran_out_of_time_waits_no_longer(account: Account, again: bool) -> None:
    account.start(ASK, END)
    account.states.enter(account.execution)
    account.states.time_out(account.tokens[0], again)
    assert account.status() == "RUNNING"
    assert not account.executions.resume(account.tokens[0].value, {})
    waits = [token.waits is Waits.WAITING for token in account.tokens]
    assert waits == ([False, True, True] if again else [False, True])


def test_a_state_whose_function_fails_is_entered_again_with_a_new_token(account: Account) -> None:
    account.start(ASK, END)
    account.states.enter(account.execution)
    first = account.execution.invocations[0]
    account.states.failed(first)
    second = account.execution.invocations[0]
    assert first.event["token"] != second.event["token"]
    account.states.failed(first)  # whose failure nobody waits for any more
    assert account.execution.invocations[0] is second


def test_after_its_retries_the_execution_fails_and_its_tokens_are_void(account: Account) -> None:
    account.start(ASK, END)
    account.states.enter(account.execution)
    while account.execution.running:
        account.states.failed(account.execution.invocations[0])
    assert account.status() == "FAILED"
    assert not any(account.executions.resume(token.value, {}) for token in account.tokens)


def test_a_start_after_the_end_is_no_failure(account: Account) -> None:
    account.start(END)
    account.states.enter(account.execution)
    account.executions.start(MACHINE, "task", account.execution.input)
    assert len(account.states.executions) == 1
