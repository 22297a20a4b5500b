"""Log groups: encrypted as all data, and kept for a month.

They are removed with the stack, unless `protect_data` keeps them.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from .encryption import Encryption


def log_group(
    scope: Construct, construct_id: str, encryption: Encryption, name: str | None = None
) -> logs.LogGroup:
    """A log group. Its name begins with the stack's name, which the KMS key's policy requires,
    unless it is given one that the policy knows (`EXECUTION_LOGS`).
    """
    return logs.LogGroup(
        scope,
        construct_id,
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=RemovalPolicy.DESTROY,
        encryption_key=encryption.key,
        log_group_name=name,
    )
