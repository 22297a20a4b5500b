"""The mailboxes table."""

from __future__ import annotations

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from .cdk_nag_findings import acknowledge
from .encryption import Encryption
from .table import Table


class MailboxesTable(Table):
    """Who follows which task, and what waits for them."""

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
        )
        acknowledge(
            self.table,
            "AwsSolutions-DDB3",
            "What is in it lives for minutes, and a listen that begins anew finds each task's "
            "state in the tasks table: there is nothing to recover",
        )
