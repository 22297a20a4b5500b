"""One HTTP exchange: its messages are answered by the methods of the request's revision."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger

from ...aws.errors import error_code, is_transient
from ...protocol import jsonrpc
from ...protocol.errors import ErrorCode, ProtocolError, Unavailable
from ...protocol.headers import Headers
from ...redaction import unexpected_error
from ...tasks.errors import Busy
from ..caller import Caller
from ..response_channel import MAX_RESPONSE_BYTES, ResponseChannel, StreamEvent, response_size
from ..revisions.revision import Answer, Revision
from ..stream_position import StreamPosition
from .event_stream import written
from .messages import HttpResponse

logger = Logger()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that has passed the checks which hold for all revisions."""

    revision: Revision
    headers: Headers
    caller: Caller
    channel: ResponseChannel | None
    """Sends each event at once; None collects them into the response."""

    def answer(self, body: Any) -> HttpResponse:
        """Answer one decoded message. Never raises: every error becomes a JSON-RPC error."""
        try:
            message = jsonrpc.read(body)
            if isinstance(message, jsonrpc.Response):
                logger.append_keys(method="response")
                self.revision.answered(message, self.caller)
                return HttpResponse(HTTPStatus.ACCEPTED)
            known = message.method in self.revision.method_table
            logger.append_keys(method=message.method if known else "unknown")
            if isinstance(message, jsonrpc.Notification):
                self.revision.notified(message, self.caller)
                return HttpResponse(HTTPStatus.ACCEPTED)
        except Exception as error:
            return self._refused(error, jsonrpc.id_of(body))
        request = message
        return self._exchange(
            request.id,
            lambda channel: self.revision.answer(request, self.headers, self.caller, channel),
        )

    def resume(self, position: StreamPosition) -> HttpResponse:
        """Go on with the event stream of an earlier request. Never raises, either."""
        logger.append_keys(method=position.method, resumed=True)
        return self._exchange(
            None if position.request_id == "" else position.request_id,
            lambda channel: self.revision.resumed(position, self.headers, self.caller, channel),
        )

    def _exchange(
        self, request_id: jsonrpc.RequestId | None, answer: Callable[[ResponseChannel], Answer]
    ) -> HttpResponse:
        """The response to a request, or the part of its event stream that comes now."""
        events: list[StreamEvent] = []
        try:
            answered = answer(self._channel(events))
            text, own_headers = None, answered.headers
            if answered.result is not None and request_id is not None:
                message = jsonrpc.result_response(request_id, answered.result)
                text = json.dumps(message, allow_nan=False)
            response = HttpResponse(HTTPStatus.OK, text, own_headers=own_headers)
            collected = sum(response_size(written(each)) for each in events)
            if response.size + collected > MAX_RESPONSE_BYTES:
                raise ProtocolError(ErrorCode.INTERNAL_ERROR, "The result is too large to send")
        except Exception as error:
            response = self._refused(error, request_id)
        if not events:
            return response
        # An event stream has status 200: a streamed one has sent it before this point.
        return HttpResponse(HTTPStatus.OK, response.message, events, response.error)

    def _refused(self, error: Exception, request_id: jsonrpc.RequestId | None) -> HttpResponse:
        if isinstance(error, ProtocolError):
            return error_response(self.revision.write_error(error), request_id)
        return unexpected_error_response(error, request_id)

    def _channel(self, events: list[StreamEvent]) -> ResponseChannel:
        """The response channel of one message."""
        channel = self.channel or ResponseChannel(events.append)
        if accepts_events(self.headers.get("accept")):
            return channel
        return replace(channel, write=_drop, takes_notifications=False, keep_alive=_write_nothing)


def error_response(error: ProtocolError, request_id: jsonrpc.RequestId | None) -> HttpResponse:
    """A JSON-RPC error, with its HTTP status."""
    text = json.dumps(jsonrpc.error_response(request_id, error))
    return HttpResponse(error.status, text, error=error)


def unexpected_error_response(
    error: Exception, request_id: jsonrpc.RequestId | None
) -> HttpResponse:
    """HTTP 503 for an error that may pass when the request is repeated; otherwise HTTP 500."""
    if is_transient(error) or isinstance(error, Busy):
        logger.error("Request failed with an unexpected error", error=error_code(error))
        return error_response(Unavailable("The server is busy; repeat the request"), request_id)
    return error_response(unexpected_error(logger, error), request_id)


def _drop(event: StreamEvent) -> None:
    """Take the events for a client that does not accept event streams."""


def _write_nothing() -> None:
    """Its response is JSON: a comment would make it an event stream."""


def accepts_events(accept: str | None) -> bool:
    """Whether the client accepts event streams.

    Clients must list JSON and event streams ("Sending Messages"). A client that does not list event
    streams gets the result alone.
    """
    accepted = ("text/event-stream", "text/*", "*/*")
    return accept is None or any(media_type in accept.lower() for media_type in accepted)
