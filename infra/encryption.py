"""The keys that encrypt the stack's data: keys that AWS manages, or one KMS key for everything.

A KMS key (`-c encryption=customer`, or the ARN of a key) encrypts the tables and their stream, the
bucket, the queues, the events, the executions and the definitions of the state machines, the key of
`requestState`, the functions' environment, and the logs. It does not encrypt the functions' code,
which holds no data, and requests on their way through API Gateway, which takes no key for them.

Each role may use the key for the data of the services that it uses, and for nothing else. What was
written with an earlier key (`-c earlier_keys=`) it may still read.

The stack's own key is never deleted with the stack, nor by a deployment that forgets
`encryption=customer`: the bucket, the backups and the logs that the stack leaves behind need it,
and no data can be decrypted from the moment at which a key's deletion is scheduled (KMS developer
guide, "Delete an AWS KMS key").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .operation_options import AWS_MANAGED, OWN_KEY

EXECUTION_LOGS: Final = "/aws/vendedlogs/states/"
"""How the name of the executions' log group begins. Another beginning would make Step Functions
lengthen a policy of the account, which has a limit, for each group (Step Functions developer guide,
"Using CloudWatch Logs to log execution history")."""
STATE_MACHINE: Final = "kms:EncryptionContext:aws:states:stateMachineArn"
READING: Final = ("kms:Decrypt", "kms:DescribeKey")
"""What an earlier key is still good for. `DescribeKey` is for tables, whose own key DynamoDB
encrypts anew when the table gets another KMS key."""


def allow_decrypting_executions(
    grantee: iam.IGrantable, key_arn: str, state_machines: Sequence[str]
) -> None:
    """Allow to decrypt executions with the key of their state machines.

    Step Functions developer guide, "Data at rest encryption": the encryption context has the state
    machine's ARN.
    """
    _add(grantee, [key_arn], {STATE_MACHINE: list(state_machines)}, ["kms:Decrypt"])


class Encryption(Construct):
    """The stack's own key, the given key, or none; and who may use it and the earlier keys."""

    def __init__(
        self, scope: Construct, construct_id: str, choice: str, earlier_keys: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, construct_id)
        self._earlier_keys = list(earlier_keys)
        self.key: kms.IKey | None = None
        if choice == OWN_KEY:
            self.key = kms.Key(
                self,
                "Key",
                description=f"Encrypts the data of {Stack.of(self).stack_name}",
                enable_key_rotation=True,
                # A stack whose creation fails leaves no key behind.
                removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            )
        elif choice != AWS_MANAGED:
            # Its owner writes its policy, which needs the statements of `_let_services_use`.
            self.key = kms.Key.from_key_arn(self, "Key", choice)
        if self.key:
            self._let_services_use(self.key)

    @property
    def of_a_table(self) -> dict[str, Any]:
        """Arguments of `dynamodb.Table`.

        Without a key, AWS owns it, and nobody pays for its calls. The key `aws/dynamodb`, which AWS
        manages in the account, is charged for as any other ("AWS KMS charges apply"); a change from
        it to the owned one interrupts nothing (CloudFormation template reference,
        "AWS::DynamoDB::Table SSESpecification").
        """
        if self.key is None:
            return {"encryption": dynamodb.TableEncryption.DEFAULT}
        return {
            "encryption": dynamodb.TableEncryption.CUSTOMER_MANAGED,
            "encryption_key": self.key,
        }

    @property
    def of_a_bucket(self) -> dict[str, Any]:
        """Arguments of `s3.Bucket`. A bucket key saves a call to KMS for each object."""
        if self.key is None:
            return {"encryption": s3.BucketEncryption.S3_MANAGED}
        return {
            "encryption": s3.BucketEncryption.KMS,
            "encryption_key": self.key,
            "bucket_key_enabled": True,
        }

    def encrypt_queue(self, queue: sqs.Queue) -> None:
        """Encrypt a queue that was created with SQS's own key.

        With the key as an argument of `sqs.Queue`, the CDK would let every rule of the account send
        to the queue, because it cannot name the rule in the key's policy (aws/aws-cdk#11158).
        """
        if self.key:
            resource = cast(sqs.CfnQueue, queue.node.default_child)
            resource.sqs_managed_sse_enabled = None
            resource.kms_master_key_id = self.key.key_arn

    def let_publish_to_topics(self, *services: str) -> None:
        """Let services of this account publish to topics that the key encrypts (SNS developer
        guide, "Enable compatibility between event sources from AWS services and encrypted
        topics").
        """
        if self.key:
            account = Stack.of(self).account
            self.key.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal(service) for service in services],
                    actions=["kms:GenerateDataKey*", "kms:Decrypt"],
                    resources=["*"],
                    conditions={"StringEquals": {"aws:SourceAccount": account}},
                )
            )

    def allow_using_tables(self, grantee: iam.IGrantable) -> None:
        """Allow to use tables and their streams. Writing needs Decrypt, too: DynamoDB decrypts the
        table's own key in the name of its caller (DynamoDB developer guide, "DynamoDB encryption at
        rest: How it works").
        """
        self._allow(grantee, "dynamodb", "kms:Decrypt", "kms:DescribeKey")

    def allow_using_objects(self, grantee: iam.IGrantable) -> None:
        """Allow to write and read objects (S3 user guide, "Using server-side encryption with AWS
        KMS keys (SSE-KMS)", "Permissions").
        """
        self._allow(grantee, "s3", "kms:GenerateDataKey", "kms:Decrypt")

    def allow_sending(self, grantee: iam.IGrantable) -> None:
        """Allow to send messages (SQS developer guide, "Key management": for the producer)."""
        self._allow(grantee, "sqs", "kms:GenerateDataKey", "kms:Decrypt")

    def allow_receiving(self, grantee: iam.IGrantable) -> None:
        """Allow to receive messages (SQS developer guide, "Key management": for the consumer)."""
        self._allow(grantee, "sqs", "kms:Decrypt")

    def allow_reading_secrets(self, grantee: iam.IGrantable) -> None:
        """Allow to read secrets (Secrets Manager user guide, "Secret encryption and
        decryption")."""
        self._allow(grantee, "secretsmanager", "kms:Decrypt")

    def allow_reading_executions(
        self, grantee: iam.IGrantable, state_machines: Sequence[str]
    ) -> None:
        """Allow to read the outputs of executions. Their inputs are encrypted with the state
        machine's role (Step Functions API reference, `includedData` of DescribeExecution, and
        SendTaskFailure).
        """
        if state_machines:
            for key_arn in (*([self.key.key_arn] if self.key else []), *self._earlier_keys):
                allow_decrypting_executions(grantee, key_arn, state_machines)

    def allow_going_on(self, role: iam.IRole, state_machine: str) -> None:
        """Allow a state machine's role to go on with executions that began with an earlier key.

        The CDK allows it the present key. Which key a running execution goes on with when its state
        machine gets another, AWS does not say (Step Functions developer guide, "Data at rest
        encryption in Step Functions"); it keeps its definition and its role (API reference,
        "UpdateStateMachine").
        """
        if self._earlier_keys:
            equal = {STATE_MACHINE: state_machine}
            _add(role, self._earlier_keys, equal, ["kms:Decrypt", "kms:GenerateDataKey"])

    def _allow(self, grantee: iam.IGrantable, service: str, *actions: str) -> None:
        via = f"{service}.{Stack.of(self).region}.amazonaws.com"
        self._allow_where(grantee, {"kms:ViaService": via}, *actions)

    def _allow_where(
        self, grantee: iam.IGrantable, equal: Mapping[str, Any], *actions: str
    ) -> None:
        if self.key:
            _add(grantee, [self.key.key_arn], equal, actions)
        reading = [action for action in actions if action in READING]
        if self._earlier_keys:
            _add(grantee, self._earlier_keys, equal, reading)

    def _let_services_use(self, key: kms.IKey) -> None:
        """Allow the services that use the key in nobody's name: CloudWatch Logs for log groups, and
        EventBridge for queues.

        CloudWatch Logs user guide, "Encrypt log data using AWS KMS"; SQS developer guide, "Key
        management", "Configure KMS permissions for AWS services". The CDK adds the statement for
        the bus itself with the bus.

        EventBridge has two statements for queues, of which one is enough. For encrypted topics it
        sends no `aws:SourceAccount` (SNS developer guide, "Enable compatibility between event
        sources from AWS services and encrypted topics"), and for queues AWS does not say. SQS
        itself sends the queue's ARN as the encryption context. `DescribeKey` has no encryption
        context, and the CDK's statement for the bus asks for one.
        """
        let_logs_use(key)
        stack = Stack.of(self)
        queues = stack.format_arn(service="sqs", resource=f"{stack.stack_name}-*")
        sending = ["kms:GenerateDataKey", "kms:Decrypt"]
        for actions, conditions in (
            (
                [*sending, "kms:DescribeKey"],
                {"StringEquals": {"aws:SourceAccount": stack.account}},
            ),
            (sending, {"ArnLike": {"kms:EncryptionContext:aws:sqs:arn": queues}}),
        ):
            key.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    actions=actions,
                    resources=["*"],
                    conditions=conditions,
                )
            )


def _add(
    grantee: iam.IGrantable, keys: Sequence[str], equal: Mapping[str, Any], actions: Sequence[str]
) -> None:
    statement = iam.PolicyStatement(
        actions=list(actions), resources=list(keys), conditions={"StringEquals": equal}
    )
    grantee.grant_principal.add_to_principal_policy(statement)


def let_logs_use(key: kms.IKey) -> None:
    """Allow CloudWatch Logs to use a key for the stack's log groups, whose names begin with the
    stack's (CloudWatch Logs user guide, "Encrypt log data using AWS KMS")."""
    stack = Stack.of(key)
    groups = [
        stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        for name in (f"{stack.stack_name}-*", f"{EXECUTION_LOGS}{stack.stack_name}")
    ]
    key.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
            actions=[
                "kms:Encrypt",
                "kms:Decrypt",
                "kms:ReEncrypt*",
                "kms:GenerateDataKey*",
                "kms:DescribeKey",
            ],
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        )
    )
