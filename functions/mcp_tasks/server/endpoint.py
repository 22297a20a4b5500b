"""The MCP endpoint: one POST in, one HTTP answer out (basic/transports/streamable-http.mdx).

The checks run in the order in which a client can act on them, and nothing is read or written
before all have passed: Origin, size, JSON-RPC, `_meta`, headers against body, revision, method.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..protocol import headers, jsonrpc, meta, origin
from ..protocol.errors import ErrorCode, ProtocolError
from ..protocol.headers import Headers
from .discovery import PROTOCOL_VERSION
from .methods import Call, MethodTable

MAX_BODY_BYTES: Final = 1024 * 1024

logger = Logger()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A POST, apart from the gateway that brought it."""

    headers: Headers
    body: bytes
    principal: str


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response; a notification's has no body."""

    status: int
    message: dict[str, Any] | None = None
    error: ProtocolError | None = None


class Endpoint:
    """Answers requests; keeps nothing between them."""

    def __init__(
        self,
        methods: MethodTable,
        server_info: Mapping[str, str],
        allowed_origins: Sequence[str] = (),
    ) -> None:
        self._methods = methods
        self._server_info = dict(server_info)
        self._allowed_origins = allowed_origins

    def answer(self, http: HttpRequest) -> HttpAnswer:
        """Answer one POST. Never raises: what goes wrong becomes a JSON-RPC error."""
        request_id = None
        try:
            origin.check(http.headers.get("origin"), self._allowed_origins)
            if len(http.body) > MAX_BODY_BYTES:
                raise ProtocolError(
                    ErrorCode.INVALID_REQUEST,
                    f"The body is larger than {MAX_BODY_BYTES} bytes",
                    status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                )
            message = jsonrpc.parse(http.body)
            logger.append_keys(method=message.method[:64])
            if isinstance(message, jsonrpc.Notification):
                # None is defined for this transport; a receiver ignores those it does not know.
                return HttpAnswer(HTTPStatus.ACCEPTED)
            request_id = message.id
            result = self._result(message, http)
        except ProtocolError as error:
            if isinstance(error, jsonrpc.MalformedRequest):
                request_id = error.request_id
            return HttpAnswer(error.status, jsonrpc.error_response(request_id, error), error)
        except Exception as unexpected:
            logger.error("Unexpected error", error=type(unexpected).__name__)
            internal = ProtocolError(ErrorCode.INTERNAL_ERROR, "Internal error")
            return HttpAnswer(
                internal.status, jsonrpc.error_response(request_id, internal), internal
            )
        return HttpAnswer(HTTPStatus.OK, jsonrpc.result_response(request_id, result))

    def _result(self, request: jsonrpc.Request, http: HttpRequest) -> dict[str, Any]:
        try:
            request_meta = meta.read(request.params)
        except ProtocolError as error:
            if request.method == "initialize":
                # versioning.mdx: this may be the only words that an older client can show.
                raise self._unsupported(request.params.get("protocolVersion")) from None
            raise error
        headers.check(request, request_meta, http.headers)
        if request_meta.protocol_version != PROTOCOL_VERSION:
            raise self._unsupported(request_meta.protocol_version)
        method = self._methods.get(request.method)
        if method is None:
            raise ProtocolError(
                ErrorCode.METHOD_NOT_FOUND, f"Method not found: {request.method[:64]}"
            )
        result = method(Call(request.params, request_meta, http.headers, http.principal))
        return {**result, "_meta": {**result.get("_meta", {}), meta.SERVER_INFO: self._server_info}}

    def _unsupported(self, requested: object) -> ProtocolError:
        return ProtocolError(
            ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
            f"Unsupported protocol version; this server speaks {PROTOCOL_VERSION}",
            {
                "supported": [PROTOCOL_VERSION],
                "requested": requested[:64] if isinstance(requested, str) else "unknown",
            },
        )


def from_api_gateway(event: Mapping[str, Any], anonymous: str) -> HttpRequest:
    """Read a REST API's proxy event (API Gateway developer guide, "Input format", payload 1.0).

    The principal is the caller's ARN where the method requires IAM, else `anonymous`.
    """
    multi = event.get("multiValueHeaders") or {
        name: [value] for name, value in (event.get("headers") or {}).items()
    }
    body = event.get("body") or ""
    identity = (event.get("requestContext") or {}).get("identity") or {}
    return HttpRequest(
        headers=Headers(multi),
        body=_decoded(body) if event.get("isBase64Encoded") else body.encode("utf-8", "replace"),
        principal=identity.get("userArn") or anonymous,
    )


def to_api_gateway(answer: HttpAnswer) -> dict[str, Any]:
    """Write a REST API's proxy response."""
    response: dict[str, Any] = {"statusCode": int(answer.status), "body": ""}
    if answer.message is not None:
        response["headers"] = {"Content-Type": "application/json"}
        response["body"] = json.dumps(answer.message)
    return response


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        return body.encode("utf-8", "replace")  # not Base64 after all: the JSON parser will say so
