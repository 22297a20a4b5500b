"""The tasks table."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct


class TasksTable(Construct):
    """One row per task, on demand, encrypted, recoverable, with expiry and a stream of changes."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self._table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="taskId", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="expiresAt",
            # Both, because a write that clients cannot see is told by what it left as it was.
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            # Tasks outlive nothing: a removed stack has no one to read them.
            removal_policy=RemovalPolicy.DESTROY,
        )

    @property
    def name(self) -> str:
        """The table's name."""
        return self._table.table_name

    @property
    def stream_arn(self) -> str:
        """The stream of the rows' changes."""
        if self._table.table_stream_arn is None:
            raise TypeError(f"{self.node.path} has no stream")
        return self._table.table_stream_arn

    def grant(self, grantee: iam.IGrantable, *actions: str) -> None:
        """Allow single actions on the table's items, for instance `dynamodb:GetItem`."""
        self._table.grant(grantee, *actions)
