"""What the dashboard shows: each figure's title and the CloudWatch metrics behind it.

It needs no CDK, so that a command can show the same figures. `infra/dashboard.py` turns them into
the CloudWatch dashboard.

Sources of the metrics: API Gateway developer guide, "Amazon API Gateway dimensions and metrics";
Lambda developer guide, "Types of metrics for Lambda functions"; Step Functions developer guide,
"Monitoring Step Functions metrics using Amazon CloudWatch"; DynamoDB developer guide, "DynamoDB
metrics and dimensions"; SQS developer guide, "Available CloudWatch metrics for Amazon SQS"; SNS and
CloudWatch Logs user guides, "CloudWatch metrics". The stack's own: `mcp_tasks.metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mcp_tasks import metrics

OWN: Final = ""
"""In place of a namespace: the stack's own, which has the stack's name."""


class Each(StrEnum):
    """Resources of a stack that each have a line: the value is the dimension that names them."""

    API = "ApiName"
    FUNCTION = "FunctionName"
    STATE_MACHINE = "StateMachineArn"
    TABLE = "TableName"
    DEAD_LETTER_QUEUE = "QueueName"
    LOG_GROUP = "LogGroupName"
    TOOL = "tool"


ANSWERED_AT_ONCE: Final = (
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "tasks/get",
    "tasks/list",
    "tasks/update",
)
"""Methods that wait for no tool, no change and no author's code."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric, of the stack as a whole or of each resource of a kind."""

    namespace: str
    metric: str
    statistic: str
    """As CloudWatch calls it: Sum, Maximum, p95, SampleCount."""
    label: str
    """In the graph's legend; with `each`, the resource's name comes before it."""
    each: Each | None = None
    dimensions: Mapping[str, str] = field(default_factory=dict)
    """Besides the one of `each`."""
    per_gigabyte: bool = False
    """Times a function's memory in GB, of milliseconds: GB-seconds, by which Lambda is paid."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One graph."""

    title: str
    series: tuple[Series, ...]
    only_by_tool: bool = False
    """Whether it needs `-c tool_metrics=on`."""


def own(metric: str, statistic: str, label: str, service: str = metrics.SERVICE) -> Series:
    """A metric that the functions write."""
    return Series(OWN, metric, statistic, label, dimensions={"service": service})


def _each(each: Each, namespace: str, metric: str, statistic: str, label: str = "") -> Series:
    return Series(namespace, metric, statistic, label, each)


def _workflows_of_account(metric: str, label: str, **dimensions: str) -> Series:
    """Step Functions counts these for the account and region, not for a state machine."""
    return Series("AWS/States", metric, "Sum", label, dimensions=dimensions)


THROTTLED_APIS: Final = ("StartExecution", "SendTaskSuccess", "DescribeExecution")
"""The calls to Step Functions whose quotas end first."""
THROTTLED_WORKFLOWS: Final = (
    _workflows_of_account("ThrottledEvents", "transitions", ServiceMetric="StateTransition"),
    *(_workflows_of_account("ThrottledEvents", name, APIName=name) for name in THROTTLED_APIS),
)

