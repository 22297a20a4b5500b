"""Asks a task's client, on behalf of the states of all workflows that wait for answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.redaction import crash_redacted
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.tracebacks import keep_tracebacks
from mcp_tasks.workflows.ask import ask
from mcp_tasks.workflows.retry import state_retried_if_transient

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
keep_tracebacks(os.environ)
deployment = Deployment(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Store the questions and the token; the state goes on when the client has answered.

    After a transient error, Step Functions retries the state, with another token. A question that
    cannot be asked fails the state, and its error leaves without its message.
    """
    logger.append_keys(task_id=event["task"])
    with crash_redacted(logger, "A question could not be asked"), state_retried_if_transient():
        outcome = ask(event, deployment.task_table, deployment.executions, now_ms())
    logger.info("ask handled", outcome=outcome)
