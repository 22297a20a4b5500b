"""A REST API's proxy events and proxy responses.

Source: API Gateway developer guide, "Input format of a Lambda function for proxy integration" and
"Output format of a Lambda function for proxy integration".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ...environment import Auth, Principal
from ...protocol.headers import Headers
from ..caller import caller_of
from .event_stream import EVENT_STREAM_HEADERS, NO_HEADERS, event, written
from .messages import HttpRequest, HttpResponse


def from_api_gateway(
    proxy_event: Mapping[str, Any], auth: Auth, principal: Principal = "session"
) -> HttpRequest:
    """Read a proxy event (payload format 1.0)."""
    multi = proxy_event.get("multiValueHeaders") or {
        name: [value] for name, value in (proxy_event.get("headers") or {}).items()
    }
    body = proxy_event.get("body") or ""
    encoded = proxy_event.get("isBase64Encoded")
    return HttpRequest(
        method=proxy_event.get("httpMethod") or "POST",
        headers=Headers(multi),
        body=_decoded(body) if encoded else body.encode("utf-8", "replace"),
        caller=caller_of(proxy_event.get("requestContext") or {}, auth, principal),
    )


def to_api_gateway(
    response: HttpResponse, cors_headers: Mapping[str, str] = NO_HEADERS
) -> dict[str, Any]:
    """Write a proxy response. `cors_headers` are added to its own."""
    proxy: dict[str, Any] = {"statusCode": int(response.status), "body": ""}
    if response.events:
        proxy["headers"] = {**EVENT_STREAM_HEADERS, **cors_headers}
        end = "" if response.message is None else event(response.message)
        proxy["body"] = "".join(map(written, response.events)) + end
    elif response.message is not None or response.headers or cors_headers:
        proxy["headers"] = {**response.headers, **cors_headers}
        proxy["body"] = response.message or ""
    return proxy


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except ValueError:
        return body.encode("utf-8", "replace")  # not Base64: the JSON parser reports the error
