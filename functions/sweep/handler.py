"""Looks after the tasks that are due; a schedule calls it every minute."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.sweep import sweep

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

LAST_SECONDS: Final = 20
"""Of the function's time, what the looks under way at the end may take."""

logger = Logger()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Do what was lost, and say how much it was."""
    seconds = context.get_remaining_time_in_millis() / 1000 - LAST_SECONDS
    counts = sweep(deployment.rows, deployment.repair, now_ms, seconds)
    logger.info("swept", **counts)
