"""The tasks table, and what all tables have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks.tasks.reconcile_schedule import INDEX

from .encryption import Encryption
from .grants import allow

RECOVERABLE = dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True)


class Table(Construct):
    """A table: on demand, encrypted, with expiry."""

    def __init__(
        self, scope: Construct, construct_id: str, encryption: Encryption, **options: Any
    ) -> None:
        super().__init__(scope, construct_id)
        self._encryption = encryption
        self.table = dynamodb.Table(
            self,
            "Table",
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expiresAt",
            # Tasks outlive nothing: a removed stack has no one to read them.
            removal_policy=RemovalPolicy.DESTROY,
            **encryption.of_a_table,
            **options,
        )

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.table_name

    def grant(self, grantee: iam.IGrantable, *actions: str) -> None:
        """Allow single actions on the table's items, for instance `dynamodb:GetItem`.

        The CDK's own `grant` would allow them on every index as well.
        """
        self._allow(grantee, actions, self.table.table_arn)

    def _allow(self, grantee: iam.IGrantable, actions: Sequence[str], resource: str) -> None:
        grantee.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(actions=list(actions), resources=[resource])
        )
        self._encryption.allow_using_tables(grantee)


class TasksTable(Table):
    """One row per task, recoverable, with a stream of changes and an index of what is due.

    The index holds a row's key, and only while somebody may have to look at the row again
    (`mcp_tasks.tasks.reconcile_schedule`): of tasks that are over, it knows nothing.
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="taskId", type=dynamodb.AttributeType.STRING),
            point_in_time_recovery_specification=RECOVERABLE,
            # Both, because a write that clients cannot see is told by what it left as it was.
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        )
        self.table.add_global_secondary_index(
            index_name=INDEX,
            partition_key=dynamodb.Attribute(
                name="reconcileShard", type=dynamodb.AttributeType.STRING
            ),
            sort_key=dynamodb.Attribute(name="reconcileAt", type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )

    def allow_finding_due(self, grantee: iam.IGrantable) -> None:
        """Let it ask which rows are due."""
        self._allow(grantee, ["dynamodb:Query"], f"{self.table.table_arn}/index/{INDEX}")

    @property
    def stream_arn(self) -> str:
        """The stream of the rows' changes."""
        if self.table.table_stream_arn is None:
            raise TypeError(f"{self.node.path} has no stream")
        return self.table.table_stream_arn

    def allow_reading_stream(self, function: lambda_.Function) -> None:
        """Let it read the stream of the rows' changes.

        All four on the stream itself, as in DynamoDB's own tutorial ("DynamoDB Streams and Lambda
        triggers"). The CDK's event source would allow to list the streams of all tables.
        """
        allow(
            function,
            [
                "dynamodb:DescribeStream",
                "dynamodb:GetRecords",
                "dynamodb:GetShardIterator",
                "dynamodb:ListStreams",
            ],
            [self.stream_arn],
        )
        self._encryption.allow_using_tables(function)
