"""One GET for one JSON document of the issuer's, bounded in size and time.

No redirect is followed, no proxy is asked, and there are no schemes but https and http:
`discovery` says when http may be.
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

MAX_BYTES: Final = 512 * 1024
CHUNK_BYTES: Final = 64 * 1024
SILENCE_SECONDS: Final = 2.0
"""How long the issuer may say nothing."""
BODY_SECONDS: Final = 3.0
"""How long a body may take, however often the issuer says a little."""

Fetch = Callable[[str], Any]
"""From a URL to its JSON. Raises FetchError."""


class FetchError(Exception):
    """There is no document; `reason` holds nothing of what was received, but for its status."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


def fetch_json(url: str) -> Any:
    """The JSON at a URL. Raises FetchError."""
    try:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        with closing(kind(parts.hostname or "", parts.port, timeout=SILENCE_SECONDS)) as connection:
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
    except (OSError, HTTPException, ValueError):  # ValueError: no such URL
        raise FetchError("unreachable") from None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise FetchError("not JSON") from None


def _body(response: HTTPResponse) -> bytes:
    until = time.monotonic() + BODY_SECONDS
    body = b""
    while chunk := response.read1(CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_BYTES:
            raise FetchError("too large")
        if time.monotonic() > until:
            raise FetchError("timeout")
    return body
