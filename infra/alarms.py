"""Whom the stack's alarms tell: an SNS topic, which its owner has made, or nobody."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns


def tell(stack: Stack, topic_arn: str) -> None:
    """Tell the topic when an alarm of the stack rings, and when it ends. Its policy has to let
    CloudWatch publish, and so has the policy of its KMS key, if it has one.
    """
    action = actions.SnsAction(sns.Topic.from_topic_arn(stack, "Alarms", topic_arn))
    for alarm in stack.node.find_all():
        if isinstance(alarm, cloudwatch.Alarm):
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
