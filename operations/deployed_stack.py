"""A deployed stack, on AWS or on this machine: which one a command is about, and what is in it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.server_toml import ServerFile
from local import emulator
from local.environment import ROOT

CLIENT_CONFIG: Final = Config(
    read_timeout=180, retries={"mode": "standard", "total_max_attempts": 4}
)
"""It waits for longer than any function takes that is called here: `sweep` may take two minutes."""

HASH: Final = re.compile(r"[0-9A-F]{8}$")
"""What the CDK adds to the name of a construct for its logical id."""

Clients = Callable[[str], Any]
"""boto3 clients, by service."""


class NoStack(Exception):
    """There is no stack to work on."""


class NotDeployed(NoStack):
    """The account has no stack of that name in the region."""


def add_stack_options(parser: argparse.ArgumentParser, profile: str = "aws") -> None:
    """Let a command take `--stack`, and `--profile local` for what `make up` started."""
    parser.add_argument("--stack", help="by default the one in server.toml")
    parser.add_argument("--profile", choices=["aws", "local"], default=profile)


def chosen_stack(options: argparse.Namespace) -> str:
    """The name of the stack that `--stack` chooses."""
    return str(options.stack or ServerFile.read(ROOT).stack)


def description_of(cloudformation: Any, stack: str) -> dict[str, Any]:
    """What DescribeStacks says of a stack. Raises NotDeployed, and ClientError."""
    try:
        (description,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        # CloudFormation has no code of its own for it.
        if "does not exist" not in error.response["Error"]["Message"]:
            raise
        raise NotDeployed(f"the account has no stack {stack} in this region") from error
    return dict(description)


def outputs_of(cloudformation: Any, stack: str) -> dict[str, str]:
    """The outputs of a stack. Raises NotDeployed, and ClientError."""
    return _outputs(description_of(cloudformation, stack))


def _outputs(description: dict[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}


def template_of(cloudformation: Any, stack: str) -> dict[str, Any]:
    """The template that is deployed; empty for one that is no JSON. Raises ClientError."""
    body = cloudformation.get_template(StackName=stack)["TemplateBody"]
    return body if isinstance(body, dict) else {}


def part_of(logical_id: str, *ends: str) -> str:
    """The part of the stack that a resource is of, by the end of its logical id before the CDK's
    hash: `ApiLogs1A2B3C4D`, whose end is `Logs`, is of `Api`.
    """
    name = HASH.sub("", logical_id)
    for end in ends:
        if name.endswith(end):
            return name.removesuffix(end)
    return name


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
    """A stack in its account. Each of its parts is read once."""

    def __init__(self, name: str, clients: Clients) -> None:
        """Raises NotDeployed, and ClientError."""
        self.name, self.client = name, clients
        self.description = description_of(clients("cloudformation"), name)
        self.outputs = _outputs(self.description)

    @cached_property
    def template(self) -> dict[str, Any]:
        """The template that is deployed."""
        return template_of(self.client("cloudformation"), self.name)

    @cached_property
    def resources(self) -> list[dict[str, Any]]:
        """The summaries of the resources that are there (ListStackResources)."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return [
            summary
            for page in pages.paginate(StackName=self.name)
            for summary in page["StackResourceSummaries"]
            if summary.get("ResourceStatus") != "DELETE_COMPLETE"
            and "PhysicalResourceId" in summary
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
