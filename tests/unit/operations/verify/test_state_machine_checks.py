"""What Step Functions does with a state machine that is updated and deleted: as AWS documents it,
and otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from operations.verify.check import Outcome, outcome_of
from operations.verify.state_machine_checks import CHECKS, DELETION_SECONDS, STATE_SECONDS
from tests.unit.operations.verify.account import MACHINE, Account
from tests.unit.operations.verify.conftest import Waited

(LIFE,) = CHECKS
ROLE = "arn:aws:iam::111122223333:role/notes-ToolsRole1A"
OWN = {"stateMachineArn": MACHINE, "name": "notes-fill", "roleArn": ROLE}


class StepFunctions:
    """One state machine and its execution. `wrong` names a rule that it breaks."""

    def __init__(self, waited: Waited, wrong: str = "") -> None:
        self.waited, self.wrong = waited, wrong
        self.machine: dict[str, Any] = {}
        self.execution: dict[str, Any] = {}
        self.roles: set[str] = set()
        self.ended_at = 0.0

    def answers(self) -> dict[str, Any]:
        return {
            name: self.answer(getattr(self, name))
            for name in (
                *("create_state_machine", "describe_state_machine", "update_state_machine"),
                *("delete_state_machine", "start_execution", "stop_execution"),
                *("describe_execution", "describe_state_machine_for_execution"),
            )
        }

    def answer(self, operation: Any) -> Any:
        if self.wrong == operation.__name__:
            return "InternalFailure"
        return operation

    @property
    def deleted(self) -> bool:
        """A moment after its last execution ended."""
        late = 1e9 if self.wrong == "it stays" else 20
        ended = self.execution.get("status") != "RUNNING"
        return (
            self.machine.get("status") == "DELETING"
            and ended
            and self.waited.seconds >= self.ended_at + late
        )

    def create_state_machine(self, asked: dict[str, Any]) -> Any:
        if self.machine and not self.deleted and self.wrong != "name is free":
            return "ConflictException" if self.wrong == "conflict" else "StateMachineDeleting"
        self.roles.add(asked["roleArn"])
        arn = MACHINE.replace("notes-fill", asked["name"])
        self.machine = {
            "stateMachineArn": arn,
            "name": asked["name"],
            "definition": asked["definition"],
            "status": "ACTIVE",
        }
        return {"stateMachineArn": arn}

    def describe_state_machine(self, asked: dict[str, Any]) -> Any:
        if asked["stateMachineArn"] == MACHINE:
            return OWN
        if self.wrong == "unknown" and self.execution["status"] == "ABORTED":
            return "InternalFailure"
        return "StateMachineDoesNotExist" if self.deleted else dict(self.machine)

    def update_state_machine(self, asked: dict[str, Any]) -> Any:
        if self.wrong != "no update":
            self.machine["definition"] = asked["definition"]
        if self.wrong == "execution follows":
            self.execution["definition"] = asked["definition"]
        return {}

    def delete_state_machine(self, asked: dict[str, Any]) -> Any:
        if self.wrong != "not deleting":
            self.machine["status"] = "DELETING"
        if self.wrong == "execution ends":
            self.execution["status"] = "ABORTED"
        return {}

    def start_execution(self, asked: dict[str, Any]) -> Any:
        self.execution = {"status": "RUNNING", "definition": self.machine["definition"]}
        arn = asked["stateMachineArn"].replace("stateMachine", "execution")
        return {"executionArn": f"{arn}:{asked['name']}"}

    def stop_execution(self, asked: dict[str, Any]) -> Any:
        if self.execution["status"] == "RUNNING":
            self.execution["status"], self.ended_at = "ABORTED", self.waited.seconds
            return {}
        return "ValidationException"

    def describe_execution(self, asked: dict[str, Any]) -> Any:
        return {"status": self.execution["status"]}

    def describe_state_machine_for_execution(self, asked: dict[str, Any]) -> Any:
        return {"definition": self.execution["definition"]}


def verified(states: StepFunctions) -> Outcome:
    deployed = Account(**states.answers()).deployed()
    deployed.slow = True
    return outcome_of(LIFE, deployed)


def test_a_state_machine_lives_as_documented(waited: Waited) -> None:
    states = StepFunctions(waited)
    outcome = verified(states)
    assert outcome.verdict == "passed", outcome
    assert states.deleted
    assert states.roles == {ROLE}, "no role but one of the stack's own is passed"
    assert states.machine["name"].startswith("notes-verify-")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("no update", "an updated definition is not described"),
        ("execution follows", "a running execution took the definition of an update"),
        ("not deleting", "a deleted state machine is not DELETING"),
        ("execution ends", "the execution of a deleted state machine is ABORTED"),
        ("name is free", "CreateStateMachine of the same name answers that it created another one"),
        ("conflict", "CreateStateMachine of the same name answers ConflictException"),
        ("unknown", "describe_state_machine: InternalFailure"),
        ("it stays", "still exists 300 s after its execution ended"),
        ("describe_execution", "describe_execution: InternalFailure"),
        ("start_execution", "start_execution: InternalFailure"),
    ],
)
def test_what_is_otherwise_is_found_and_nothing_stays(
    waited: Waited, wrong: str, said: str
) -> None:
    states = StepFunctions(waited, wrong)
    outcome = verified(states)
    assert outcome.verdict == "FAILED"
    assert said in outcome.seen
    assert states.execution.get("status") != "RUNNING"
    assert wrong == "not deleting" or states.machine["status"] == "DELETING"
    assert waited.seconds <= DELETION_SECONDS + 2 * STATE_SECONDS


def test_nothing_is_created_without_the_permission(waited: Waited) -> None:
    states = StepFunctions(waited)
    account = Account(**states.answers() | {"create_state_machine": "AccessDeniedException"})
    deployed = account.deployed()
    deployed.slow = True
    outcome = outcome_of(LIFE, deployed)
    assert outcome.verdict == "not tried"
    assert [name for name, _ in account.asked if name.startswith(("start", "delete"))] == []


def test_what_may_not_be_deleted_is_named(waited: Waited) -> None:
    outcome = verified(StepFunctions(waited, "delete_state_machine"))
    assert outcome.verdict == "FAILED"
    assert "notes-verify-" in outcome.seen
    assert "was not deleted (InternalFailure); delete it by hand" in outcome.seen


def test_a_long_stacks_name_is_cut(waited: Waited) -> None:
    states = StepFunctions(waited)
    deployed = Account(**states.answers()).deployed()
    deployed.slow = True
    assert deployed.stack is not None
    deployed.stack.name = "n" * 128
    assert outcome_of(LIFE, deployed).verdict == "passed"
    assert len(states.machine["name"]) == 80
