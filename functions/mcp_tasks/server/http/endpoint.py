"""The MCP endpoint: one POST in, one HTTP answer out (basic/transports/streamable-http.mdx).

The checks run in the order in which a client can act on them, and nothing is read or written
before all have passed: who calls, Origin, Host, size, JSON, revision, JSON-RPC, and then the
revision's own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...aws.errors import error_code, is_transient
from ...limits import Limits
from ...protocol import jsonrpc, origin
from ...protocol.errors import ErrorCode, ProtocolError, Unavailable
from ...tasks.task import now_ms
from ...tasks.task_table import Busy
from ..caller import Caller
from ..response_channel import BUFFERED_MS, MOST_CARRIED, ResponseChannel, carried_size
from ..revisions import Revisions
from ..revisions.revision import Revision
from ..server_methods import ServerMethods
from .api_gateway import HttpAnswer, HttpRequest

MAX_BATCH: Final = 50
BATCH_SECONDS: Final = 20.0
"""When the rest of a batch is refused: API Gateway waits 29 seconds for all of it."""

logger = Logger()


class Endpoint:
    """Answers requests; keeps nothing between them."""

    def __init__(
        self,
        methods_offered: ServerMethods,
        allowed_origins: Sequence[str] = (),
        allowed_hosts: Sequence[str] = (),
        limits: Limits = Limits(),  # noqa: B008  it never changes
    ) -> None:
        self._revisions = Revisions(methods_offered)
        self._allowed_origins = allowed_origins
        self._allowed_hosts = allowed_hosts
        self._limits = limits

    def answer(self, http: HttpRequest, channel: ResponseChannel | None = None) -> HttpAnswer:
        """Answer one POST. Never raises: what goes wrong becomes a JSON-RPC error.

        `carrier` gets each notification as it happens; without one they come with the answer.
        """
        revision: Revision = self._revisions.modern
        body = None
        try:
            caller = self._caller(http)
            body = self._body(http)
            revision = self._revisions.of(body, http.headers)
            logger.append_keys(revision=revision.version)
            if isinstance(body, list) and revision.batches:
                return self._batch(revision, body, http, caller, channel)
        except ProtocolError as error:
            return _refused(revision.refusal(error), jsonrpc.id_of(body))
        except Exception as unexpected:
            return _unexpected(unexpected, jsonrpc.id_of(body))
        return self._one(revision, body, http, caller, channel)

    def _caller(self, http: HttpRequest) -> Caller:
        """Who calls. Raises ProtocolError (HTTP 401) when the gateway does not say."""
        if http.caller is None:
            logger.error("The gateway does not say who calls")
            message = "Who calls is not known"
            raise ProtocolError(ErrorCode.INVALID_REQUEST, message, status=HTTPStatus.UNAUTHORIZED)
        return http.caller

    def _body(self, http: HttpRequest) -> Any:
        """The decoded body of a request that may come in at all. Raises ProtocolError."""
        origin.check_origin(http.headers.get("origin"), self._allowed_origins)
        origin.check_host(http.headers.get("host"), self._allowed_hosts)
        if len(http.body) > self._limits.max_body_bytes:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                f"The body is larger than {self._limits.max_body_bytes} bytes",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        return jsonrpc.decode(http.body, self._limits.max_json_depth)

    def _one(
        self,
        revision: Revision,
        body: Any,
        http: HttpRequest,
        caller: Caller,
        channel: ResponseChannel | None,
    ) -> HttpAnswer:
        """Answer one message."""
        request_id = jsonrpc.id_of(body)
        notifications: list[dict[str, Any]] = []
        channel = channel or ResponseChannel(notifications.append, now_ms() + BUFFERED_MS)
        if not _takes_events(http.headers.get("accept")):
            channel = replace(channel, send=_unheard, hears=False)
        try:
            message = jsonrpc.read(body)
            known = message.method in revision.prepare()
            logger.append_keys(method=message.method if known else "unknown")
            if isinstance(message, jsonrpc.Notification):
                # None asks this server for anything; a receiver ignores those it does not know.
                return HttpAnswer(HTTPStatus.ACCEPTED)
            result = revision.result(message, http.headers, caller, channel)
            text = json.dumps(jsonrpc.result_response(message.id, result), allow_nan=False)
            answer = HttpAnswer(HTTPStatus.OK, text)
            beside = sum(carried_size(json.dumps(heard)) for heard in notifications)
            if answer.size + beside > MOST_CARRIED:
                raise ProtocolError(ErrorCode.INTERNAL_ERROR, "The result is too large to send")
        except ProtocolError as error:
            answer = _refused(revision.refusal(error), request_id)
        except Exception as unexpected:
            answer = _unexpected(unexpected, request_id)
        if not notifications:
            return answer
        # By the time of the response, a streaming carrier has sent status 200 and the events.
        return HttpAnswer(HTTPStatus.OK, answer.message, notifications, answer.error)

    def _batch(
        self,
        revision: Revision,
        bodies: list[Any],
        http: HttpRequest,
        caller: Caller,
        channel: ResponseChannel | None,
    ) -> HttpAnswer:
        """Answer several messages, one after the other, with one list.

        When they have taken their time or filled their answer, the rest is refused one by one.
        """
        if not 0 < len(bodies) <= MAX_BATCH:
            raise jsonrpc.malformed(f"A batch holds 1 to {MAX_BATCH} messages")
        end, size = time.monotonic() + BATCH_SECONDS, 0
        answers: list[HttpAnswer] = []
        for body in bodies:
            request_id = jsonrpc.id_of(body)
            answer = _refused(_left_out(), request_id)
            if time.monotonic() < end and size < MOST_CARRIED:
                answer = self._one(revision, body, http, caller, channel)
            if size + answer.size > MOST_CARRIED and request_id is not None:
                answer = _refused(_left_out(), request_id)
            size += answer.size + sum(map(len, map(str, answer.notifications)))
            answers.append(answer)
        messages = [answer.message for answer in answers if answer.message is not None]
        if not messages:
            return HttpAnswer(HTTPStatus.ACCEPTED)
        notifications = [event for answer in answers for event in answer.notifications]
        error = next((answer.error for answer in answers if answer.error), None)
        return HttpAnswer(HTTPStatus.OK, f"[{', '.join(messages)}]", notifications, error)


def _refused(error: ProtocolError, request_id: jsonrpc.RequestId | None) -> HttpAnswer:
    text = json.dumps(jsonrpc.error_response(request_id, error))
    return HttpAnswer(error.status, text, error=error)


def _left_out() -> ProtocolError:
    message = "The batch was too much for one answer; send this request alone"
    return ProtocolError(ErrorCode.INTERNAL_ERROR, message, status=HTTPStatus.OK)


def _unheard(notification: dict[str, Any]) -> None:
    """Where the notifications go of a client that takes no streams."""


def _unexpected(exception: Exception, request_id: jsonrpc.RequestId | None) -> HttpAnswer:
    logger.error("Unexpected error", error=error_code(exception))
    if is_transient(exception) or isinstance(exception, Busy):
        return _refused(Unavailable("The server is busy; repeat the request"), request_id)
    return _refused(ProtocolError(ErrorCode.INTERNAL_ERROR, "Internal error"), request_id)


def _takes_events(accept: str | None) -> bool:
    """Clients list both types ("Sending Messages"); one that does not gets the result alone."""
    taken = ("text/event-stream", "text/*", "*/*")
    return accept is None or any(kind in accept.lower() for kind in taken)
