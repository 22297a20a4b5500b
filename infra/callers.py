"""The callers table."""

from __future__ import annotations

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from .encryption import Encryption
from .table import RECOVERABLE, Table


class CallersTable(Table):
    """What each caller has open, and its idempotency keys."""

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            # An idempotency key lives as long as its task, which can be recovered as well.
            point_in_time_recovery_specification=RECOVERABLE,
        )
