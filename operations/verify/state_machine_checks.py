"""How Step Functions updates and deletes a state machine whose execution runs: what `make drain`,
`make destroy` and `remove=` rely on (docs/operations.md, "Removing a tool, or the stack").

It is tried on a state machine of its own, which it deletes again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from ..running_executions import STATE_MACHINE
from ..state_machine_metadata import state_machine_metadata
from .check import Check, NotTried, Problem, expect
from .deployed import Deployed
from .waiting import attempts

DELETION_SECONDS: Final = 300.0
"""Until a state machine without executions is gone. AWS names no time; `make destroy` has two
minutes for the list of executions, and CloudFormation waits by itself."""
STATE_SECONDS: Final = 30.0
"""Until what was changed is what is described: reads lag (API reference, "UpdateStateMachine",
"DescribeExecution")."""
PAUSE: Final = 3.0
MAX_NAME: Final = 80
GONE: Final = "StateMachineDoesNotExist"
DELETING: Final = "StateMachineDeleting"


def _waiting(seconds: int) -> str:
    wait = {"Type": "Wait", "Seconds": seconds, "End": True}
    return json.dumps({"StartAt": "Wait", "States": {"Wait": wait}})


FIRST, SECOND = _waiting(3600), _waiting(3601)
"""Two definitions. An execution of each outlasts the check."""


@dataclass(frozen=True, slots=True)
class Temporary:
    """A state machine that exists for the time of the check."""

    states: Any
    name: str
    arn: str
    role: str

    @classmethod
    def create(cls, states: Any, stack: str, role: str) -> Temporary:
        """Create it, with the role of another. Raises ClientError."""
        ending = f"-verify-{secrets.token_hex(4)}"
        name = stack[: MAX_NAME - len(ending)] + ending
        created = states.create_state_machine(name=name, definition=FIRST, roleArn=role)
        return cls(states, name, created["stateMachineArn"], role)

    def described(self) -> Mapping[str, Any]:
        """What Step Functions says of it. Raises ClientError once it is gone."""
        found: Mapping[str, Any] = self.states.describe_state_machine(stateMachineArn=self.arn)
        return found

    def has(self, member: str, value: str) -> bool:
        """Whether it is described so, at last."""
        return any(self.described()[member] == value for _ in attempts(STATE_SECONDS, PAUSE))

    def create_again(self) -> str:
        """The error's code with which a second one of the name is refused; empty if it is not."""
        try:
            self.states.create_state_machine(name=self.name, definition=FIRST, roleArn=self.role)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return ""

    def vanishes(self) -> bool:
        """Whether it is gone, at last."""
        for _ in attempts(DELETION_SECONDS, PAUSE):
            try:
                self.described()
            except ClientError as error:
                if error.response["Error"]["Code"] != GONE:
                    raise
                return True
        return False

    def delete(self) -> None:
        """Delete it, which may be said twice. Raises Problem where it stays."""
        try:
            self.states.delete_state_machine(stateMachineArn=self.arn)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            raise Problem(f"{self.arn} was not deleted ({code}); delete it by hand") from error


def live_and_die(deployed: Deployed) -> str:
    """A running execution keeps its definition when its state machine is updated, keeps it
    `DELETING` when it is deleted, and keeps its name taken; once it is stopped, the name is free.

    API reference, "UpdateStateMachine", "DeleteStateMachine", "CreateStateMachine".
    """
    stack = deployed.account()
    states, machines = stack.client("stepfunctions"), stack.physical_ids(STATE_MACHINE)
    if not machines:
        raise NotTried("the stack has no state machine whose role could be used")
    role = state_machine_metadata(states, machines[0])["roleArn"]
    machine = Temporary.create(states, stack.name, role)
    execution = ""
    try:
        started = states.start_execution(stateMachineArn=machine.arn, name="verify", input="{}")
        execution = started["executionArn"]
        return _watch(machine, execution)
    finally:
        if execution:
            with suppress(ClientError):  # it has ended
                states.stop_execution(executionArn=execution)
        machine.delete()


def _watch(machine: Temporary, execution: str) -> str:
    states = machine.states
    states.update_state_machine(stateMachineArn=machine.arn, definition=SECOND)
    expect(machine.has("definition", SECOND), "an updated definition is not described")
    of_execution = states.describe_state_machine_for_execution(executionArn=execution)
    kept = json.loads(of_execution["definition"]) == json.loads(FIRST)
    expect(kept, "a running execution took the definition of an update")
    machine.delete()
    expect(machine.has("status", "DELETING"), "a deleted state machine is not DELETING")
    status = states.describe_execution(executionArn=execution)["status"]
    expect(status == "RUNNING", f"the execution of a deleted state machine is {status}")
    code = machine.create_again()
    answered = code or "that it created another one"
    expect(code == DELETING, f"CreateStateMachine of the same name answers {answered}")
    states.stop_execution(executionArn=execution)
    late = f"{machine.name} still exists {DELETION_SECONDS:.0f} s after its execution ended"
    expect(machine.vanishes(), late)
    return "the execution kept its definition, and its state machine until it was stopped"


CHECKS: Final = (
    Check("Life of a state machine", live_and_die, only_aws=True, of_stack=True, slow=True),
)
