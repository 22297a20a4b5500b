"""Asks a task's client, for the states of all workflows that wait for an answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.retry import state_retried_if_transient

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Store the questions and the token; the state goes on when the client has answered.

    When they cannot be stored at the moment, the state is tried again, with another token.
    """
    with state_retried_if_transient():
        done = ask(event, deployment.task_table, deployment.executions, now_ms())
    logger.info(done, task_id=event["task"])
