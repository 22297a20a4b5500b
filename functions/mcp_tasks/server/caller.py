"""The caller of a request, as the gateway identified it (`-c auth=`). No token is read here.

Source: API Gateway developer guide, "Input format of a Lambda function for proxy integration",
`requestContext.authorizer` and `requestContext.identity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..environment import Auth, Principal
from ..tasks.principals import is_federated_user, role_of
from ..tasks.task import ANYONE
from .sessions import Session


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller that the gateway has let in."""

    principal: str
    """Whose tasks the caller sees: `issuer|subject`, the ARN of a session, a role or a user, or
    `anonymous`."""
    scopes: frozenset[str] | None = None
    """The scopes of the access token; None where callers have no tokens."""
    session: Session | None = None
    """The session that the request names, in a revision that has sessions."""


def caller_of(
    context: Mapping[str, Any], auth: Auth, principal: Principal = "session"
) -> Caller | None:
    """The caller of a request, by its `requestContext`.

    None when the context does not name one, or names none whose tasks could be told apart: the
    request must be refused. Only the field of that one `auth` is read.
    """
    if auth == "none":
        return Caller(ANYONE)
    if auth == "oauth":
        authorizer = context.get("authorizer") or {}
        name, scopes = authorizer.get("principal"), authorizer.get("scopes") or ""
        return Caller(name, frozenset(scopes.split())) if name else None
    identity = context.get("identity") or {}
    arn, cognito = identity.get("userArn"), identity.get("cognitoIdentityId")
    if not arn:
        return None
    # All users of a Cognito identity pool share one role and session name, so also one ARN.
    name = f"{arn}|{cognito}" if cognito else arn
    if principal == "session":
        return Caller(name)
    # A federated user has no role. All of an account would share their tasks.
    return None if is_federated_user(arn) else Caller(role_of(name))
