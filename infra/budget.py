"""Budgets: what the stack may cost, against what it has cost (`-c budget=`)."""

from __future__ import annotations

from typing import Final, Literal

from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_sns as sns
from constructs import Construct

TAG: Final = "mcp-cell"
"""The tag on everything of a stack that takes tags. AWS Budgets sees it only after the account that
pays has activated it (AWS Billing user guide, "Activating user-defined cost allocation tags")."""
SHARE_OF_A_DAY: Final = 10
"""A day may cost a tenth of the month: three times its share."""


class Budgets(Construct):
    """A budget of the month and one of the day. The bill is a few hours behind."""

    def __init__(
        self, scope: Construct, construct_id: str, dollars: int, cell: str, topic: sns.ITopic
    ) -> None:
        super().__init__(scope, construct_id)
        self._cell, self._topic = cell, topic
        self.node.add_dependency(topic)  # its policy, too, which lets budgets publish
        self._budget("Month", "MONTHLY", dollars, ("FORECASTED", "ACTUAL"))
        self._budget("Day", "DAILY", dollars / SHARE_OF_A_DAY, ("ACTUAL",))

    def _budget(
        self,
        construct_id: str,
        unit: Literal["MONTHLY", "DAILY"],
        dollars: float,
        kinds: tuple[str, ...],
    ) -> None:
        """A budget has no name of its own: CloudFormation gives it one. AWS forecasts no days."""
        budget = budgets.CfnBudget
        budget(
            self,
            construct_id,
            budget=budget.BudgetDataProperty(
                budget_type="COST",
                time_unit=unit,
                budget_limit=budget.SpendProperty(amount=dollars, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{TAG}${self._cell}"]},
            ),
            notifications_with_subscribers=[
                budget.NotificationWithSubscribersProperty(
                    notification=budget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=100,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[
                        budget.SubscriberProperty(
                            address=self._topic.topic_arn, subscription_type="SNS"
                        )
                    ],
                )
                for kind in kinds
            ],
        )
