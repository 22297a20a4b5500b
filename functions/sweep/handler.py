"""The sweeper: reconciles every task whose time has come. A schedule calls it every minute.

`make destroy` and `make drain` call it with `{"remove": ...}`: it ends the tasks that they name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from mcp_tasks.aws.errors import error_code
from mcp_tasks.deployment import Deployment
from mcp_tasks.metrics import RECONCILE_DELAY
from mcp_tasks.registry.list_versions import list_versions
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.tracebacks import keep_tracebacks
from mcp_tasks.workflows.removal import remove_executions
from mcp_tasks.workflows.sweep import sweep

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

RESERVED_SECONDS: Final = 80
"""The function's time that is left for the tasks that are being reconciled at the end: each takes
several calls, and a call that hangs is repeated."""

RESERVED_FOR_TREES_SECONDS: Final = 25
"""The same where a task is ended after its subtasks, which takes up to 15 seconds
(`workflows/task_tree.py`)."""

logger = Logger()
keep_tracebacks(os.environ)
metrics = Metrics()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int] | None:
    """Reconcile tasks; or end those of what is removed, and return what they came to
    (`workflows/removal.py`)."""
    if "remove" not in event:
        reconcile(event, context)
        return None
    seconds = context.get_remaining_time_in_millis() / 1000 - RESERVED_FOR_TREES_SECONDS
    removed = remove_executions(event["remove"], deployment.task_ends, now_ms, seconds)
    logger.info("tasks removed", **removed)
    return removed


@metrics.log_metrics
def reconcile(event: dict[str, Any], context: LambdaContext) -> None:
    """Reconcile tasks; log how many, and publish how late the first of them was."""
    seconds = context.get_remaining_time_in_millis() / 1000 - RESERVED_SECONDS
    swept = sweep(deployment.task_table, deployment.reconciler, now_ms, seconds)
    metrics.add_metric(RECONCILE_DELAY, MetricUnit.Seconds, swept.late_ms / 1000)
    logger.info("tasks reconciled", **swept.counts)
    announce_changed_lists()


def announce_changed_lists() -> None:
    """Announce the lists that the last deployment has changed. Tasks do not wait for it."""
    try:
        versions = list_versions(deployment.catalogue)
        changed = deployment.announced_lists.announce_changes(versions, deployment.event_bus)
    except Exception as error:
        logger.error("Changed lists were not announced", error=error_code(error))
        return
    if changed:
        logger.info("lists changed", lists=changed)
