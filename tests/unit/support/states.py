"""Step Functions as its API reference describes it, where moto is otherwise.

A start is idempotent for an execution of the same name and input that runs, and refused for one
that has ended ("StartExecution"); a token is good once ("SendTaskSuccess"); what is described lags
behind what is ("DescribeExecution": "This API action is eventually consistent").
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from mcp_tasks.workflows.executions import Executions, execution_arn
from tests.unit.support.aws import Calls, error_response, real

OPERATIONS: Final = (
    *("start_execution", "describe_execution", "stop_execution"),
    *("send_task_success", "send_task_heartbeat", "describe_state_machine"),
)


LATELY: Final = datetime.now(UTC)
"""When every execution started: one time, so that executions can be compared."""


@dataclass
class Execution:
    """An execution, as it is."""

    input: str
    status: str = "RUNNING"
    output: str | None = None
    started: int = 1
    """0 until it began, then 1."""
    started_at: datetime = LATELY


@dataclass
class States:
    """All executions and tokens of an account."""

    executions: dict[str, Execution] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Whether a state still waits on a token: `waits`, `used`, or `gone`."""
    received: list[tuple[str, Any]] = field(default_factory=list)
    """What waiting states got, by token."""
    deleting: set[str] = field(default_factory=set)
    """State machines that are being deleted."""
    late: dict[str, str | None] = field(default_factory=dict)
    """The status that is still described, by execution; None for one that is not found yet."""

    def serve(self, calls: Calls) -> Executions:
        """Let all calls to Step Functions come here."""
        calls.instead |= {name: getattr(self, name) for name in OPERATIONS}
        return Executions(lambda: calls.client("stepfunctions"))

    def run(self, machine: str, name: str, given: str = '{"upto":3}') -> str:
        """An execution that runs; returns its ARN."""
        return str(self.start_execution(machine, name, given)["executionArn"])

    def wait(self, token: str) -> None:
        """A state begins to wait."""
        self.tokens[token] = "waits"

    def end(self, arn: str, output: Any = None, status: str = "SUCCEEDED") -> None:
        """An execution ends by itself; nothing waits in it any more."""
        execution = self.executions[arn]
        execution.status, execution.output = status, json.dumps(output)
        self.tokens = {t: "gone" if was == "waits" else was for t, was in self.tokens.items()}

    # the service

    def start_execution(self, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:
        if stateMachineArn in self.deleting:
            raise _error("StateMachineDeleting")
        arn = execution_arn(stateMachineArn, name)
        found = self.executions.setdefault(arn, Execution(input, started=0))
        if found.started and (found.status != "RUNNING" or found.input != input):
            raise _error("ExecutionAlreadyExists")
        found.started = 1
        return {"executionArn": arn}

    def describe_state_machine(self, stateMachineArn: str, includedData: str) -> dict[str, Any]:
        assert includedData == "METADATA_ONLY", "the definition may be encrypted"
        return {"status": "DELETING" if stateMachineArn in self.deleting else "ACTIVE"}

    def describe_execution(self, executionArn: str) -> dict[str, Any]:
        found = self.executions.get(executionArn)
        status = self.late.get(executionArn, found.status if found else None)
        if found is None or status is None:
            raise _error("ExecutionDoesNotExist")
        told = {"status": status, "startDate": found.started_at, "input": found.input}
        if status == "SUCCEEDED":
            return {**told, "output": found.output}
        return {**told, "error": "Broken", "cause": "no"}

    def stop_execution(self, executionArn: str, error: str, cause: str) -> dict[str, Any]:
        found = self.executions.get(executionArn)
        if found is None:
            raise _error("ExecutionDoesNotExist")
        if found.status == "RUNNING":
            self.end(executionArn, status="ABORTED")
        return {}

    def send_task_success(self, taskToken: str, output: str) -> dict[str, Any]:
        self.send_task_heartbeat(taskToken)
        self.tokens[taskToken] = "used"
        self.received.append((taskToken, json.loads(output)))
        return {}

    def send_task_heartbeat(self, taskToken: str) -> dict[str, Any]:
        if taskToken not in self.tokens:
            raise _error("TaskDoesNotExist")
        if self.tokens[taskToken] != "waits":
            raise _error("TaskTimedOut")
        return {}


def _error(code: str) -> ClientError:
    modelled: type[ClientError] = getattr(real("stepfunctions").exceptions, code)
    return modelled(error_response(code), "Operation")
