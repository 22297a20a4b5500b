"""The MCP endpoint: one HTTP request in, one response out (basic/transports/streamable-http.mdx;
2025-11-25 basic/transports.mdx).

POST brings a message. GET and DELETE are for the revisions with sessions: they resume an event
stream, and end a session. OPTIONS is a browser's question before it sends one of these for a page.

These checks come before anything is read or written: Origin, Host, the caller, the body's size, its
JSON, the protocol revision, the session's id. The revision's own checks follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger

from ...limits import Limits
from ...protocol import cors, jsonrpc, origin
from ...protocol.errors import ErrorCode, ProtocolError
from ...tasks.task import now_ms
from .. import sessions, stream_position
from ..caller import Caller
from ..methods import session_stream
from ..response_channel import ResponseChannel
from ..revisions import Revisions
from ..revisions.revision import Revision
from ..server_methods import ServerMethods
from ..stream_position import StreamPosition
from .batch import answer_batch
from .exchange import Exchange, accepts_events, error_response, unexpected_error_response
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
        self._methods = methods.in_sessions
        self._allowed_origins = allowed_origins
        self._allowed_hosts = allowed_hosts
        self._limits = limits

    def answer(self, http: HttpRequest, channel: ResponseChannel | None = None) -> HttpResponse:
        """Answer one request. Never raises: every error becomes a JSON-RPC error.

        `channel` sends each event at once. Without one, the response holds them.
        """
        try:
            # A browser asks without credentials (Fetch standard, "CORS-preflight fetch").
            caller = None if http.method == "OPTIONS" else _caller(http)
            origin.check_origin(http.headers.get("origin"), self._allowed_origins)
            origin.check_host(http.headers.get("host"), self._allowed_hosts)
            if caller is None:
                return _preflight(http)
            match http.method:
                case "GET":
                    return self._get(http, caller, channel)
                case "DELETE":
                    return self._delete(http, caller)
        except ProtocolError as error:
            return error_response(error, None)
        except Exception as error:
            return unexpected_error_response(error, None)
        return self._post(http, caller, channel)

    def cors_headers(self, http: HttpRequest) -> Mapping[str, str]:
        """The headers of every answer to a request, whatever it is: whether a page may read it."""
        return cors.answer_headers(http.headers.get("origin"), self._allowed_origins)

    def _post(
        self, http: HttpRequest, caller: Caller, channel: ResponseChannel | None
    ) -> HttpResponse:
        """One message from the client ("Sending Messages to the Server")."""
        revision: Revision = self._revisions.modern
        body = None
        try:
            body = self._body(http)
            revision = self._revisions.of(body, http.headers)
            if revision.has_sessions:
                caller = self._in_session(http, caller)
                revision = self._revisions.of_session(revision, caller.session, http.headers)
            logger.append_keys(revision=revision.version)
            exchange = Exchange(revision, http.headers, caller, channel)
            if isinstance(body, list) and revision.takes_batches:
                return answer_batch(body, exchange.answer)
        except ProtocolError as error:
            return error_response(revision.write_error(error), jsonrpc.id_of(body))
        except Exception as error:
            return unexpected_error_response(error, jsonrpc.id_of(body))
        return exchange.answer(body)

    def _get(
        self, http: HttpRequest, caller: Caller, channel: ResponseChannel | None
    ) -> HttpResponse:
        """Go on with an event stream ("Resumability and Redelivery"), or begin the session's own
        ("Listening for Messages from the Server")."""
        caller = self._in_session(http, caller)
        methods = self._methods
        last = http.headers.get(stream_position.HEADER)
        session = caller.session
        if methods is None or not accepts_events(http.headers.get("accept")):
            raise NotAllowed("GET brings an event stream: Accept must have text/event-stream")
        if last is not None:
            position = methods.event_ids.open(last, caller, now_ms())
        elif session is not None:
            position = StreamPosition(session.version, session_stream.METHOD, "")
        else:
            raise NotAllowed("GET needs Mcp-Session-Id or Last-Event-ID")
        revision = self._revisions.named(position.version)
        logger.append_keys(revision=revision.version)
        return Exchange(revision, http.headers, caller, channel).resume(position)

    def _delete(self, http: HttpRequest, caller: Caller) -> HttpResponse:
        """The client ends its session ("Session Management", 5)."""
        session = self._in_session(http, caller).session
        if self._methods is None or session is None:
            raise NotAllowed("DELETE ends the session that Mcp-Session-Id names")
        self._methods.sessions.end(session)
        self._methods.session_stream.end(session)
        return HttpResponse(HTTPStatus.NO_CONTENT)

    def _in_session(self, http: HttpRequest, caller: Caller) -> Caller:
        """The caller, with the session that it names. Raises SessionNotFound."""
        session_id = http.headers.get(sessions.HEADER)
        if session_id is None or self._methods is None:
            return caller
        session = self._methods.sessions.open(session_id, caller.principal)
        return replace(caller, session=session)

    def _body(self, http: HttpRequest) -> Any:
        """The decoded body of a request that passes the checks. Raises ProtocolError."""
        if len(http.body) > self._limits.max_body_bytes:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                f"The body is larger than {self._limits.max_body_bytes} bytes",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        limits = self._limits
        return jsonrpc.decode(http.body, limits.max_json_depth, limits.max_json_values)


class NotAllowed(ProtocolError):
    """HTTP 405: what the request asks for with GET or DELETE is not there for this client."""

    def __init__(self, message: str) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            message,
            status=HTTPStatus.METHOD_NOT_ALLOWED,
            headers={"Allow": "POST"},
        )


def _preflight(http: HttpRequest) -> HttpResponse:
    """What pages of the request's origin may send."""
    requested = http.headers.get("access-control-request-headers")
    return HttpResponse(HTTPStatus.NO_CONTENT, own_headers=cors.preflight_headers(requested))


def _caller(http: HttpRequest) -> Caller:
    """The caller. Raises ProtocolError (HTTP 401) when the gateway did not identify it."""
    if http.caller is None:
        logger.error("The gateway did not identify the caller; check the deployment's auth option")
        message = "The gateway did not identify the caller"
        raise ProtocolError(ErrorCode.INVALID_REQUEST, message, status=HTTPStatus.UNAUTHORIZED)
    return http.caller
