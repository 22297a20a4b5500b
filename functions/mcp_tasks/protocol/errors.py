"""JSON-RPC errors: the codes that the server emits, and the HTTP status of each.

Sources: 2026-07-28 basic/index.mdx, "Error Codes"; basic/transports/streamable-http.mdx, "Protocol
Version Header" (404), "Server Validation" (400) and "Security & Endpoint" (403).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from http import HTTPStatus
from typing import Any, Final

from .www_authenticate import bearer_challenge


class ErrorCode(IntEnum):
    """Every code this server emits; the specification forbids others in its reserved range."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
    UNSUPPORTED_PROTOCOL_VERSION = -32022


HTTP_STATUS: Final[Mapping[ErrorCode, HTTPStatus]] = {
    ErrorCode.PARSE_ERROR: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    ErrorCode.METHOD_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.INVALID_PARAMS: HTTPStatus.BAD_REQUEST,
    ErrorCode.INTERNAL_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.HEADER_MISMATCH: HTTPStatus.BAD_REQUEST,
    ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY: HTTPStatus.BAD_REQUEST,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: HTTPStatus.BAD_REQUEST,
}
"""The table of the official SDKs: clients read the JSON-RPC error from the body of a 4xx."""


class ProtocolError(Exception):
    """A request that is answered with a JSON-RPC error.

    Any code below the endpoint raises it; the endpoint alone writes it into a response. `status`
    overrides the table for errors whose HTTP status says more than their code (403, 413).
    `headers` are added to the HTTP response. `retry_after_seconds` says when to repeat the request:
    in `Retry-After` (RFC 9110, section 10.2.3) and, for clients that do not see headers, in `data`.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        status: HTTPStatus | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        if retry_after_seconds is not None:
            data = {**(data or {}), "retryAfterSeconds": retry_after_seconds}
            headers = {**(headers or {}), "Retry-After": str(retry_after_seconds)}
        self.code = code
        self.message = message
        self.data = data
        self.status = status or HTTP_STATUS[ErrorCode(code)]
        self.headers = headers or {}

    @classmethod
    def from_error(cls, error: Mapping[str, Any]) -> ProtocolError:
        """The error of an earlier response, or of a task, which is told with HTTP 200."""
        return ProtocolError(
            error["code"], error["message"], error.get("data"), status=HTTPStatus.OK
        )

    def as_error(self) -> dict[str, Any]:
        """The `error` member of a JSON-RPC error response."""
        error: dict[str, Any] = {"code": int(self.code), "message": self.message}
        if self.data is not None:
            error["data"] = dict(self.data)
        return error


def invalid_params(message: str, **data: Any) -> ProtocolError:
    """-32602: malformed parameters, unknown tools and unknown tasks."""
    return ProtocolError(ErrorCode.INVALID_PARAMS, message, data or None)


class TooManyRequests(ProtocolError):
    """HTTP 429: a quota or rate limit of the caller is reached.

    `retry_after_ms` says when to repeat the request, where that is known. It is rounded up to whole
    seconds.
    """

    def __init__(self, message: str, retry_after_ms: int | None = None) -> None:
        seconds = None if retry_after_ms is None else max(1, -(-retry_after_ms // 1000))
        super().__init__(
            ErrorCode.INTERNAL_ERROR,
            message,
            status=HTTPStatus.TOO_MANY_REQUESTS,
            retry_after_seconds=seconds,
        )


class Unavailable(ProtocolError):
    """HTTP 503: an AWS service is busy or did not answer; the same request may succeed later.

    Source: RFC 9110, section 15.6.4.
    """

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(
            ErrorCode.INTERNAL_ERROR,
            message,
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            retry_after_seconds=retry_after_seconds,
        )


class InsufficientScope(ProtocolError):
    """HTTP 403: the caller's access token lacks a scope (authorization/index.mdx, "Runtime
    Insufficient Scope Errors"). The challenge names all scopes that the request needs.

    API Gateway renames a function's `WWW-Authenticate` header. A request that names its tool in
    `Mcp-Name` gets its challenge from the gateway itself, before the function runs.
    """

    def __init__(self, scopes: Sequence[str], resource_metadata: str) -> None:
        challenge = bearer_challenge(resource_metadata, scopes, "insufficient_scope")
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"Insufficient scope: this needs {' '.join(scopes)}",
            {"requiredScopes": list(scopes)},
            status=HTTPStatus.FORBIDDEN,
            headers={"WWW-Authenticate": challenge},
        )


class MissingCapability(ProtocolError):
    """-32021 with `data.requiredCapabilities`, shaped like the ClientCapabilities to declare."""

    def __init__(self, message: str, required: Mapping[str, Any]) -> None:
        super().__init__(
            ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message,
            {"requiredCapabilities": required},
        )
