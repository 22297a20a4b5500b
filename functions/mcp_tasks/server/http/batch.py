"""JSON-RPC batches: several messages in one body, which 2025-03-26 alone allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from ...protocol import jsonrpc
from ...protocol.errors import ErrorCode, ProtocolError
from ...registry.check_cost import shared_budget
from ..response_channel import MAX_RESPONSE_BYTES
from .exchange import error_response
from .messages import HttpResponse

MAX_BATCH_MESSAGES: Final = 50

MAX_BATCH_SECONDS: Final = 20.0
"""Then the rest of a batch is refused: API Gateway waits 29 seconds for the whole response."""


@shared_budget()
def answer_batch(bodies: list[Any], answer: Callable[[Any], HttpResponse]) -> HttpResponse:
    """Answer several messages, one after the other, with one array.

    A batch that takes too long, or whose response is full, has the rest of its messages refused one
    by one. To check the arguments of all its messages may cost as much as those of one request.
    Raises ProtocolError (-32600) for an empty batch and for one with too many messages.
    """
    if not 0 < len(bodies) <= MAX_BATCH_MESSAGES:
        raise jsonrpc.malformed(f"A batch holds 1 to {MAX_BATCH_MESSAGES} messages")
    end, size = time.monotonic() + MAX_BATCH_SECONDS, 0
    responses: list[HttpResponse] = []
    for body in bodies:
        request_id = jsonrpc.id_of(body)
        response = error_response(_left_out(), request_id)
        if time.monotonic() < end and size < MAX_RESPONSE_BYTES:
            response = answer(body)
        if size + response.size > MAX_RESPONSE_BYTES and request_id is not None:
            response = error_response(_left_out(), request_id)
        size += response.size + sum(map(len, map(str, response.events)))
        responses.append(response)
    messages = [response.message for response in responses if response.message is not None]
    if not messages:
        return HttpResponse(HTTPStatus.ACCEPTED)
    events = [sent for response in responses for sent in response.events]
    error = next((response.error for response in responses if response.error), None)
    return HttpResponse(HTTPStatus.OK, f"[{', '.join(messages)}]", events, error)


def _left_out() -> ProtocolError:
    message = "The batch is too large for one response; send this request alone"
    return ProtocolError(ErrorCode.INTERNAL_ERROR, message, status=HTTPStatus.OK)
