"""A deployed stack, on AWS or on this machine: its clients and its outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from local import emulator

CLIENT_CONFIG: Final = Config(
    read_timeout=180, retries={"mode": "standard", "total_max_attempts": 4}
)
"""It waits for longer than any function takes that is called here: `sweep` may take two minutes."""

Clients = Callable[[str], Any]
"""boto3 clients, by service."""


class NoStack(Exception):
    """There is no stack to work on."""


class NotDeployed(NoStack):
    """The account has no stack of that name in the region."""


def outputs_of(cloudformation: Any, stack: str) -> dict[str, str]:
    """The outputs of a stack. Raises NotDeployed, and ClientError."""
    try:
        (description,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        # CloudFormation has no code of its own for it.
        if "does not exist" not in error.response["Error"]["Message"]:
            raise
        raise NotDeployed(f"the account has no stack {stack} in this region") from error
    return {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}


def clients_of(profile: str) -> Clients:
    """boto3 clients for AWS, or for what `make up` started. Raises NoStack."""
    options: dict[str, str] = {}
    if profile == "local":
        running = emulator.find("up")
        if running is None:
            raise NoStack("no stack runs on this machine; `make up` starts one")
        environment = running.environment
        options = {
            "endpoint_url": running.url,
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
            "region_name": environment["AWS_REGION"],
        }
    session = boto3.Session()

    def client(service: str) -> Any:
        return session.client(  # type: ignore[call-overload]
            service, config=CLIENT_CONFIG, **options
        )

    return client


class DeployedStack:
    """The stack in its account: read only."""

    def __init__(self, name: str, clients: Clients) -> None:
        self.name, self.client = name, clients
        self.outputs = outputs_of(clients("cloudformation"), name)

    @cached_property
    def resources(self) -> list[dict[str, Any]]:
        """The summaries of all resources (ListStackResources)."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return [
            summary
            for page in pages.paginate(StackName=self.name)
            for summary in page["StackResourceSummaries"]
        ]

    def physical_ids(self, kind: str, logical_id: str = "") -> list[str]:
        """The physical ids of the resources of a type whose logical ids begin so."""
        return [
            resource["PhysicalResourceId"]
            for resource in self.resources
            if resource["ResourceType"] == kind
            and resource["LogicalResourceId"].startswith(logical_id)
        ]

    @cached_property
    def variables(self) -> dict[str, str]:
        """The environment of the function that answers requests: what the deployment chose."""
        (function,) = self.physical_ids("AWS::Lambda::Function", "ApiFunction")
        configuration = self.client("lambda").get_function_configuration(FunctionName=function)
        variables: dict[str, str] = configuration["Environment"]["Variables"]
        return variables
