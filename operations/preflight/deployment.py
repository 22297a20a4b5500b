"""What is about to be deployed, and what is deployed now: the checks' one argument."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from ..deployed_stack import Clients, template_of


@dataclass(frozen=True)
class Deployment:
    """A stack, the template that was synthesized for it, and the account it goes to."""

    stack: str
    template: Mapping[str, Any]
    client: Clients
    region: str
    changes: frozenset[str] = frozenset()
    """What `change=` allows to differ from what is deployed."""
    removed: frozenset[str] = frozenset()
    """The tools that `remove=` names: their running tasks are ended before the deployment."""

    @classmethod
    def read(
        cls,
        assembly: Path,
        client: Clients,
        region: str,
        changes: frozenset[str] = frozenset(),
        removed: frozenset[str] = frozenset(),
    ) -> Deployment:
        """Read the stack's name and its template from what `cdk synth` wrote."""
        manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
        ((name, properties),) = (
            (name, artifact["properties"])
            for name, artifact in manifest["artifacts"].items()
            if artifact["type"] == "aws:cloudformation:stack"
        )
        text = (assembly / properties["templateFile"]).read_text(encoding="utf-8")
        stack = properties.get("stackName", name)
        return cls(stack, json.loads(text), client, region, changes, removed)

    @cached_property
    def deployed(self) -> dict[str, Any]:
        """The template that is deployed; empty when there is no such stack.

        Raises ClientError and BotoCoreError.
        """
        try:
            return template_of(self.client("cloudformation"), self.stack)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            return {}

    def resource(self, logical_id: str) -> dict[str, str]:
        """A resource of the deployed stack (CloudFormation API reference,
        "DescribeStackResource"). Raises ClientError and BotoCoreError."""
        detail: dict[str, str] = self.client("cloudformation").describe_stack_resource(
            StackName=self.stack, LogicalResourceId=logical_id
        )["StackResourceDetail"]
        return detail


def account() -> tuple[Clients, str]:
    """Clients for the account and region that the CDK's CLI deploys to, and the region."""
    session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
    region = session.region_name or "us-east-1"

    def client(service: str) -> Any:
        return session.client(service, region_name=region)  # type: ignore[call-overload]

    return client, region


def properties_of(template: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    """The properties of a template's resources of a type."""
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == kind:
            yield resource.get("Properties", {})
