"""Whether somebody hears the alarms, and whether the budget counts anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from ..deployed_stack import DeployedStack
from .check import DENIED, Check, NotTried, expect
from .deployed import Deployed
from .waiting import attempts

ALARM: Final = "AWS::CloudWatch::Alarm"
BUDGET: Final = "AWS::Budgets::Budget"
TOPIC: Final = "AlarmTopic"
"""The stack's output with the topic's ARN (`infra/monitoring.py`)."""
RUNG: Final = "Finish"
"""Rings by `ring=yes`: the dead letters of `finish`, which every stack has, and which rolls no
deployment back as `Api/RolloutServerErrors` would."""
RING_SECONDS: Final = 60.0


def _topic(stack: DeployedStack) -> str:
    if TOPIC not in stack.outputs:
        raise NotTried("the stack's alarms notify nobody (alarms=off)")
    return stack.outputs[TOPIC]


def see_subscribers(deployed: Deployed) -> str:
    """The alarms' topic has a subscription that was confirmed.

    One that was not has `PendingConfirmation` in place of its ARN (SNS API reference, "Subscribe").
    """
    stack = deployed.account()
    topic = _topic(stack)
    pages = stack.client("sns").get_paginator("list_subscriptions_by_topic")
    found = [
        each["SubscriptionArn"]
        for page in pages.paginate(TopicArn=topic)
        for each in page["Subscriptions"]
    ]
    confirmed = sum(arn.startswith("arn:") for arn in found)
    expect(
        confirmed,
        f"nobody hears the alarms: of {len(found)} subscriptions none is confirmed. Confirm SNS's "
        f"e-mail, or run: aws sns subscribe --topic-arn {topic} --protocol email "
        "--notification-endpoint ADDRESS",
    )
    return f"{confirmed} of {len(found)} subscriptions are confirmed"


def ring(deployed: Deployed) -> str:
    """With `ring=yes`: an alarm that is set to ALARM notifies the topic. So its policy, and that of
    its key, let CloudWatch publish.

    CloudWatch API reference, "SetAlarmState": actions are called as for any change of the state,
    and the metric sets the state again, "typically within seconds".
    """
    stack = deployed.account()
    topic = _topic(stack)
    if not deployed.ring:
        raise NotTried("it would notify everybody who has subscribed; add ring=yes")
    name = stack.physical_ids(ALARM, RUNG)[0]
    cloudwatch = stack.client("cloudwatch")
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    before = alarm["StateValue"]
    if before == "ALARM":
        raise NotTried(f"{name} rings already")
    why, begun = "make verify ring=yes: a test, nothing is wrong", datetime.now(UTC)
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason=why)
    try:
        done = _action_on(cloudwatch, name, topic, begun)
    finally:
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=before, StateReason=why)
    expect(done is not None, f"{name} rang, and notified nothing within {RING_SECONDS:.0f} s")
    expect(str(done).startswith("Successfully"), f"{name} rang: {done}")
    return f"{name} rang, and the topic took it"


def _action_on(cloudwatch: Any, alarm: str, topic: str, begun: datetime) -> str | None:
    """What CloudWatch says of the action on the topic since then; None when it says nothing."""
    for _ in attempts(RING_SECONDS, 2):
        history = cloudwatch.describe_alarm_history(
            AlarmName=alarm, HistoryItemType="Action", StartDate=begun
        )
        for item in history["AlarmHistoryItems"]:
            if topic in item["HistorySummary"]:
                return str(item["HistorySummary"])
    return None


def see_the_budgets(deployed: Deployed) -> str:
    """AWS Budgets has the stack's budgets, with the limit and the filter of the template, and the
    tag that they filter by is active.

    Billing user guide, "Activating user-defined cost allocation tags": what was tagged counts from
    the activation on, and only the account that pays may activate a tag, or see whether it is.
    """
    stack = deployed.account()
    wanted = dict(_wanted_budgets(stack))
    if not wanted:
        raise NotTried("the stack has no budget (budget=)")
    account = stack.client("sts").get_caller_identity()["Account"]
    for name, budget in wanted.items():
        asked = {"AccountId": account, "BudgetName": name}
        found = stack.client("budgets").describe_budget(**asked)["Budget"]
        limit, option = found["BudgetLimit"]["Amount"], budget["BudgetLimit"]["Amount"]
        expect(float(limit) == float(option), f"{name} is of ${limit}, and budget= asks ${option}")
        filters = found.get("CostFilters", {})
        expect(filters == budget["CostFilters"], f"{name} filters by {filters}")
    tags = sorted({_tag(budget) for budget in wanted.values()})
    inactive = sorted(set(tags) - _active(stack, tags))
    expect(
        not inactive,
        f"the budgets count nothing: the tag {', '.join(inactive)} is no active cost allocation "
        "tag. In the account that pays, a day after the first deployment or later, run: aws ce "
        "update-cost-allocation-tags-status --cost-allocation-tags-status "
        + " ".join(f"TagKey={tag},Status=Active" for tag in inactive),
    )
    return f"{len(wanted)} budgets count by the active tag {', '.join(tags)}"


def _wanted_budgets(stack: DeployedStack) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """By name: the template's `Budget`."""
    for summary in stack.resources:
        if summary["ResourceType"] == BUDGET:
            properties = stack.template["Resources"][summary["LogicalResourceId"]]["Properties"]
            yield summary["PhysicalResourceId"], properties["Budget"]


def _tag(budget: Mapping[str, Any]) -> str:
    """The tag's key, of a filter `user:KEY$VALUE` (`infra/budget.py`)."""
    (value,) = budget["CostFilters"]["TagKeyValue"]
    return str(value).removeprefix("user:").partition("$")[0]


def _active(stack: DeployedStack, tags: list[str]) -> set[str]:
    """Those of the tags that are active. Raises NotTried in an account that does not pay."""
    try:
        listed = stack.client("ce").list_cost_allocation_tags(Status="Active", TagKeys=tags)
    except ClientError as error:
        if error.response["Error"]["Code"] not in DENIED:
            raise
        raise NotTried(
            f"the budgets are there; whether the tag {', '.join(tags)} is active, your credentials "
            "may not call ListCostAllocationTags for: in an organization, the account that pays may"
        ) from error
    return {each["TagKey"] for each in listed["CostAllocationTags"]}


CHECKS: Final = (
    Check("Alarms are heard", see_subscribers, only_aws=True, of_stack=True),
    Check("An alarm that rings", ring, only_aws=True, of_stack=True),
    Check("Budgets", see_the_budgets, only_aws=True, of_stack=True),
)
