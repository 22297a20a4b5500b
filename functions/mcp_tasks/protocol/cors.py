"""Cross-origin resource sharing: which web pages may read the server's answers (Fetch standard,
section 3.2, "CORS protocol").

A browser lets a page of another origin read an answer only if the answer names the page's origin.
Before a request that a form could not send, it asks by an OPTIONS request, without credentials, a
"preflight". Pages may read answers exactly if their origin may call (`origin.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from . import idempotency_header
from .origin import is_allowed

EXPOSED: Final = ("Mcp-Session-Id", "Mcp-Protocol-Version", "WWW-Authenticate", "Retry-After")
"""The headers of answers that pages may read, besides those that every page may."""

METHODS: Final = ("POST", "GET", "DELETE")

REQUEST_HEADERS: Final = (
    "Accept",
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
    idempotency_header.HEADER,
    # What a signature needs (`-c auth=iam`).
    "X-Amz-Content-Sha256",
    "X-Amz-Date",
    "X-Amz-Security-Token",
)
"""The headers that pages may send."""

PARAMETER_HEADERS: Final = "mcp-param-"
"""What the headers begin with that repeat a tool's arguments: their names are the tools'."""

MAX_AGE_SECONDS: Final = 7200
"""How long a browser remembers the answer to a preflight. Chromium takes no more than this."""


def answer_headers(origin: str | None, allowed: Sequence[str]) -> dict[str, str]:
    """The headers of every answer to a request with this `Origin`.

    Without allowed origins there are none. `Vary` tells caches that the answer is for one origin.
    """
    if not allowed:
        return {}
    headers = {"Vary": "Origin"}
    if origin is not None and is_allowed(origin, allowed):
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = ", ".join(EXPOSED)
    return headers


def preflight_headers(requested: str | None) -> dict[str, str]:
    """The further headers of the answer to a preflight of an allowed origin.

    `requested` is its `Access-Control-Request-Headers`: of the headers that repeat arguments, those
    are allowed that it names.
    """
    names = (name.strip() for name in (requested or "").split(","))
    parameters = [name for name in names if name.lower().startswith(PARAMETER_HEADERS)]
    return {
        "Access-Control-Allow-Methods": ", ".join(METHODS),
        "Access-Control-Allow-Headers": ", ".join((*REQUEST_HEADERS, *parameters)),
        "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
    }
