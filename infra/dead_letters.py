"""A queue for what could not be handled, and an alarm that says so."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .encryption import Encryption

RETENTION = Duration.days(14)
"""SQS's longest. A message keeps the time at which it came into the queue that it failed in."""


class DeadLetterQueue(sqs.Queue):
    """Encrypted, over TLS only. Its alarm does nothing: whom it tells is the deployer's choice."""

    def __init__(
        self, scope: Construct, construct_id: str, encryption: Encryption, alarm_description: str
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
        )
        self._encryption = encryption
        encryption.encrypt_queue(self)
        messages = self.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic="Maximum"
        )
        messages.create_alarm(
            self,
            "Alarm",
            alarm_description=alarm_description,
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            # SQS tells nothing of a queue that nobody uses.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def allow_sending(self, grantee: iam.IGrantable) -> None:
        """Let it send what it could not handle."""
        self.grant(grantee, "sqs:SendMessage")
        self._encryption.allow_sending(grantee)
