"""The MCP endpoint: one POST in, one HTTP response out (basic/transports/streamable-http.mdx).

These checks come before anything is read or written: the caller, Origin, Host, the body's size, its
JSON, the protocol revision. The revision's own checks follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger

from ...limits import Limits
from ...protocol import jsonrpc, origin
from ...protocol.errors import ErrorCode, ProtocolError
from ..caller import Caller
from ..response_channel import ResponseChannel
from ..revisions import Revisions
from ..revisions.revision import Revision
from ..server_methods import ServerMethods
from .batch import answer_batch
from .exchange import Exchange, error_response, unexpected_error_response
from .messages import HttpRequest, HttpResponse

logger = Logger()


class Endpoint:
    """Answers requests; keeps nothing between them."""

    def __init__(
        self,
        methods: ServerMethods,
        allowed_origins: Sequence[str] = (),
        allowed_hosts: Sequence[str] = (),
        limits: Limits = Limits(),  # noqa: B008  it never changes
    ) -> None:
        self._revisions = Revisions(methods)
        self._allowed_origins = allowed_origins
        self._allowed_hosts = allowed_hosts
        self._limits = limits

    def answer(self, http: HttpRequest, channel: ResponseChannel | None = None) -> HttpResponse:
        """Answer one POST. Never raises: every error becomes a JSON-RPC error.

        `channel` sends each notification at once. Without one, the response holds them.
        """
        revision: Revision = self._revisions.modern
        body = None
        try:
            caller = _caller(http)
            body = self._body(http)
            revision = self._revisions.of(body, http.headers)
            logger.append_keys(revision=revision.version)
            exchange = Exchange(revision, http.headers, caller, channel)
            if isinstance(body, list) and revision.takes_batches:
                return answer_batch(body, exchange.answer)
        except ProtocolError as error:
            return error_response(revision.write_error(error), jsonrpc.id_of(body))
        except Exception as error:
            return unexpected_error_response(error, jsonrpc.id_of(body))
        return exchange.answer(body)

    def _body(self, http: HttpRequest) -> Any:
        """The decoded body of a request that passes the checks. Raises ProtocolError."""
        origin.check_origin(http.headers.get("origin"), self._allowed_origins)
        origin.check_host(http.headers.get("host"), self._allowed_hosts)
        if len(http.body) > self._limits.max_body_bytes:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                f"The body is larger than {self._limits.max_body_bytes} bytes",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        limits = self._limits
        return jsonrpc.decode(http.body, limits.max_json_depth, limits.max_json_values)


def _caller(http: HttpRequest) -> Caller:
    """The caller. Raises ProtocolError (HTTP 401) when the gateway did not identify it."""
    if http.caller is None:
        logger.error("The gateway did not identify the caller; check the deployment's auth option")
        message = "The gateway did not identify the caller"
        raise ProtocolError(ErrorCode.INVALID_REQUEST, message, status=HTTPStatus.UNAUTHORIZED)
    return http.caller
