"""A deployed stack, on AWS or on this machine: its clients and its outputs."""

from __future__ import annotations

from collections.abc import Callable
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
