"""What tells how the stack is: alarms, whom they notify, a dashboard, saved queries, a budget.

It is made last, of what the stack has by then.
"""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from .alarm_topic import alarm_topic
from .alarms import notify_topic
from .budget import Budgets
from .dashboard import Dashboard
from .encryption import Encryption
from .monitoring_options import OFF
from .monitoring_settings import MonitoringSettings
from .product_alarms import ProductAlarms
from .saved_queries import QUERIES, Logs
from .watched import AUTHORIZER, Watched

ANSWERING = ("Api", AUTHORIZER, "SubscriptionsApi")


class Monitoring(Construct):
    """All of it, as the options of `infra/monitoring_options.py` say."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: MonitoringSettings,
        cell: str,
        encryption: Encryption,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        watched = Watched.of(stack)
        if settings.alarms != OFF:
            ProductAlarms(self, "Alarms", watched)
            topic = alarm_topic(self, settings.alarms, encryption)
            notify_topic(stack, topic)
            CfnOutput(stack, "AlarmTopic", value=topic.topic_arn, description="Gets every alarm")
            if settings.budget:
                Budgets(self, "Budget", settings.budget, cell, topic)
        if settings.dashboard:
            alarms = [c for c in stack.node.find_all() if isinstance(c, cloudwatch.Alarm)]
            Dashboard(self, "Dashboard", watched, alarms, settings.tool_metrics)
        self._save_queries(watched)

    def _save_queries(self, watched: Watched) -> None:
        stack = Stack.of(self)
        for query in QUERIES:
            if groups := _log_groups(watched, query.logs):
                logs.CfnQueryDefinition(
                    self,
                    "Query" + query.name.title().replace(" ", ""),
                    name=f"{stack.stack_name}/{query.name}",
                    query_string=query.text,
                    log_group_names=groups,
                )


def _log_groups(watched: Watched, whose: Logs) -> list[str]:
    match whose:
        case "access":
            return [
                g.log_group_name for n, g in watched.log_groups.items() if n.endswith("Gateway")
            ]
        case "publish":
            return watched.logs_of("Publish")
        case "requests":
            return watched.logs_of(*ANSWERING)
    return watched.logs_of()
