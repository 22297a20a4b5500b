"""The stack's CloudWatch alarms, one function for each kind, and the SNS topic that they notify.

`docs/operations.md` says for each alarm what happened and what to do. An alarm's construct id names
its kind: `Finish/DeadLetterMessages`, `Publish/IteratorAge`.
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mcp_tasks import metrics

AT_LEAST: Final = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
MORE_THAN: Final = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
LESS_THAN: Final = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
PER_MINUTE: Final = Duration.minutes(1)
SHARE_OF_SERVER_ERRORS: Final = 0.02
"""API Gateway's `5XXError` is 0 or 1 for each request, so its average is a share."""


def alarm_for_dead_letter_messages(scope: Construct, queue: sqs.IQueue, description: str) -> None:
    """`DeadLetterMessages`: a dead-letter queue holds a message."""
    metric = queue.metric_approximate_number_of_messages_visible(
        period=PER_MINUTE, statistic="Maximum"
    )
    # SQS has no data for a queue that nobody uses.
    create_alarm(scope, "DeadLetterMessages", metric, description, threshold=1)


def alarm_for_iterator_age(
    scope: Construct, function: lambda_.IFunction, max_age: Duration, description: str
) -> None:
    """`IteratorAge`: a function reads its stream too late. No data means that nothing changes."""
    metric = function.metric("IteratorAge", period=PER_MINUTE, statistic="Maximum")
    threshold = max_age.to_milliseconds()
    create_alarm(
        scope, "IteratorAge", metric, description, threshold=threshold, comparison=MORE_THAN
    )


def alarm_for_oldest_message(
    scope: Construct, queue: sqs.IQueue, max_age: Duration, description: str
) -> None:
    """`AgeOfOldestMessage`: the messages of a queue wait for too long. No data means that there are
    none.
    """
    metric = queue.metric_approximate_age_of_oldest_message(period=PER_MINUTE, statistic="Maximum")
    threshold = max_age.to_seconds()
    create_alarm(
        scope, "AgeOfOldestMessage", metric, description, threshold=threshold, comparison=MORE_THAN
    )


def alarm_for_missing_invocations(
    scope: Construct, function: lambda_.IFunction, minutes: int, description: str
) -> None:
    """`NotInvoked`: a function that a schedule calls every minute was not called for so long.

    Lambda has no data for a function that nobody calls, so missing data rings.
    """
    create_alarm(
        scope,
        "NotInvoked",
        function.metric_invocations(period=PER_MINUTE, statistic="Sum"),
        description,
        threshold=1,
        comparison=LESS_THAN,
        evaluation_periods=minutes,
        treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
    )


def alarm_for_reconcile_delay(
    scope: Construct, service: str, max_delay: Duration, description: str
) -> None:
    """`ReconcileDelay`: tasks are reconciled too late, by the metric of the sweeper itself."""
    name, period = metrics.RECONCILE_DELAY, Duration.minutes(5)
    metric = _own_metric(scope, name, "Maximum", period, service=service)
    create_alarm(scope, "ReconcileDelay", metric, description, threshold=max_delay.to_seconds())


def alarm_for_delivery_delay(scope: Construct, max_delay: Duration, description: str) -> None:
    """`DeliveryDelay`: changes are tried again and again and not delivered, by `deliver`'s own
    metric.

    The queue's own age leaves them out: "After a message is received three times (or more) and not
    processed, the message is moved to the back of the queue and the ApproximateAgeOfOldestMessage
    metric points at the second-oldest message that hasn't been received more than three times"
    (SQS developer guide, "Available CloudWatch metrics for Amazon SQS").
    """
    metric = _own_metric(scope, metrics.DELIVERY_DELAY, "Maximum", PER_MINUTE)
    threshold = max_delay.to_seconds()
    create_alarm(
        scope, "DeliveryDelay", metric, description, threshold=threshold, comparison=MORE_THAN
    )


def metrics_namespace(scope: Construct) -> dict[str, str]:
    """The environment variable of a function that writes metrics: the stack's namespace."""
    return {"POWERTOOLS_METRICS_NAMESPACE": Stack.of(scope).stack_name}


def alarm_for_count(scope: Construct, metric_name: str, description: str) -> None:
    """An alarm, called as the metric: functions have counted something that an operator has to look
    at (`mcp_tasks.metrics`)."""
    metric = _own_metric(scope, metric_name, "Sum", PER_MINUTE)
    create_alarm(scope, metric_name, metric, description, threshold=1)


def alarm_for_server_errors(scope: Construct, api: apigateway.RestApi) -> cloudwatch.Alarm:
    """`RolloutServerErrors`: for two minutes in a row, 2 in 100 requests or more were answered with
    a status of 500 or above. A new version that always fails is seen by 10 in 100.
    """
    return create_alarm(
        scope,
        "RolloutServerErrors",
        api.metric_server_error(period=PER_MINUTE, statistic="Average"),
        "The endpoint answers requests with errors of the server; a rollout that is going on is "
        "rolled back",
        threshold=SHARE_OF_SERVER_ERRORS,
        evaluation_periods=2,
    )


def notify_topic(stack: Stack, topic: sns.ITopic) -> None:
    """Notify an SNS topic when any alarm of the stack rings, and when it ends."""
    action = actions.SnsAction(topic)
    for alarm in stack.node.find_all():
        if isinstance(alarm, cloudwatch.Alarm):
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)


def _own_metric(
    scope: Construct, name: str, statistic: str, period: Duration, service: str = metrics.SERVICE
) -> cloudwatch.Metric:
    """A metric that the functions write themselves (`mcp_tasks.metrics`)."""
    return cloudwatch.Metric(
        namespace=Stack.of(scope).stack_name,
        metric_name=name,
        dimensions_map={"service": service},
        period=period,
        statistic=statistic,
    )


def create_alarm(
    scope: Construct,
    construct_id: str,
    metric: cloudwatch.Metric | cloudwatch.MathExpression,
    description: str,
    *,
    comparison: cloudwatch.ComparisonOperator = AT_LEAST,
    **options: Any,
) -> cloudwatch.Alarm:
    """An alarm that rings in the first period over the threshold; missing data is good news."""
    defaults = {
        "evaluation_periods": 1,
        "treat_missing_data": cloudwatch.TreatMissingData.NOT_BREACHING,
    }
    return metric.create_alarm(
        scope,
        construct_id,
        alarm_description=description,
        comparison_operator=comparison,
        **{**defaults, **options},
    )
