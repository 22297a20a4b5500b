"""What the gateway answers itself, without a function: always JSON-RPC, and challenges.

Source: API Gateway developer guide, "Gateway responses for REST APIs" and "Gateway response types".
"""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import aws_apigateway as apigateway

from mcp_tasks.protocol.www_authenticate import bearer_challenge

INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

Type = apigateway.ResponseType

ERRORS: Final = {
    "Throttled": (Type.THROTTLED, "429", INTERNAL_ERROR, "Too many requests; try again later"),
    "TooLarge": (Type.REQUEST_TOO_LARGE, "413", INVALID_REQUEST, "The body is too large"),
    "TimedOut": (
        Type.INTEGRATION_TIMEOUT,
        "504",
        INTERNAL_ERROR,
        "The call took longer than a request may; a client that declares the tasks extension can "
        "run it as a task",
    ),
}
"""Name -> type, HTTP status, JSON-RPC error code and message."""

UNREACHABLE: Final = "The authorization server could not be reached; try again later"
AUTHORIZER_ERRORS: Final = {
    # The authorizer raised something, or did not answer in time.
    "AuthorizerFailed": (Type.AUTHORIZER_FAILURE, "503", INTERNAL_ERROR, UNREACHABLE),
    # It could not be called, for instance because Lambda throttles it.
    "AuthorizerUnreachable": (
        Type.AUTHORIZER_CONFIGURATION_ERROR,
        "503",
        INTERNAL_ERROR,
        "Nobody can be let in now; try again later",
    ),
}
"""The same, where an authorizer decides."""

CHALLENGE: Final = "context.authorizer.challenge"
"""What the authorizer says next to a denial: the scopes that the request needs."""


def answer_in_json_rpc(api: apigateway.RestApi) -> None:
    """Errors of the gateway as JSON-RPC; it does not know the request's id.

    The two defaults stand for all types that have no response of their own, each with the status
    that API Gateway gives it: 401, 403, 404, 415, 500, 502 and so on.
    """
    for name, (kind, status, code, message) in ERRORS.items():
        _add(api, name, kind, status, code, json.dumps(message))
    _add(api, "Refused", Type.DEFAULT_4_XX, None, INVALID_REQUEST, "$context.error.messageString")
    _add(api, "Failed", Type.DEFAULT_5_XX, None, INTERNAL_ERROR, json.dumps("Internal error"))


def challenge_callers(
    api: apigateway.RestApi, resource_metadata: str, scopes: tuple[str, ...]
) -> None:
    """Say what an access token has to be like to those who have none, or one that is too weak.

    authorization/index.mdx, "Protected Resource Metadata Discovery Requirements" and "Runtime
    Insufficient Scope Errors".
    """
    for name, (kind, status, code, message) in AUTHORIZER_ERRORS.items():
        _add(api, name, kind, status, code, json.dumps(message))
    _add(
        api,
        "Unauthorized",
        Type.UNAUTHORIZED,
        "401",
        INVALID_REQUEST,
        json.dumps("The request needs a valid access token"),
        f"'{bearer_challenge(resource_metadata, scopes)}'",
    )
    _add(
        api,
        "Denied",
        Type.ACCESS_DENIED,
        "403",
        INVALID_REQUEST,
        json.dumps("The access token is not good for this request"),
        CHALLENGE,
    )


def _add(
    api: apigateway.RestApi,
    name: str,
    kind: apigateway.ResponseType,
    status: str | None,
    code: int,
    message: str,
    challenged: str | None = None,
) -> None:
    """`message` is JSON, or one of API Gateway's variables that holds JSON."""
    error = f'{{"code": {code}, "message": {message}}}'
    api.add_gateway_response(
        name,
        type=kind,
        status_code=status,
        response_headers={"WWW-Authenticate": challenged} if challenged else None,
        templates={"application/json": f'{{"jsonrpc": "2.0", "error": {error}}}'},
    )
