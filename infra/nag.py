"""cdk-nag findings that are accepted, each with its reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding on a construct and what it contains."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
