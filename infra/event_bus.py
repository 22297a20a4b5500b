"""The bus on which every change of a task is an event."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from mcp_tasks.notifications.event_bus import DETAIL_TYPE, SOURCE

from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .encryption import Encryption

RULE_TRIES: Final = 185
RULE_TRIES_FOR: Final = Duration.hours(24)
"""EventBridge's most, for a rule to reach its target, ever more seldom and with jitter, which it
chooses. What it may not do, or finds nothing to do with, is in the dead-letter queue at once
(EventBridge user guide, "Event retry policy and using dead-letter queues")."""


class TaskEvents(Construct):
    """An EventBridge bus of the stack's own: rules of others on it hear of nothing else.

    It has no archive, which would keep tasks' results long after their rows; what could not be
    delivered is in `deliver`'s dead-letter queue for 14 days, though.
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        self._bus = events.EventBus(
            self,
            "Bus",
            event_bus_name=Stack.of(self).stack_name,
            description="Every change of every task",
            kms_key=encryption.key,
            dead_letter_queue=self._undecrypted(encryption),
        )

    def _undecrypted(self, encryption: Encryption) -> DeadLetterQueue | None:
        """With a key that can be taken away, the bus itself may fail, after it accepted an event
        (EventBridge user guide, "Using dead-letter queues to capture encrypted event errors").
        """
        if encryption.key is None:
            return None
        queue = DeadLetterQueue(
            self,
            "Undecrypted",
            encryption,
            "The event bus could not use its KMS key, and changes of tasks went to nobody",
        )
        acknowledge(queue, "AwsSolutions-SQS3", "A dead-letter queue itself, of a bus")
        stack = Stack.of(self)
        bus = stack.format_arn(
            service="events", resource="event-bus", resource_name=stack.stack_name
        )
        queue.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[queue.queue_arn],
                conditions={"ArnEquals": {"aws:SourceArn": bus}},
            )
        )
        return queue

    @property
    def name(self) -> str:
        """The bus's name: the stack's."""
        return self._bus.event_bus_name

    def allow_publishing(self, grantee: iam.IGrantable) -> None:
        """Let it put events onto the bus."""
        self._bus.grant_put_events_to(grantee)

    def on_change(self, scope: Construct, construct_id: str, target: events.IRuleTarget) -> None:
        """Send every change of a task to a target."""
        events.Rule(
            scope,
            construct_id,
            event_bus=self._bus,
            event_pattern=events.EventPattern(source=[SOURCE], detail_type=[DETAIL_TYPE]),
            targets=[target],
        )
