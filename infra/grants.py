"""IAM permissions of functions and state machines: single actions on named resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from .cdk_nag_findings import acknowledge_wildcard


def allow(function: lambda_.Function, actions: Sequence[str], resources: Sequence[str]) -> None:
    """Allow actions on resources. Does nothing without resources."""
    if resources:
        _add(role_of(function), {"actions": actions, "resources": resources})


def allow_executions(
    function: lambda_.Function, actions: Sequence[str], executions: Sequence[str]
) -> None:
    """Allow actions on the executions of tasks, whose ARNs end in a `*`."""
    allow(function, actions, executions)
    for resource in executions:
        acknowledge_wildcard(
            role_of(function),
            resource,
            "Executions are named after tasks: the cell and 128 random bits",
        )


def allow_declared(role: iam.IRole, name: str, statements: Iterable[Mapping[str, Any]]) -> None:
    """Allow what a tool, a resource or a prompt declares as its permissions.

    A `*` in a resource is accepted; cdk-nag refuses a `*` in an action.
    Raises ValueError when a declaration is not a policy statement.
    """
    for statement in statements:
        try:
            _add(role, statement)
        except TypeError as error:
            raise ValueError(f"{name}: permissions {statement!r}: {error}") from None
        for resource in statement.get("resources", ()):
            if "*" in resource:
                reason = f"{name} declares it in its permissions"
                acknowledge_wildcard(role, resource, reason)


def role_of(function: lambda_.Function) -> iam.IRole:
    """The function's own role."""
    if function.role is None:
        raise TypeError(f"{function.node.path} has no role")
    return function.role


def _add(role: iam.IRole, statement: Mapping[str, Any]) -> None:
    role.add_to_principal_policy(iam.PolicyStatement(**statement))
