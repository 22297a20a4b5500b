"""The CloudWatch metrics that the functions write themselves, in the stack's own namespace.

A metric is a line of the log in embedded metric format: it needs no call and no permission
(CloudWatch user guide, "Embedding metrics within logs"). Every name is a custom metric, which costs
$0.30 for a month in which it has data in every hour, and a part of it for fewer hours.

All have the dimension `service`, which is `SERVICE` except for the sweeper's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

SERVICE: Final = "mcp-tasks"
"""The metrics' dimension `service`: of whichever function writes them."""

TASKS_CREATED: Final = "TasksCreated"
TASKS_COMPLETED: Final = "TasksCompleted"
TASKS_FAILED: Final = "TasksFailed"
TASKS_CANCELLED: Final = "TasksCancelled"
TASK_DURATION: Final = "TaskDuration"
"""Seconds from a task's creation to its end."""
INPUT_REQUIRED: Final = "InputRequired"
"""Tasks that began to wait for an answer."""
INPUT_WAIT: Final = "InputWait"
"""Seconds that a task has waited for an answer, once it waits no more."""
DELIVERY_DELAY: Final = "DeliveryDelay"
"""Seconds that a change was in the queue when `deliver` tried to deliver it."""
RECONCILE_DELAY: Final = "ReconcileDelay"
"""Seconds that the first task of a run of the sweeper had been waiting to be reconciled. Its
`service` is `sweep`."""
TOKENS_REFUSED: Final = "TokensRefused"
"""Access tokens that the authorizer refused. Lambda counts each as an error of the function, too:
API Gateway takes nothing else for a 401."""
NOT_UNDONE: Final = "NotUndone"
"""Tasks that were cancelled or failed, and of which something was not undone."""
NON_DETERMINISM: Final = "NonDeterminism"
"""Tasks that failed because their tool took another way than before."""
ANSWER_TIME: Final = "AnswerTime"
"""Milliseconds that the function `api` took for a request that waits for nothing. CloudWatch Logs
reads it off the function's line per request (`infra/product_alarms.py`); it has no dimension."""

SECONDS: Final = frozenset({TASK_DURATION, INPUT_WAIT, DELIVERY_DELAY})
"""The metrics of which each value is a time; the others are counts."""


def write(values: Mapping[str, Iterable[float]], tool: str = "", by_tool: bool = False) -> None:
    """Write a line with all values of some metrics. What is counted is added up first.

    The line names the tool, so that a query can tell tools apart. `by_tool` makes metrics of each
    tool of it as well: as many again.
    """
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit  # seldom needed

    # Authors' tests run this, too, and have no stack.
    namespace = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", SERVICE)
    metrics = EphemeralMetrics(service=SERVICE, namespace=namespace)
    if by_tool:
        metrics.add_dimensions(service=SERVICE, tool=tool)
    elif tool:
        metrics.add_metadata("tool", tool)
    for name, each in values.items():
        if name not in SECONDS:
            metrics.add_metric(name, MetricUnit.Count, sum(each))
        else:
            for seconds in each:
                metrics.add_metric(name, MetricUnit.Seconds, seconds)
    if metrics.metric_set:  # Powertools has written what makes a line full
        metrics.flush_metrics()


def count(metric: str) -> None:
    """Count one."""
    write({metric: [1]})
