"""Looks after the tasks that are due; a schedule calls it every minute."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from mcp_tasks.deployment import Deployment
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.sweep import sweep

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

LAST_SECONDS: Final = 80
"""Of the function's time, what the looks under way at the end may take: each makes several calls,
and one that hangs is repeated."""

logger = Logger()
metrics = Metrics()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Do what was lost, and say how much it was, and how late."""
    seconds = context.get_remaining_time_in_millis() / 1000 - LAST_SECONDS
    swept = sweep(deployment.task_table, deployment.reconciler, now_ms, seconds)
    metrics.add_metric("Late", MetricUnit.Seconds, swept.late_ms / 1000)
    logger.info("swept", **swept.found)
