"""The stack's DynamoDB tables: tasks (with a stream and indexes), mailboxes, callers, sessions,
journals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks.tasks.reconcile_schedule import INDEX as RECONCILE_SCHEDULE
from mcp_tasks.tasks.row_updates import READ_BY_WORKER
from mcp_tasks.tasks.task_list import CREATED_AT, PRINCIPAL_KEY
from mcp_tasks.tasks.task_list import INDEX as BY_PRINCIPAL

from .cdk_nag_findings import acknowledge
from .encryption import Encryption
from .grants import allow

RECOVERABLE: Final = dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True)
STRING, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER


class Table(Construct):
    """A table: billed on demand, encrypted, with expiry of items.

    It is removed with the stack, unless `protect_data` keeps it.
    """

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
    """One row per task, with point-in-time recovery, a stream of changes and two indexes of keys.

    The reconcile schedule (`mcp_tasks.tasks.reconcile_schedule`) is sparse: it has the tasks that
    still have to be reconciled. The other one has each caller's tasks, for `tasks/list`
    (`mcp_tasks.tasks.task_list`).
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="taskId", type=STRING),
            point_in_time_recovery_specification=RECOVERABLE,
            # Both images: `publish` compares them, and leaves out writes that clients cannot see.
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        )
        self._add_index(RECONCILE_SCHEDULE, "reconcileShard", "reconcileAt")
        self._add_index(BY_PRINCIPAL, PRINCIPAL_KEY, CREATED_AT)

    def _add_index(self, name: str, partition_key: str, sort_key: str) -> None:
        self.table.add_global_secondary_index(
            index_name=name,
            partition_key=dynamodb.Attribute(name=partition_key, type=STRING),
            sort_key=dynamodb.Attribute(name=sort_key, type=NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )

    def allow_query_of_reconcile_schedule(self, grantee: iam.IGrantable) -> None:
        """Allow to query which tasks have to be reconciled."""
        self._allow_query(grantee, RECONCILE_SCHEDULE)

    def allow_listing(self, grantee: iam.IGrantable) -> None:
        """Allow to query which tasks a caller has."""
        self._allow_query(grantee, BY_PRINCIPAL)

    def _allow_query(self, grantee: iam.IGrantable, index: str) -> None:
        self._allow(grantee, ["dynamodb:Query"], f"{self.table.table_arn}/index/{index}")

    def allow_reports(self, worker: iam.IGrantable, attributes: Collection[str]) -> None:
        """Allow a worker to write some attributes of rows, and nothing else.

        DynamoDB developer guide, "Using IAM policy conditions for fine-grained access control". A
        write that names another attribute is denied, so a worker cannot write a row that would be
        taken for a task, and no row is returned to it.
        """
        worker.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["dynamodb:UpdateItem"],
                resources=[self.table.table_arn],
                conditions={
                    "ForAllValues:StringEquals": {"dynamodb:Attributes": sorted(attributes)},
                    "StringEqualsIfExists": {"dynamodb:ReturnValues": "NONE"},
                    # Without it, a request that names no attribute would pass the first one.
                    "Null": {"dynamodb:Attributes": "false"},
                },
            )
        )
        self._encryption.allow_using_tables(worker)

    def allow_reading_status(self, worker: iam.IGrantable) -> None:
        """Allow a worker to read whether a task goes on, and nothing else of its row."""
        worker.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["dynamodb:GetItem"],
                resources=[self.table.table_arn],
                conditions={
                    "ForAllValues:StringEquals": {"dynamodb:Attributes": sorted(READ_BY_WORKER)},
                    "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
                    "Null": {"dynamodb:Attributes": "false"},
                },
            )
        )

    @property
    def stream_arn(self) -> str:
        """The stream of the rows' changes."""
        if self.table.table_stream_arn is None:
            raise TypeError(f"{self.node.path} has no stream")
        return self.table.table_stream_arn

    def allow_reading_stream(self, function: lambda_.Function) -> None:
        """Allow a function to read the stream of the rows' changes.

        All four actions on the stream itself, as in DynamoDB's own tutorial ("DynamoDB Streams and
        Lambda triggers"). The CDK's event source would allow to list the streams of all tables.
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


class MailboxesTable(Table):
    """The mailboxes of subscriptions, and the tasks that each subscription names."""

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="pk", type=STRING),
            sort_key=dynamodb.Attribute(name="sk", type=STRING),
        )
        acknowledge(
            self.table,
            "AwsSolutions-DDB3",
            "Mailboxes live for minutes, and a new subscription reads each task's state from the "
            "tasks table: there is nothing to recover",
        )


class CallersTable(Table):
    """The quotas and the idempotency keys of callers."""

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="pk", type=STRING),
            # An idempotency key lives as long as its task, which can be recovered as well.
            point_in_time_recovery_specification=RECOVERABLE,
        )


class SessionsTable(Table):
    """What is remembered of sessions beside their ids."""

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="pk", type=STRING),
            sort_key=dynamodb.Attribute(name="sk", type=STRING),
        )
        acknowledge(
            self.table,
            "AwsSolutions-DDB3",
            "A session that is lost begins anew: there is nothing to recover",
        )


class JournalTable(Table):
    """What the durable operations of tools have come to (`mcp_tasks.durable.journal_table`)."""

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption,
            partition_key=dynamodb.Attribute(name="pk", type=STRING),
            sort_key=dynamodb.Attribute(name="sk", type=STRING),
            # A task that waits for weeks could not go on without it.
            point_in_time_recovery_specification=RECOVERABLE,
        )

    def allow_own(self, worker: iam.IGrantable, tool: str) -> None:
        """Allow a worker to read and write the journals of its own tool's tasks."""
        worker.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["dynamodb:PutItem", "dynamodb:Query"],
                resources=[self.table.table_arn],
                # Both actions always name a partition.
                conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{tool}#*"]}},
            )
        )
        self._encryption.allow_using_tables(worker)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one stack."""

    tasks: TasksTable
    mailboxes: MailboxesTable
    callers: CallersTable
    sessions: SessionsTable
    journal: JournalTable

    @classmethod
    def create(cls, scope: Construct, encryption: Encryption) -> Tables:
        """Add the tables to a stack."""
        return cls(
            TasksTable(scope, "Tasks", encryption),
            MailboxesTable(scope, "Mailboxes", encryption),
            CallersTable(scope, "Callers", encryption),
            SessionsTable(scope, "Sessions", encryption),
            JournalTable(scope, "Journal", encryption),
        )

    def allow_ending(self, function: lambda_.Function) -> None:
        """Allow to end tasks after their subtasks, and to tell parents by their journals."""
        actions = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem")
        self.tasks.grant(function, *actions)
        self.journal.grant(function, "dynamodb:PutItem")
