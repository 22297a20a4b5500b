"""cdk-nag findings that are accepted, each with its reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, finding: str, reason: str) -> None:
    """Accept one finding on a construct and what it contains."""
    Validations.of(construct).acknowledge(Acknowledgment(id=finding, reason=reason))


def acknowledge_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Accept that a role's policy names `resource`, and no other with a `*`."""
    resolved = Stack.of(construct).resolve(resource)
    parts = [resolved] if isinstance(resolved, str) else resolved["Fn::Join"][1]
    shown = "".join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in parts)
    acknowledge(construct, f"AwsSolutions-IAM5[Resource::{shown}]", reason)


def accept_no_authorization(method: IConstruct, reason: str) -> None:
    """Accept that everybody may call a method of a REST API."""
    for rule in ("AwsSolutions-APIG4", "AwsSolutions-COG4"):
        acknowledge(method, rule, reason)
