"""What `cdk synth` wrote, and an account, for checks to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

Written = Callable[[dict[str, Any]], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a template as the assembly of the stack `notes`."""

    def write(template: dict[str, Any]) -> Path:
        stack = {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": "notes.template.json"},
        }
        manifest = {"artifacts": {"notes": stack, "Tree": {"type": "cdk:tree"}}}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        (tmp_path / "notes.template.json").write_text(json.dumps(template))
        return tmp_path

    return write


class Account:
    """CloudFormation and Step Functions of an account with one stack, `notes`, or without."""

    def __init__(self) -> None:
        self.body: Mapping[str, Any] | None = None
        """The stack's template."""
        self.stack: dict[str, Any] | None = None
        """What "DescribeStacks" says of it."""
        self.physical_ids: dict[str, str] = {}
        self.running: dict[str, int] = {}
        """State machine -> its running executions."""
        self.asked: list[str] = []
        """The state machines that were asked for."""

    def client(self, service: str) -> Any:
        """The client of a service, which is asked for nothing else."""
        assert service in ("cloudformation", "stepfunctions")
        return self

    def get_template(self, **given: Any) -> dict[str, Any]:
        """CloudFormation API reference, "GetTemplate"."""
        assert given == {"StackName": "notes"}
        if self.body is None:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "GetTemplate")
        return {"TemplateBody": self.body}

    def describe_stacks(self, **given: Any) -> dict[str, Any]:
        """CloudFormation API reference, "DescribeStacks"."""
        assert given == {"StackName": "notes"}
        if self.stack is None:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
        return {"Stacks": [self.stack]}

    def describe_stack_resource(self, **given: Any) -> dict[str, Any]:
        """CloudFormation API reference, "DescribeStackResource". The account is in China."""
        assert given["StackName"] == "notes"
        stack = "arn:aws-cn:cloudformation:cn-north-1:111122223333:stack/notes/guid"
        physical_id = self.physical_ids[given["LogicalResourceId"]]
        return {"StackResourceDetail": {"PhysicalResourceId": physical_id, "StackId": stack}}

    def list_executions(self, **given: Any) -> dict[str, Any]:
        """Step Functions API reference, "ListExecutions"."""
        arn = given.pop("stateMachineArn")
        assert given == {"statusFilter": "RUNNING", "maxResults": 1}
        self.asked.append(arn)
        return {"executions": [{}] * min(self.running[arn], 1)}


@pytest.fixture
def account() -> Account:
    """An account without stacks."""
    return Account()
