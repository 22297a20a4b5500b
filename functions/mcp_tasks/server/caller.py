"""Who calls, as far as the gateway has found out (`-c auth=`). Nothing here looks at a token.

Source: API Gateway developer guide, "Input format of a Lambda function for proxy integration",
`requestContext.authorizer` and `requestContext.identity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..tasks.task import ANYONE

Auth = Literal["oauth", "iam", "none"]
"""How a deployment finds out."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller whom the gateway has let in."""

    principal: str
    """Whose tasks it sees: `issuer|subject`, an ARN, or `anonymous`."""
    scopes: frozenset[str] | None = None
    """What its access token is good for; None where callers have no tokens."""


def caller_of(context: Mapping[str, Any], auth: Auth) -> Caller | None:
    """The caller of a request, by its `requestContext`.

    None when it does not say: then the gateway is not set up as the deployment believes, and nobody
    may come in. One way to find out is never taken for another.
    """
    if auth == "none":
        return Caller(ANYONE)
    if auth == "oauth":
        found = context.get("authorizer") or {}
        principal, scopes = found.get("principal"), found.get("scopes") or ""
        return Caller(principal, frozenset(scopes.split())) if principal else None
    identity = context.get("identity") or {}
    arn, cognito = identity.get("userArn"), identity.get("cognitoIdentityId")
    if not arn:
        return None
    # All users of an identity pool have one role, and one session name: its ARN is all of theirs.
    return Caller(f"{arn}|{cognito}" if cognito else arn)
