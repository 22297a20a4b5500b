"""Publishes every change of a task on the event bus; the tasks table's stream invokes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.notifications.changes import changes_to_publish
from mcp_tasks.notifications.task_metrics import count_tasks
from mcp_tasks.server.methods.task_wire_format import detailed_task

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Publish a batch of records.

    When it fails, Lambda repeats the batch in halves. Lambda sends a task's next record only after
    this one has succeeded, so a task's changes are published in order.
    """
    count = deployment.event_bus.publish(changes_to_publish(event["Records"], detailed_task))
    logger.info("changes published", changes=count, records=len(event["Records"]))
    count_tasks(event["Records"], deployment.tool_metrics)
