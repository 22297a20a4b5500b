"""`deliver`: from an event on the bus to the mailboxes that follow what has changed."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mcp_tasks import environment

from .alarms import alarm_for_delivery_delay, alarm_for_oldest_message, metrics_namespace
from .dead_letter_queue import DeadLetterQueue
from .event_bus import RULE_MAX_AGE, RULE_RETRIES, TaskEvents
from .function_code import FunctionCode
from .grants import allow
from .reserved_concurrency import UNRESERVED_DELIVERIES
from .tables import MailboxesTable

TIMEOUT: Final = Duration.seconds(5)
BATCH_SIZE: Final = 10
VISIBILITY_TIMEOUT: Final = Duration.seconds(6 * TIMEOUT.to_seconds())
"""Six times the function's timeout, so that Lambda can repeat what was throttled (Lambda developer
guide, "Using Lambda with Amazon SQS")."""
MAX_RECEIVES: Final = 1000
"""SQS's maximum. A delivery that fails every time is repeated for more than eight hours. Each
message comes back when its own visibility timeout ends; there is no jitter to set."""
RETENTION: Final = Duration.days(1)
ALARM_AGE: Final = Duration.minutes(1)


class DeliverFunction(Construct):
    """A rule on the bus, a queue, and the function that takes events from the queue.

    The rule could call the function itself, but Lambda's queue for asynchronous calls gives up
    after two retries. This queue keeps an event until it is delivered.
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
        queue, dead_letters = self._queues(code)
        target = targets.SqsQueue(
            queue,
            dead_letter_queue=dead_letters,
            max_event_age=RULE_MAX_AGE,
            retry_attempts=RULE_RETRIES,
        )
        task_events.on_change(self, "TaskChanged", target)
        task_events.on_announcement(self, "ServerChanged", target)
        self.function = code.function(
            self,
            "deliver",
            description="Writes changes of tasks into the mailboxes of subscriptions",
            environment={
                environment.MAILBOXES_TABLE: mailboxes.name,
                **metrics_namespace(self),
            },
            timeout=TIMEOUT,
        )
        reads = ("dynamodb:GetItem", "dynamodb:Query")
        mailboxes.grant(self.function, *reads, "dynamodb:BatchWriteItem")
        self._read_queue(self.function, queue, code.reserved.of("deliver"))
        code.encryption.allow_receiving(self.function)

    def _queues(self, code: FunctionCode) -> tuple[sqs.Queue, DeadLetterQueue]:
        dead_letters = DeadLetterQueue(
            self,
            "DeadLetterQueue",
            code.encryption,
            "`deliver` could not write changes of tasks into mailboxes in more than eight hours: "
            "subscriptions did not get them",
        )
        queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=VISIBILITY_TIMEOUT,
            retention_period=RETENTION,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=dead_letters, max_receive_count=MAX_RECEIVES
            ),
        )
        code.encryption.encrypt_queue(queue)
        dead_letters.replay_to_queue(queue)
        # SQS deletes what nobody receives for a day, and moves it into no dead-letter queue.
        alarm_for_oldest_message(
            self, queue, ALARM_AGE, "Changes of tasks are delivered more than a minute late"
        )
        alarm_for_delivery_delay(
            self,
            ALARM_AGE,
            "Changes of tasks were tried for more than a minute and could not be delivered",
        )
        return queue, dead_letters

    def _read_queue(
        self, function: lambda_.Function, queue: sqs.Queue, reserved: int | None
    ) -> None:
        """Lambda developer guide, "Execution role permissions" for SQS. The CDK's event source
        would allow more. Lambda hands on no more batches at once than there are instances: a batch
        that finds none comes back only after its visibility timeout ("Configuring maximum
        concurrency for Amazon SQS event sources").
        """
        allow(
            function,
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            [queue.queue_arn],
        )
        function.add_event_source_mapping(
            "Queue",
            event_source_arn=queue.queue_arn,
            batch_size=BATCH_SIZE,
            report_batch_item_failures=True,
            max_concurrency=reserved or UNRESERVED_DELIVERIES,
        )
