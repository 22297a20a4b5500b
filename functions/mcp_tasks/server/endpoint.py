"""The MCP endpoint: one POST in, one HTTP answer out (basic/transports/streamable-http.mdx).

The checks run in the order in which a client can act on them, and nothing is read or written
before all have passed: Origin, Host, size, JSON, revision, JSON-RPC, and then the revision's own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..protocol import jsonrpc, origin
from ..protocol.errors import ErrorCode, ProtocolError
from ..protocol.headers import Headers
from .offer import Offer
from .revisions import Revisions
from .revisions.revision import Revision

MAX_BODY_BYTES: Final = 1024 * 1024
MAX_BATCH: Final = 50

logger = Logger()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A POST, apart from the gateway that brought it."""

    headers: Headers
    body: bytes
    principal: str


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response: a message, or several in the one revision that has batches.

    A notification's answer has none. With `notifications`, which come before the message, the
    response is an event stream.
    """

    status: int
    message: dict[str, Any] | list[dict[str, Any]] | None = None
    notifications: list[dict[str, Any]] = field(default_factory=list)
    error: ProtocolError | None = None


class Endpoint:
    """Answers requests; keeps nothing between them."""

    def __init__(
        self,
        offer: Offer,
        allowed_origins: Sequence[str] = (),
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        self._revisions = Revisions(offer)
        self._allowed_origins = allowed_origins
        self._allowed_hosts = allowed_hosts

    def answer(self, http: HttpRequest) -> HttpAnswer:
        """Answer one POST. Never raises: what goes wrong becomes a JSON-RPC error."""
        revision: Revision = self._revisions.modern
        body = None
        try:
            body = self._body(http)
            revision = self._revisions.of(body, http.headers)
            logger.append_keys(revision=revision.version)
            if isinstance(body, list) and revision.batches:
                return self._batch(revision, body, http)
        except ProtocolError as error:
            return _refused(revision.refusal(error), jsonrpc.id_of(body))
        except Exception as unexpected:
            return _unexpected(unexpected, jsonrpc.id_of(body))
        return self._one(revision, body, http)

    def _body(self, http: HttpRequest) -> Any:
        """The decoded body of a request that may come in at all. Raises ProtocolError."""
        origin.check_origin(http.headers.get("origin"), self._allowed_origins)
        origin.check_host(http.headers.get("host"), self._allowed_hosts)
        if len(http.body) > MAX_BODY_BYTES:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST,
                f"The body is larger than {MAX_BODY_BYTES} bytes",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        return jsonrpc.decode(http.body)

    def _one(self, revision: Revision, body: Any, http: HttpRequest) -> HttpAnswer:
        """Answer one message."""
        request_id = jsonrpc.id_of(body)
        notifications: list[dict[str, Any]] = []
        try:
            message = jsonrpc.read(body)
            logger.append_keys(method=message.method[:64])
            if isinstance(message, jsonrpc.Notification):
                # None asks this server for anything; a receiver ignores those it does not know.
                return HttpAnswer(HTTPStatus.ACCEPTED)
            result = revision.result(message, http.headers, http.principal, notifications.append)
        except ProtocolError as error:
            answer = _refused(revision.refusal(error), request_id)
        except Exception as unexpected:
            answer = _unexpected(unexpected, request_id)
        else:
            answer = HttpAnswer(HTTPStatus.OK, jsonrpc.result_response(message.id, result))
        if not notifications or not _takes_events(http.headers.get("accept")):
            return answer
        # By the time of the response, a streaming carrier has sent status 200 and the events.
        return HttpAnswer(HTTPStatus.OK, answer.message, notifications, answer.error)

    def _batch(self, revision: Revision, bodies: list[Any], http: HttpRequest) -> HttpAnswer:
        """Answer several messages, one after the other, with one list."""
        if not 0 < len(bodies) <= MAX_BATCH:
            raise jsonrpc.malformed(f"A batch holds 1 to {MAX_BATCH} messages")
        answers = [self._one(revision, body, http) for body in bodies]
        messages = [a.message for a in answers if isinstance(a.message, dict)]
        if not messages:
            return HttpAnswer(HTTPStatus.ACCEPTED)
        notifications = [event for answer in answers for event in answer.notifications]
        error = next((answer.error for answer in answers if answer.error), None)
        return HttpAnswer(HTTPStatus.OK, messages, notifications, error)


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
    if answer.message is None:
        return response
    if not answer.notifications:
        response["headers"] = {"Content-Type": "application/json"}
        response["body"] = json.dumps(answer.message)
        return response
    # "Servers SHOULD include the X-Accel-Buffering: no header" (Receiving Messages).
    response["headers"] = {
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-cache",
        "X-Accel-Buffering": "no",
    }
    response["body"] = "".join(event(m) for m in (*answer.notifications, answer.message))
    return response


def event(message: Any) -> str:
    """One JSON-RPC message as a server-sent event."""
    return f"event: message\ndata: {json.dumps(message)}\n\n"


def _refused(error: ProtocolError, request_id: jsonrpc.RequestId | None) -> HttpAnswer:
    return HttpAnswer(error.status, jsonrpc.error_response(request_id, error), error=error)


def _unexpected(exception: Exception, request_id: jsonrpc.RequestId | None) -> HttpAnswer:
    logger.error("Unexpected error", error=type(exception).__name__)
    return _refused(ProtocolError(ErrorCode.INTERNAL_ERROR, "Internal error"), request_id)


def _takes_events(accept: str | None) -> bool:
    """Clients list both types ("Sending Messages"); one that does not gets the result alone."""
    taken = ("text/event-stream", "text/*", "*/*")
    return accept is None or any(kind in accept.lower() for kind in taken)


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except ValueError:
        return body.encode("utf-8", "replace")  # not Base64 after all: the JSON parser will say so
