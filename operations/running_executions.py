"""The executions of a stack that run: what keeps its state machines from being deleted.

Step Functions API reference, "ListExecutions": the list is eventually consistent, so an execution
that was stopped a moment ago may still be in it, and one that began a moment ago may not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

STATE_MACHINE: Final = "AWS::StepFunctions::StateMachine"


@dataclass(frozen=True, slots=True)
class RunningExecution:
    """An execution that has not ended."""

    name: str
    started_at: datetime


def running_executions(states: Any, state_machine_arn: str) -> list[RunningExecution]:
    """Those of a state machine; none when there is no such state machine. Raises ClientError."""
    pages = states.get_paginator("list_executions").paginate(
        stateMachineArn=state_machine_arn, statusFilter="RUNNING"
    )
    try:
        return [
            RunningExecution(each["name"], each["startDate"])
            for page in pages
            for each in page["executions"]
        ]
    except states.exceptions.StateMachineDoesNotExist:
        return []
