"""Decides who comes in: API Gateway asks it about each request before it calls the api function.

Source: API Gateway developer guide, "Use API Gateway Lambda authorizers".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from aws_lambda_powertools import Logger

from mcp_tasks.authorization.authorizer import Authorizer, Decision
from mcp_tasks.authorization.tokens import InvalidToken

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
authorizer = Authorizer(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Allow a request (200), deny it for a scope (403), or refuse its token (401).

    When the issuer's keys cannot be had, that is an error, which the gateway answers with 503.
    """
    decision = decided(event)
    if decision is None:
        raise Exception("Unauthorized")  # the word that API Gateway answers with 401
    principal = decision.grant.principal
    if decision.challenge is not None:
        logger.info("denied", reason="scope", principal=principal)
        return policy("Deny", event, principal, challenge=decision.challenge)
    logger.info("allowed", principal=principal)
    scopes = " ".join(sorted(decision.grant.scopes))
    return policy("Allow", event, principal, principal=principal, scopes=scopes)


def decided(event: dict[str, Any]) -> Decision | None:
    """The decision; None for a request without a good token."""
    try:
        return authorizer.decide(event)
    except InvalidToken as refused:
        logger.info("refused", reason=refused.reason)
        return None


def policy(
    effect: Literal["Allow", "Deny"], event: dict[str, Any], principal_id: str, **context: str
) -> dict[str, Any]:
    """The answer to API Gateway, about this one method and path."""
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
