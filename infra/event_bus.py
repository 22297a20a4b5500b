"""The EventBridge bus on which every change of a task, a resource or a list is an event."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from mcp_tasks.notifications.event_bus import DETAIL_TYPE, SOURCE
from mcp_tasks.notifications.server_changes import METHODS

from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .encryption import Encryption

RULE_RETRIES: Final = 185
RULE_MAX_AGE: Final = Duration.hours(24)
"""EventBridge's maxima for a rule to reach its target. EventBridge chooses the intervals, which
grow and have jitter. An event goes to the dead-letter queue at once when the rule may not call its
target, or the target is gone (EventBridge user guide, "Event retry policy and using dead-letter
queues")."""


class TaskEvents(Construct):
    """A bus of the stack's own, so that other rules of the account are not matched against tasks.

    It has no archive, which would keep tasks' results long after their rows. (`deliver`'s
    dead-letter queue keeps undelivered events, for 14 days.)
    """

    def __init__(self, scope: Construct, construct_id: str, encryption: Encryption) -> None:
        super().__init__(scope, construct_id)
        self._bus = events.EventBus(
            self,
            "Bus",
            event_bus_name=Stack.of(self).stack_name,
            description="Every change of a task, a resource and a list",
            kms_key=encryption.key,
            dead_letter_queue=self._dead_letter_queue(encryption),
        )

    def _dead_letter_queue(self, encryption: Encryption) -> DeadLetterQueue | None:
        """For events that the bus accepted and could not decrypt, when its key was taken away
        (EventBridge user guide, "Using dead-letter queues to capture encrypted event errors").
        """
        if encryption.key is None:
            return None
        queue = DeadLetterQueue(
            self,
            "DeadLetterQueue",
            encryption,
            "The event bus could not use its KMS key: subscriptions and event rules did not get "
            "changes of tasks",
        )
        acknowledge(queue, "AwsSolutions-SQS3", "The dead-letter queue of a bus")
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
        """The bus's name, which is the stack's."""
        return self._bus.event_bus_name

    def allow_publishing(self, grantee: iam.IGrantable) -> None:
        """Allow to put events onto the bus."""
        self._bus.grant_put_events_to(grantee)

    def allow_announcing(self, grantee: iam.IGrantable, *methods: str) -> None:
        """Allow to put these notifications onto the bus, and no changes of tasks.

        The service authorization reference calls the key a list, and the user guide's examples take
        it for one string ("Using IAM policy conditions in Amazon EventBridge"). The condition means
        the same for both.
        """
        detail_type = "events:detail-type"
        grantee.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["events:PutEvents"],
                resources=[self._bus.event_bus_arn],
                conditions={
                    "ForAllValues:StringEquals": {detail_type: sorted(methods)},
                    # Without a value, "for all" would hold.
                    "Null": {detail_type: "false"},
                },
            )
        )

    def on_change(self, scope: Construct, construct_id: str, target: events.IRuleTarget) -> None:
        """Add a rule that sends every change of a task to a target."""
        pattern = events.EventPattern(source=[SOURCE], detail_type=[DETAIL_TYPE])
        self._rule(scope, construct_id, target, pattern)

    def on_announcement(
        self, scope: Construct, construct_id: str, target: events.IRuleTarget
    ) -> None:
        """Add a rule that sends every change of a resource or a list to a target, whoever put it
        onto the bus."""
        pattern = events.EventPattern(detail_type=sorted(METHODS))
        self._rule(scope, construct_id, target, pattern)

    def _rule(
        self,
        scope: Construct,
        construct_id: str,
        target: events.IRuleTarget,
        pattern: events.EventPattern,
    ) -> None:
        events.Rule(
            scope,
            construct_id,
            event_bus=self._bus,
            event_pattern=pattern,
            targets=[target],
        )
