"""The request path: POST /mcp. Stateless; any instance answers any request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.server.http.api_gateway import HttpAnswer, from_api_gateway, to_api_gateway
from mcp_tasks.server.server import mcp_server

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)
server = mcp_server(deployment)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    answer = server.answer(from_api_gateway(event, deployment.auth))
    log_answer(answer)
    return to_api_gateway(answer)


def log_answer(answer: HttpAnswer) -> None:
    """Log one line about a request: no argument, no result, no answer."""
    error = answer.error
    logger.info("answered", status=int(answer.status), error=int(error.code) if error else None)
