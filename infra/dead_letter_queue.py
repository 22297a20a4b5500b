"""A queue for what could not be handled, an alarm that says so, and what `make replay` does.

Every hop that nobody waits for has one: `tests/infra/test_hops.py` fails for one that has not.
"""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .encryption import Encryption

RETENTION = Duration.days(14)
"""SQS's longest. A message keeps the time at which it came into the queue that it failed in."""
CALLS_AGAIN = 2
"""Lambda's most, after one minute and after two more: it chooses when, and there is no jitter to
choose (Lambda developer guide, "How Lambda handles errors and retries with asynchronous
invocation"). A call that is throttled is none: Lambda waits from one second up to five minutes, as
often as the event's age allows."""


class DeadLetterQueue(sqs.Queue):
    """Encrypted, over TLS only. Whom its alarm tells is the deployer's choice (`infra/alarms.py`).

    Its hop is the construct that it is in: the stack's output `<Hop>DeadLetters` is the queue, and
    `make replay` hands what is in it to the output `<Hop>Function`, or `<Hop>Queue`.
    """

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
        self._hop = scope.node.id
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
        CfnOutput(Stack.of(self), f"{self._hop}DeadLetters", value=self.queue_url)

    def allow_sending(self, grantee: iam.IGrantable) -> None:
        """Let it send what it could not handle."""
        self.grant(grantee, "sqs:SendMessage")
        self._encryption.allow_sending(grantee)

    def replay_to_function(self, function: lambda_.IFunction) -> None:
        """`make replay` calls the function again."""
        CfnOutput(Stack.of(self), f"{self._hop}Function", value=function.function_name)

    def replay_to_queue(self, queue: sqs.IQueue) -> None:
        """`make replay` sends to the queue again."""
        CfnOutput(Stack.of(self), f"{self._hop}Queue", value=queue.queue_url)

    def keep_failed_calls(
        self, scope: Construct, function: lambda_.Function, max_age: Duration
    ) -> None:
        """Take the calls of a function that nobody waits for, when it failed, or was throttled for
        longer than `max_age`: the event, and what came of it.

        Lambda sends with the function's role. (The CDK's own destination construct would allow more
        than to send.)
        """
        self.allow_sending(function)
        lambda_.CfnEventInvokeConfig(
            scope,
            "OnFailure",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=CALLS_AGAIN,
            maximum_event_age_in_seconds=max_age.to_seconds(),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(
                    destination=self.queue_arn
                )
            ),
        )
        self.replay_to_function(function)
