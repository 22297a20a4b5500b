"""Fetches one JSON document of the issuer's by GET, bounded in size and time.

It follows no redirects, uses no proxy, and knows only https and http. `discovery` decides when http
is allowed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLError
from typing import Any, Final
from urllib.parse import urlsplit

MAX_BODY_BYTES: Final = 512 * 1024
CHUNK_BYTES: Final = 64 * 1024
SOCKET_TIMEOUT_SECONDS: Final = 2.0
"""For connecting, and for each read: an issuer that sends nothing for so long has failed."""
BODY_TIMEOUT_SECONDS: Final = 3.0
"""For the whole body, which an issuer could otherwise send a byte at a time."""

Fetch = Callable[[str], Any]
"""A function from a URL to the JSON value there. Raises FetchError."""


class FetchError(Exception):
    """A document could not be fetched.

    `reason` may be logged: it quotes nothing of the response except its status code.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


def fetch_json(url: str) -> Any:
    """Fetch the JSON value at a URL. Raises FetchError."""
    try:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        with closing(
            kind(parts.hostname or "", parts.port, timeout=SOCKET_TIMEOUT_SECONDS)
        ) as connection:
            target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
            connection.request("GET", target, headers={"Accept": "application/json"})
            with connection.getresponse() as response:
                if response.status != HTTPStatus.OK:  # OpenID Connect Discovery, section 4.2
                    raise FetchError(f"status {response.status}", response.status)
                body = _body(response)
    except TimeoutError:
        raise FetchError("timeout") from None
    except SSLError:
        raise FetchError("TLS") from None
    except (OSError, HTTPException, ValueError):  # ValueError: not a URL
        raise FetchError("unreachable") from None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise FetchError("not JSON") from None


def _body(response: HTTPResponse) -> bytes:
    deadline = time.monotonic() + BODY_TIMEOUT_SECONDS
    body = b""
    while chunk := response.read1(CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise FetchError("too large")
        if time.monotonic() > deadline:
            raise FetchError("timeout")
    return body
