"""Puts every change of a task onto the event bus; fed by the tasks table's stream."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.notifications.changes import published
from mcp_tasks.server.methods.task_wire_format import detailed_task

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Publish a batch of records; a failure repeats the batch, and its half, until it is through.

    Lambda goes on to a task's next change only after this one, so they are published in order.
    """
    count = deployment.event_bus.publish(published(event["Records"], detailed_task))
    logger.info("published", changes=count, records=len(event["Records"]))
