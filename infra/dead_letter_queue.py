"""A dead-letter queue for what could not be handled, with its alarm and outputs for `make replay`.

Everything that calls a function without waiting for it has one: `tests/infra/test_hops.py` fails
when one is missing.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .alarms import alarm_for_dead_letter_messages
from .encryption import Encryption

RETENTION: Final = Duration.days(14)
"""SQS's maximum. A message that is moved keeps the time at which it entered its first queue."""
LAMBDA_RETRIES: Final = 2
"""Lambda's maximum for asynchronous calls, after one minute and after two more. Lambda chooses
when, and has no jitter to set (Lambda developer guide, "How Lambda handles errors and retries with
asynchronous invocation"). A throttled call does not count: Lambda repeats it, from one second to
five minutes apart, until the event is too old."""


class DeadLetterQueue(sqs.Queue):
    """An encrypted queue, over TLS only, whose alarm rings at the first message.

    The construct that it is in, for instance `Finish`, names the stack's outputs by which
    `make replay` works: `FinishDeadLetterQueueUrl` is the queue, and its messages go to
    `FinishFunctionName`, or to `<...>QueueUrl`.
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
        self._source = scope.node.id
        encryption.encrypt_queue(self)
        alarm_for_dead_letter_messages(scope, self, alarm_description)
        self._output("DeadLetterQueueUrl", self.queue_url)

    def allow_sending(self, grantee: iam.IGrantable) -> None:
        """Allow to send what could not be handled."""
        self.grant(grantee, "sqs:SendMessage")
        self._encryption.allow_sending(grantee)

    def replay_to_function(self, function: lambda_.IFunction) -> None:
        """Let `make replay` call the function again."""
        self._output("FunctionName", function.function_name)

    def replay_to_queue(self, queue: sqs.IQueue) -> None:
        """Let `make replay` send to the queue again."""
        self._output("QueueUrl", queue.queue_url)

    def keep_failed_calls(
        self, scope: Construct, function: lambda_.Function, max_age: Duration
    ) -> None:
        """Keep a function's asynchronous calls that failed, or were throttled for `max_age`.

        The message holds the event and the function's error. Lambda sends it with the function's
        role. (The CDK's own destination construct would allow more than to send.)
        """
        self.allow_sending(function)
        lambda_.CfnEventInvokeConfig(
            scope,
            "OnFailure",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=LAMBDA_RETRIES,
            maximum_event_age_in_seconds=max_age.to_seconds(),
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(
                    destination=self.queue_arn
                )
            ),
        )
        self.replay_to_function(function)

    def _output(self, name: str, value: str) -> None:
        CfnOutput(Stack.of(self), f"{self._source}{name}", value=value)