HEALTH: Final = (
    Figure(
        "Requests and their errors",
        (
            _each(Each.API, "AWS/ApiGateway", "Count", "SampleCount", "requests"),
            _each(Each.API, "AWS/ApiGateway", "4XXError", "Sum", "refused (4xx)"),
            _each(Each.API, "AWS/ApiGateway", "5XXError", "Sum", "failed (5xx)"),
            own(metrics.TOKENS_REFUSED, "Sum", "access tokens refused"),
        ),
    ),
    Figure(
        "Time to answer what waits for nothing, ms",
        tuple(Series(OWN, metrics.ANSWER_TIME, each, each) for each in ("p50", "p95", "p99")),
    ),
    Figure(
        "Tasks by state",
        (
            own(metrics.TASKS_CREATED, "Sum", "created"),
            own(metrics.INPUT_REQUIRED, "Sum", "input_required"),
            own(metrics.TASKS_COMPLETED, "Sum", "completed"),
            own(metrics.TASKS_FAILED, "Sum", "failed"),
            own(metrics.TASKS_CANCELLED, "Sum", "cancelled"),
        ),
    ),
    Figure(
        "Executions by tool",
        tuple(
            _each(Each.STATE_MACHINE, "AWS/States", f"Executions{end}", "Sum", end.lower())
            for end in ("Started", "Succeeded", "Failed", "TimedOut", "Aborted")
        ),
    ),
    Figure(
        "Tasks by state and tool",
        tuple(
            Series(OWN, name, "Sum", label, Each.TOOL, {"service": metrics.SERVICE})
            for name, label in (
                (metrics.TASKS_CREATED, "created"),
                (metrics.INPUT_REQUIRED, "input_required"),
                (metrics.TASKS_COMPLETED, "completed"),
                (metrics.TASKS_FAILED, "failed"),
                (metrics.TASKS_CANCELLED, "cancelled"),
            )
        ),
        only_by_tool=True,
    ),
    Figure(
        "Waiting for people: tasks, and seconds waited",
        (
            own(metrics.INPUT_REQUIRED, "Sum", "asked"),
            own(metrics.INPUT_WAIT, "SampleCount", "answered or ended"),
            own(metrics.INPUT_WAIT, "p50", "waited, p50"),
            own(metrics.INPUT_WAIT, "p90", "waited, p90"),
        ),
    ),
    Figure(
        "Age of tasks at their end, seconds",
        tuple(own(metrics.TASK_DURATION, each, each) for each in ("p50", "p90", "Maximum")),
    ),
    Figure(
        "Age of the oldest task that is due, seconds",
        (own(metrics.RECONCILE_DELAY, "Maximum", "waits to be reconciled", "sweep"),),
    ),
    Figure(
        "Delay of changes in the queue, seconds",
        tuple(own(metrics.DELIVERY_DELAY, each, each) for each in ("p50", "p99", "Maximum")),
    ),
    Figure(
        "Dead letters",
        (
            _each(
                Each.DEAD_LETTER_QUEUE,
                "AWS/SQS",
                "ApproximateNumberOfMessagesVisible",
                "Maximum",
            ),
        ),
    ),
    Figure("Errors of functions", (_each(Each.FUNCTION, "AWS/Lambda", "Errors", "Sum"),)),
    Figure(
        "Throttled calls of functions", (_each(Each.FUNCTION, "AWS/Lambda", "Throttles", "Sum"),)
    ),
    Figure(
        "Instances of functions",
        (_each(Each.FUNCTION, "AWS/Lambda", "ConcurrentExecutions", "Maximum"),),
    ),
    Figure("Throttled by Step Functions, in the account and region", THROTTLED_WORKFLOWS),
    Figure(
        "Throttled by DynamoDB",
        (
            _each(Each.TABLE, "AWS/DynamoDB", "ReadThrottleEvents", "Sum", "reads"),
            _each(Each.TABLE, "AWS/DynamoDB", "WriteThrottleEvents", "Sum", "writes"),
        ),
    ),
)
"""Is it healthy?"""

COST: Final = (
    Figure("Requests", (_each(Each.API, "AWS/ApiGateway", "Count", "SampleCount"),)),
    Figure(
        "GB-seconds of functions",
        (Series("AWS/Lambda", "Duration", "Sum", "", Each.FUNCTION, per_gigabyte=True),),
    ),
    Figure("Calls of functions", (_each(Each.FUNCTION, "AWS/Lambda", "Invocations", "Sum"),)),
    Figure(
        "State transitions, in the account and region",
        (
            _workflows_of_account(
                "ConsumedCapacity", "transitions", ServiceMetric="StateTransition"
            ),
        ),
    ),
    Figure(
        "Units of DynamoDB",
        (
            _each(Each.TABLE, "AWS/DynamoDB", "ConsumedReadCapacityUnits", "Sum", "read"),
            _each(Each.TABLE, "AWS/DynamoDB", "ConsumedWriteCapacityUnits", "Sum", "written"),
        ),
    ),
    Figure("Bytes of logs", (_each(Each.LOG_GROUP, "AWS/Logs", "IncomingBytes", "Sum"),)),
)
"""What does it cost? The quantities that AWS charges for."""
