"""Log groups: encrypted like all else, and kept for a month, or until the stack is removed."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from .encryption import Encryption


def log_group(scope: Construct, construct_id: str, encryption: Encryption) -> logs.LogGroup:
    """A log group. Its name begins with the stack's, as the key's policy wants it."""
    return logs.LogGroup(
        scope,
        construct_id,
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=RemovalPolicy.DESTROY,
        encryption_key=encryption.key,
    )
