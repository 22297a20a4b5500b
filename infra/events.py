"""The bus on which every change of a task is an event."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from constructs import Construct

from mcp_tasks.notifications.bus import DETAIL_TYPE, SOURCE

from .encryption import Encryption


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
        )

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
