"""Starts the subtasks that tools call, on behalf of the state machines of these tools."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.retry import state_retried_if_transient

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Write subtasks' rows, or start one of them; `mcp_tasks/workflows/subtasks.py` has the events.

    A state that passes a token goes on when the subtask has ended. After a transient error, Step
    Functions retries the state, with another token.
    """
    logger.append_keys(task_id=event["task"], operation=event["operation"])
    with state_retried_if_transient():
        output = deployment.subtasks.handle(event, now_ms())
    logger.info("subtasks handled", number=event.get("number"), begun=output.get("begun"))
    return output
