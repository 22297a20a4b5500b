"""The answers that API Gateway gives itself, without a function: JSON-RPC errors, and challenges.

Source: API Gateway developer guide, "Gateway responses for REST APIs" and "Gateway response types".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from aws_cdk import aws_apigateway as apigateway

from mcp_tasks.protocol.www_authenticate import bearer_challenge

RETRY_AFTER_SECONDS: Final = 1
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

Type = apigateway.ResponseType


@dataclass(frozen=True, slots=True)
class GatewayError:
    """One type of gateway response."""

    construct_id: str
    type: apigateway.ResponseType
    status: str | None
    """The HTTP status; None for the one that API Gateway has for the type."""
    code: int
    """The JSON-RPC error code."""
    message: str
    """JSON, or a variable of API Gateway's that holds JSON."""
    passes: bool = False
    """Whether the same request may succeed a moment later; the response says when to repeat it."""

    def add_to(self, api: apigateway.RestApi, further_headers: Mapping[str, str]) -> None:
        """Let an API answer with the error. The values of headers are as API Gateway writes them: a
        text in single quotes, or a variable.
        """
        headers = dict(further_headers)
        if self.passes:
            headers["Retry-After"] = f"'{RETRY_AFTER_SECONDS}'"
        error = f'{{"code": {self.code}, "message": {self.message}}}'
        api.add_gateway_response(
            self.construct_id,
            type=self.type,
            status_code=self.status,
            response_headers=headers or None,
            templates={"application/json": f'{{"jsonrpc": "2.0", "error": {error}}}'},
        )


def _error(
    construct_id: str, kind: apigateway.ResponseType, status: str | None, code: int, text: str
) -> GatewayError:
    return GatewayError(construct_id, kind, status, code, json.dumps(text))


def _busy(
    construct_id: str, kind: apigateway.ResponseType, status: str | None, text: str
) -> GatewayError:
    """A response to a request that may be repeated."""
    return replace(_error(construct_id, kind, status, INTERNAL_ERROR, text), passes=True)


ERRORS: Final = (
    _busy("Throttled", Type.THROTTLED, "429", "Too many requests; try again later"),
    # The function could not be called: Lambda had no free instance for it, for instance. API
    # Gateway's own answer is a 500 or a 504, which does not say that the request may be repeated.
    _busy(
        "NotReached",
        Type.INTEGRATION_FAILURE,
        "503",
        "The server could not take the request; try again later",
    ),
    _error("TooLarge", Type.REQUEST_TOO_LARGE, "413", INVALID_REQUEST, "The body is too large"),
    _error(
        "TimedOut",
        Type.INTEGRATION_TIMEOUT,
        "504",
        INTERNAL_ERROR,
        "The call took longer than a request may; a client that declares the tasks extension can "
        "run it as a task",
    ),
    # The defaults, for all types that have no response of their own. Each type keeps the status
    # that API Gateway gives it: 401, 403, 404, 415, 500, 502 and so on.
    GatewayError(
        "Default4xx", Type.DEFAULT_4_XX, None, INVALID_REQUEST, "$context.error.messageString"
    ),
    _busy("Default5xx", Type.DEFAULT_5_XX, None, "Internal error"),
)
AUTHORIZER_ERRORS: Final = (
    # The authorizer raised an error, or did not answer in time.
    _busy(
        "AuthorizerFailed",
        Type.AUTHORIZER_FAILURE,
        "503",
        "The authorization server could not be reached; try again later",
    ),
    # The authorizer could not be called, for instance because Lambda throttles it.
    _busy(
        "AuthorizerUnreachable",
        Type.AUTHORIZER_CONFIGURATION_ERROR,
        "503",
        "Access tokens cannot be checked now; try again later",
    ),
)
UNAUTHORIZED: Final = _error(
    "Unauthorized",
    Type.UNAUTHORIZED,
    "401",
    INVALID_REQUEST,
    "The request needs a valid access token",
)
ACCESS_DENIED: Final = _error(
    "AccessDenied",
    Type.ACCESS_DENIED,
    "403",
    INVALID_REQUEST,
    "The access token is not good for this request",
)

AUTHORIZER_CHALLENGE: Final = "context.authorizer.challenge"
"""What the authorizer returns with a denial: a challenge with the scopes that the request needs."""


def answer_in_json_rpc(api: apigateway.RestApi, cors_headers: Mapping[str, str]) -> None:
    """Answer API Gateway's own errors as JSON-RPC. It cannot read the request's id: there is
    none."""
    for error in ERRORS:
        error.add_to(api, cors_headers)


def challenge_callers(
    api: apigateway.RestApi,
    resource_metadata_url: str,
    scopes: tuple[str, ...],
    cors_headers: Mapping[str, str],
) -> None:
    """Tell callers without a token, or with too few scopes, which access token they need.

    authorization/index.mdx, "Protected Resource Metadata Discovery Requirements" and "Runtime
    Insufficient Scope Errors".
    """
    for error in AUTHORIZER_ERRORS:
        error.add_to(api, cors_headers)
    challenge = f"'{bearer_challenge(resource_metadata_url, scopes)}'"
    UNAUTHORIZED.add_to(api, {**cors_headers, "WWW-Authenticate": challenge})
    ACCESS_DENIED.add_to(api, {**cors_headers, "WWW-Authenticate": AUTHORIZER_CHALLENGE})
