"""The request path, POST /mcp, with buffered responses. Any instance answers any request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.server.http.api_gateway import from_api_gateway, to_api_gateway
from mcp_tasks.server.http.messages import HttpResponse
from mcp_tasks.server.server import mcp_server
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.tracebacks import keep_tracebacks

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
keep_tracebacks(os.environ)
deployment = Deployment(os.environ)
server = mcp_server(deployment)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    began = now_ms()
    request = from_api_gateway(event, deployment.auth, deployment.principal)
    response = server.answer(request)
    log_response(response, began)
    return to_api_gateway(response, server.cors_headers(request))


def log_response(response: HttpResponse, began: int) -> None:
    """Log one line about a request that `began` at a time in milliseconds, without its arguments,
    its result or its answers. A metric and a saved query read it (`infra/product_alarms.py`,
    `infra/saved_queries.py`).
    """
    code = int(response.error.code) if response.error else None
    logger.info(
        "request answered",
        status=int(response.status),
        error_code=code,
        duration_ms=now_ms() - began,
    )
