"""The emulator deletes a state machine as AWS does, and draining it ends what it waits for.

Step Functions API reference, "DeleteStateMachine".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from operations.drain import Drain
from operations.running_executions import running_executions

NAME: Final = "mcp-goes"
WAITS: Final = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 600, "End": True}}}
TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "states.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


@pytest.fixture
def arn(aws: Any) -> Iterator[str]:
    """A state machine with an execution that waits."""
    iam, states = aws("iam"), aws("stepfunctions")
    role = iam.create_role(RoleName=NAME, AssumeRolePolicyDocument=json.dumps(TRUST))
    made = states.create_state_machine(
        name=NAME, definition=json.dumps(WAITS), roleArn=role["Role"]["Arn"]
    )
    found: str = made["stateMachineArn"]
    states.start_execution(stateMachineArn=found, name="c1-0")
    yield found
    iam.delete_role(RoleName=NAME)


def test_it_waits_for_its_executions_and_draining_ends_them(arn: str, aws: Any) -> None:
    states = aws("stepfunctions")
    states.delete_state_machine(stateMachineArn=arn)
    assert states.describe_state_machine(stateMachineArn=arn)["status"] == "DELETING"
    with pytest.raises(states.exceptions.StateMachineDeleting):
        states.start_execution(stateMachineArn=arn, name="c1-1")
    assert [each.name for each in running_executions(states, arn)] == ["c1-0"]
    drain = Drain(aws, sweeper=None, removed="tool")
    assert drain.run([arn], 10, all_of_them=True) == 0
    deadline = time.monotonic() + 10
    while True:
        try:
            states.describe_state_machine(stateMachineArn=arn)
        except states.exceptions.StateMachineDoesNotExist:
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert running_executions(states, arn) == []
    states.delete_state_machine(stateMachineArn=arn)  # what is gone is deleted
