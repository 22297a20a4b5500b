"""IAM permissions of functions and state machines: single actions on named resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from .cdk_nag_findings import acknowledge_wildcard

PSEUDO_PARAMETERS: Final = {
    "${AWS::Partition}": Aws.PARTITION,
    "${AWS::Region}": Aws.REGION,
    "${AWS::AccountId}": Aws.ACCOUNT_ID,
}
"""What a declared resource may name: that of the deployment (CloudFormation user guide, "Pseudo
parameters reference")."""


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


def allow_of_all_tools(function: lambda_.Function, actions: Sequence[str], resource: str) -> None:
    """Allow actions on a resource of every tool, whose ARN ends in a `*` for the tool's name."""
    allow(function, actions, [resource])
    acknowledge_wildcard(role_of(function), resource, "It stands for the name of a tool")


def allow_declared(role: iam.IRole, name: str, statements: Iterable[Mapping[str, Any]]) -> None:
    """Allow what a tool, a resource or a prompt declares as its permissions.

    A `*` in a resource is accepted; cdk-nag refuses a `*` in an action. A resource may name
    PSEUDO_PARAMETERS: tools do not know where they are deployed.
    Raises ValueError when a declaration is not a policy statement.
    """
    for declared in statements:
        resources = [_of_deployment(resource) for resource in declared.get("resources", ())]
        statement = {**declared, "resources": resources} if resources else declared
        try:
            _add(role, statement)
        except TypeError as error:
            raise ValueError(f"{name}: permissions {declared!r}: {error}") from None
        for resource in resources:
            if "*" in resource:
                reason = f"{name} declares it in its permissions"
                acknowledge_wildcard(role, resource, reason)


def role_of(function: lambda_.Function) -> iam.IRole:
    """The function's own role."""
    if function.role is None:
        raise TypeError(f"{function.node.path} has no role")
    return function.role


def _of_deployment(resource: str) -> str:
    for name, value in PSEUDO_PARAMETERS.items():
        resource = resource.replace(name, value)
    return resource


def _add(role: iam.IRole, statement: Mapping[str, Any]) -> None:
    role.add_to_principal_policy(iam.PolicyStatement(**statement))
