"""The mailboxes table."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from .nag import acknowledge


class MailboxesTable(Construct):
    """Who follows which task, and what waits for them; on demand, encrypted, with expiry."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            time_to_live_attribute="expiresAt",
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            self._table,
            "AwsSolutions-DDB3",
            "What is in it lives for minutes, and a listen that begins anew finds each task's "
            "state in the tasks table: there is nothing to recover",
        )

    @property
    def name(self) -> str:
        """The table's name."""
        return self._table.table_name

    def grant(self, grantee: iam.IGrantable, *actions: str) -> None:
        """Allow single actions on the table's items, for instance `dynamodb:Query`."""
        self._table.grant(grantee, *actions)
