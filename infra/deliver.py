"""From an event on the bus to the mailboxes of those who follow the task."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .dead_letter_queue import DeadLetterQueue
from .event_bus import RULE_TRIES, RULE_TRIES_FOR, TaskEvents
from .function_code import FunctionCode
from .grants import allow
from .mailboxes import MailboxesTable

TIMEOUT = Duration.seconds(5)
BATCH_SIZE = 10
VISIBILITY = Duration.seconds(6 * TIMEOUT.to_seconds())
"""Six times the function's timeout, for what Lambda tries again when it is throttled (Lambda
developer guide, "Using Lambda with Amazon SQS")."""
MAX_RECEIVES = 1000
"""SQS's limit: of a delivery that fails every time, more than eight hours. Each message comes back
when its own visibility timeout is over; there is no jitter to choose."""
RETENTION = Duration.days(1)
LATE = Duration.minutes(1)


class DeliverFunction(Construct):
    """A rule on the bus, a queue, and the function that empties it.

    The rule could call the function, but Lambda's own queue for such calls gives up after two
    retries. This one keeps an event until it is delivered, and works the same on an emulator.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        mailboxes: MailboxesTable,
        task_events: TaskEvents,
    ) -> None:
        super().__init__(scope, construct_id)
        undelivered = DeadLetterQueue(
            self,
            "Undelivered",
            code.encryption,
            "Changes of tasks did not reach those who listen for them, in more than eight hours",
        )
        queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=VISIBILITY,
            retention_period=RETENTION,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=undelivered, max_receive_count=MAX_RECEIVES
            ),
        )
        code.encryption.encrypt_queue(queue)
        age = queue.metric_approximate_age_of_oldest_message(
            period=Duration.minutes(1), statistic="Maximum"
        )
        age.create_alarm(
            self,
            "Late",
            alarm_description="Changes of tasks are delivered more than a minute late",
            threshold=LATE.to_seconds(),
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            # Nothing changes. What nobody receives for a day is in no dead-letter queue, either.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        undelivered.replay_to_queue(queue)
        task_events.on_change(
            self,
            "TaskChanged",
            targets.SqsQueue(
                queue,
                dead_letter_queue=undelivered,
                max_event_age=RULE_TRIES_FOR,
                retry_attempts=RULE_TRIES,
            ),
        )
        function = code.function(
            self,
            "deliver",
            description="Writes changes of tasks into the mailboxes of those who follow them",
            environment={"MAILBOXES_TABLE": mailboxes.name},
            timeout=TIMEOUT,
        )
        mailboxes.grant(function, "dynamodb:Query", "dynamodb:BatchWriteItem")
        # What Lambda needs (Lambda developer guide, "Execution role permissions" for SQS); the
        # CDK's event source would allow more.
        allow(
            function,
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            [queue.queue_arn],
        )
        code.encryption.allow_receiving(function)
        function.add_event_source_mapping(
            "Queue",
            event_source_arn=queue.queue_arn,
            batch_size=BATCH_SIZE,
            report_batch_item_failures=True,
        )
