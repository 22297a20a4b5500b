"""The right to read the secrets that a tool declares, and no others."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_lambda as lambda_

from mcp_tasks.registry.secret_reference import SecretReference, secret_reference
from mcp_tasks.registry.tool import Tool

from .grants import allow

ACTIONS = {"secretsmanager": "secretsmanager:GetSecretValue", "ssm": "ssm:GetParameter"}


def allow_secrets(function: lambda_.Function, tool: Tool) -> None:
    """Allow a function to read a tool's secrets.

    A secret or parameter under AWS's own key needs no more. Under a key of yours, the tool declares
    `kms:Decrypt` on that key among its permissions.
    """
    for text in tool.secrets.values():
        reference = secret_reference(text)
        allow(function, [ACTIONS[reference.service]], [_arn(Stack.of(function), reference)])


def environment_of(tools: Iterable[Tool]) -> dict[str, str]:
    """The variables of tools that share a function.

    Raises ValueError when two of them want different values under one name.
    """
    found: dict[str, tuple[str, str]] = {}
    for tool in tools:
        for name, value in tool.env.items():
            other, given = found.setdefault(name, (tool.name, value))
            if given != value:
                raise ValueError(
                    f"{other} and {tool.name} run in one function, within requests, and give the "
                    f"variable {name} different values; rename one"
                )
    return {name: value for name, (_, value) in found.items()}


def _arn(stack: Stack, reference: SecretReference) -> str:
    """The reference's ARN. Secrets Manager ends a secret's ARN with six random characters (user
    guide, "What's in a Secrets Manager secret?").
    """
    if reference.id.startswith("arn:"):
        return reference.id
    if reference.service == "ssm":
        return stack.format_arn(
            service="ssm", resource="parameter", resource_name=reference.id.removeprefix("/")
        )
    return stack.format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{reference.id}-??????",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
