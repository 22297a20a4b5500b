"""The Lambda authorizer: API Gateway calls it for each request before it calls the API function.

Source: API Gateway developer guide, "Use API Gateway Lambda authorizers".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from aws_lambda_powertools import Logger

from mcp_tasks import metrics
from mcp_tasks.authorization.request_authorizer import Decision, RequestAuthorizer
from mcp_tasks.authorization.tokens import InvalidToken

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
authorizer = RequestAuthorizer(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Allow a request (200), deny it because a scope is missing (403), or refuse its token (401).

    Raises KeysUnavailable when the issuer's keys cannot be fetched; API Gateway answers with 503.
    """
    decision = decide(event)
    if decision is None:
        raise Exception("Unauthorized")  # API Gateway answers with 401 for exactly this text.
    principal = decision.grant.principal
    if decision.challenge is not None:
        logger.info("request denied", reason="insufficient_scope", principal=principal)
        return policy("Deny", event, principal, challenge=decision.challenge)
    logger.info("request allowed", principal=principal)
    scopes = " ".join(sorted(decision.grant.scopes))
    return policy("Allow", event, principal, principal=principal, scopes=scopes)


def decide(event: dict[str, Any]) -> Decision | None:
    """The decision about a request; None when it has no valid token."""
    try:
        return authorizer.decide(event)
    except InvalidToken as refused:
        logger.info("access token refused", reason=refused.reason)
        metrics.count(metrics.TOKENS_REFUSED)
        return None


def policy(
    effect: Literal["Allow", "Deny"], event: dict[str, Any], principal_id: str, **context: str
) -> dict[str, Any]:
    """The answer to API Gateway, for the request's own method and path only."""
    statement = {
        "Action": "execute-api:Invoke",
        "Effect": effect,
        "Resource": event["methodArn"],
    }
    return {
        "principalId": principal_id,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": context,
    }
