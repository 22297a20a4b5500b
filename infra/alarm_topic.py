"""The SNS topic that alarms and the budget notify, and who may publish to it."""

from __future__ import annotations

from typing import Final

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from .encryption import Encryption
from .monitoring_options import TOPIC

ALARMS, BUDGETS = "cloudwatch.amazonaws.com", "budgets.amazonaws.com"
ARN: Final = "arn:"


def alarm_topic(scope: Construct, choice: str, encryption: Encryption) -> sns.ITopic:
    """The topic of `-c alarms=`: the one that exists, or a new one, to which an e-mail address is
    subscribed if that was given. SNS asks the address first whether it wants the messages.

    An alarm's message holds its name, its description and the metric's values, and nothing of a
    task. Without a KMS key of the stack, the topic has none: CloudWatch may not use SNS's own key,
    and its alarms would go nowhere (AWS re:Post, "Why didn't I receive an SNS notification for my
    CloudWatch alarm trigger?").
    """
    if choice.startswith(ARN):
        return sns.Topic.from_topic_arn(scope, "AlarmTopic", choice)
    topic = sns.Topic(scope, "Topic", enforce_ssl=True, master_key=encryption.key)
    _let_publish(topic)
    encryption.let_publish_to_topics(ALARMS, BUDGETS)
    if choice != TOPIC:
        topic.add_subscription(subscriptions.EmailSubscription(choice))
    return topic


def _let_publish(topic: sns.Topic) -> None:
    """Alarms and budgets of this account, and nobody else (CloudWatch user guide, "Notifying users
    on alarm changes"; AWS Cost Management user guide, "Creating an Amazon SNS topic for budget
    notifications").
    """
    stack = Stack.of(topic)
    alarms = stack.format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name="*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    budgets = stack.format_arn(service="budgets", region="", resource="*", resource_name=None)
    for service, source in ((ALARMS, alarms), (BUDGETS, budgets)):
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(service)],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": source},
                },
            )
        )
