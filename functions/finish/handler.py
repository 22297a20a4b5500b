"""Ends a task whose execution has ended; EventBridge sends the event."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.tracebacks import keep_tracebacks
from mcp_tasks.workflows.finish import ENDED, finish

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
keep_tracebacks(os.environ)
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Write the task's end. Lambda retries twice, then sends the event to a dead-letter queue."""
    detail = event["detail"]
    status = finish(detail, deployment.task_ends, now_ms())
    logger.info(ENDED, task_id=detail["name"], execution=detail["status"], task=status)
