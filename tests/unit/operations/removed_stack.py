"""A stack that is to go, and the account that it is in, as far as its removal looks at it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

ACCOUNT: Final = "111122223333"
REGION: Final = "eu-west-1"
PREFIX: Final = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:"
BEGAN: Final = datetime(2026, 11, 24, 12, tzinfo=UTC)


class _Exceptions:
    """The errors that a client knows by name."""

    def __getattr__(self, name: str) -> type[ClientError]:
        found: type[ClientError] = ERRORS.setdefault(name, type(name, (ClientError,), {}))
        return found


ERRORS: dict[str, type[ClientError]] = {}


def error(code: str) -> ClientError:
    """What a client raises."""
    kind: type[ClientError] = getattr(_Exceptions(), code)
    return kind({"Error": {"Code": code, "Message": "does not exist"}}, "Operation")


@dataclass
class _Pages:
    """A paginator of one operation."""

    operation: Any

    def paginate(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Two pages at least, so that nobody reads the first only."""
        yield self.operation(**arguments, first=True)
        yield self.operation(**arguments, first=False)


@dataclass
class Account:
    """Every service in one object; its methods are operations."""

    running: dict[str, dict[str, datetime]] = field(default_factory=dict)
    """State machine's ARN -> the names of its running executions, and when they began."""
    undo: set[str] = field(default_factory=set)
    """Executions that are followed by one that undoes them, which runs until it is stopped."""
    sweeper: str = "knows"
    """`knows` how to end tasks, is `old`, `gone`, `failing` or `busy` the first time."""
    status: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    template: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, list[str]] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    protects_stack: bool = True
    arrivals: list[str] = field(default_factory=list)
    """Executions that callers start, one after each list that is read."""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    """What was changed: the operation, and what it was called with."""
    exceptions: _Exceptions = field(default_factory=_Exceptions)

    def __call__(self, service: str) -> Any:
        """A client."""
        return self

    def get_paginator(self, operation: str) -> _Pages:
        """A paginator."""
        return _Pages(getattr(self, f"_{operation}"))

    def run(self, tool: str, *names: str, late: float = 0) -> str:
        """Executions begin; returns their state machine's ARN."""
        arn = PREFIX + f"notes-{tool}"
        began = BEGAN + timedelta(seconds=late)
        self.running.setdefault(arn, {}).update(dict.fromkeys(names, began))
        return arn

    # Step Functions

    def _list_executions(
        self, stateMachineArn: str, statusFilter: str, first: bool
    ) -> dict[str, Any]:
        assert statusFilter == "RUNNING"
        if stateMachineArn not in self.running:
            raise error("StateMachineDoesNotExist")
        found = list(self.running[stateMachineArn].items())
        page = found[:1] if first else found[1:]
        if not first and self.arrivals and self.status.get(stateMachineArn) != "DELETING":
            began = BEGAN + timedelta(seconds=len(self.calls) + 1)
            self.running[stateMachineArn][self.arrivals.pop()] = began
        return {"executions": [{"name": n, "startDate": began} for n, began in page]}

    def stop_execution(self, executionArn: str, error: str, cause: str) -> None:
        """Stop an execution."""
        machine, _, name = executionArn.replace(":execution:", ":stateMachine:").rpartition(":")
        self.calls.append(("stop_execution", name))
        if self.running[machine].pop(name, None) is None:
            raise globals()["error"]("ExecutionDoesNotExist")

    def delete_state_machine(self, stateMachineArn: str) -> None:
        """Begin to delete a state machine."""
        self.calls.append(("delete_state_machine", stateMachineArn))
        self.status[stateMachineArn] = "DELETING"

    def describe_state_machine(self, stateMachineArn: str, includedData: str) -> dict[str, Any]:
        """What a state machine is."""
        assert includedData == "METADATA_ONLY"
        if stateMachineArn not in self.running and stateMachineArn not in self.types:
            raise error("StateMachineDoesNotExist")
        key = self.keys.get(stateMachineArn)
        return {
            "status": self.status.get(stateMachineArn, "ACTIVE"),
            "type": self.types.get(stateMachineArn, "STANDARD"),
            "encryptionConfiguration": {"kmsKeyId": key} if key else {},
        }

    # KMS, STS, Lambda

    def describe_key(self, KeyId: str) -> dict[str, Any]:
        """The key behind an alias."""
        return {"KeyMetadata": {"Arn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{KeyId[-8:]}"}}

    def get_caller_identity(self) -> dict[str, str]:
        """Who calls."""
        return {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/operator"}

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        """Call the sweeper."""
        request = json.loads(Payload)["remove"]
        if self.sweeper == "gone":
            raise error("ResourceNotFoundException")
        if self.sweeper == "busy":
            self.sweeper = "knows"
            raise error("TooManyRequestsException")
        if self.sweeper == "failing":
            failure = json.dumps({"errorType": "KeyError", "errorMessage": "secret"})
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(failure.encode())}
        if self.sweeper == "old":
            return {"Payload": io.BytesIO(b"null")}
        self.calls.append(("end tasks", request))
        executions = self.running[request["stateMachine"]]
        for name in request["executions"]:
            if name.endswith("-undo") and request["undo"]:
                continue
            began = executions.pop(name, None)
            if name in self.undo and began is not None and request["undo"]:
                executions[f"{name}-undo"] = began
        return {"Payload": io.BytesIO(b'{"ended": 1}')}

    # CloudFormation, EventBridge, DynamoDB

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        """The stack's outputs."""
        if not self.template:
            raise error("ValidationError")
        outputs = {"SweepFunctionName": "sweep", "EventBus": "notes"}
        pairs = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        stack = {"Outputs": pairs, "EnableTerminationProtection": self.protects_stack}
        return {"Stacks": [stack]}

    def get_template(self, StackName: str) -> dict[str, Any]:
        """The deployed template."""
        return {"TemplateBody": self.template}

    def _list_stack_resources(self, StackName: str, first: bool) -> dict[str, Any]:
        found = [
            {
                "LogicalResourceId": name,
                "PhysicalResourceId": resource["PhysicalId"],
                "ResourceType": resource["Type"],
                "ResourceStatus": resource.get("Status", "CREATE_COMPLETE"),
            }
            for name, resource in self.template["Resources"].items()
        ]
        return {"StackResourceSummaries": found[:1] if first else found[1:]}

    def update_termination_protection(
        self, StackName: str, EnableTerminationProtection: bool
    ) -> None:
        """Lift the stack's protection."""
        self.calls.append(("termination protection", EnableTerminationProtection))

    def _list_rules(self, EventBusName: str, first: bool) -> dict[str, Any]:
        return {"Rules": [] if first else [{"Name": name} for name in self.rules]}

    def list_targets_by_rule(self, Rule: str, EventBusName: str) -> dict[str, Any]:
        """A rule's targets."""
        return {"Targets": [{"Id": target} for target in self.rules[Rule]]}

    def remove_targets(self, Rule: str, EventBusName: str, Ids: list[str]) -> None:
        """Remove targets."""
        self.rules[Rule] = [target for target in self.rules[Rule] if target not in Ids]

    def delete_rule(self, Name: str, EventBusName: str) -> None:
        """Remove a rule, which may have no targets."""
        assert not self.rules[Name]
        del self.rules[Name]

    def describe_table(self, TableName: str) -> dict[str, Any]:
        """A table."""
        return {"Table": {"DeletionProtectionEnabled": TableName in self.protected}}


def machine(name: str) -> dict[str, Any]:
    """A state machine of a template."""
    return {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {"StateMachineName": name},
        "PhysicalId": PREFIX + name,
    }
