"""One HTTP exchange: its messages are answered by the methods of the request's revision."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger

from ...aws.errors import error_code, is_transient
from ...protocol import jsonrpc
from ...protocol.errors import ErrorCode, ProtocolError, Unavailable
from ...protocol.headers import Headers
from ...tasks.errors import Busy
from ..caller import Caller
from ..response_channel import MAX_RESPONSE_BYTES, ResponseChannel, response_size
from ..revisions.revision import Revision
from .messages import HttpResponse

logger = Logger()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A POST that has passed the checks which hold for all revisions."""

    revision: Revision
    headers: Headers
    caller: Caller
    channel: ResponseChannel | None
    """Sends each notification at once; None collects them into the response."""

    def answer(self, body: Any) -> HttpResponse:
        """Answer one decoded message. Never raises: every error becomes a JSON-RPC error."""
        notifications: list[dict[str, Any]] = []
        try:
            message = jsonrpc.read(body)
            known = message.method in self.revision.method_table
            logger.append_keys(method=message.method if known else "unknown")
            if isinstance(message, jsonrpc.Notification):
                # No notification asks this server for anything; unknown ones are ignored.
                return HttpResponse(HTTPStatus.ACCEPTED)
            channel = self._channel(notifications)
            result = self.revision.answer(message, self.headers, self.caller, channel)
            text = json.dumps(jsonrpc.result_response(message.id, result), allow_nan=False)
            response = HttpResponse(HTTPStatus.OK, text)
            collected = sum(response_size(json.dumps(each)) for each in notifications)
            if response.size + collected > MAX_RESPONSE_BYTES:
                raise ProtocolError(ErrorCode.INTERNAL_ERROR, "The result is too large to send")
        except ProtocolError as error:
            response = error_response(self.revision.write_error(error), jsonrpc.id_of(body))
        except Exception as error:
            response = unexpected_error_response(error, jsonrpc.id_of(body))
        if not notifications:
            return response
        # An event stream has status 200: a streamed one has sent it before this point.
        return HttpResponse(HTTPStatus.OK, response.message, notifications, response.error)

    def _channel(self, notifications: list[dict[str, Any]]) -> ResponseChannel:
        """The response channel of one message."""
        channel = self.channel or ResponseChannel(notifications.append)
        if _accepts_events(self.headers.get("accept")):
            return channel
        return replace(channel, send=_drop, takes_notifications=False)


def error_response(error: ProtocolError, request_id: jsonrpc.RequestId | None) -> HttpResponse:
    """A JSON-RPC error, with its HTTP status."""
    text = json.dumps(jsonrpc.error_response(request_id, error))
    return HttpResponse(error.status, text, error=error)


def unexpected_error_response(
    error: Exception, request_id: jsonrpc.RequestId | None
) -> HttpResponse:
    """HTTP 503 for an error that may pass when the request is repeated; otherwise HTTP 500."""
    logger.error("Request failed with an unexpected error", error=error_code(error))
    if is_transient(error) or isinstance(error, Busy):
        return error_response(Unavailable("The server is busy; repeat the request"), request_id)
    return error_response(ProtocolError(ErrorCode.INTERNAL_ERROR, "Internal error"), request_id)


def _drop(notification: dict[str, Any]) -> None:
    """Take the notifications for a client that does not accept event streams."""


def _accepts_events(accept: str | None) -> bool:
    """Whether the client accepts event streams.

    Clients must list JSON and event streams ("Sending Messages"). A client that does not list event
    streams gets the result alone.
    """
    accepted = ("text/event-stream", "text/*", "*/*")
    return accept is None or any(media_type in accept.lower() for media_type in accepted)
