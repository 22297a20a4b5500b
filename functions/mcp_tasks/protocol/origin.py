"""Which browsers' pages may call (streamable-http.mdx, "Security & Endpoint")."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from http import HTTPStatus

from .errors import ErrorCode, ProtocolError


def check(origin: str | None, allowed: Sequence[str]) -> None:
    """Refuse a request from a page that is not on the deployment's list.

    Clients that are not browsers send no Origin and pass. `allowed` holds origins such as
    `https://app.example.com`, with `*` for any run of characters (`http://localhost:*`).

    Raises ProtocolError with HTTP 403.
    """
    if origin is None or any(fnmatchcase(origin, pattern) for pattern in allowed):
        return
    raise ProtocolError(
        ErrorCode.INVALID_REQUEST,
        "This Origin may not call this server; its operator can allow it",
        status=HTTPStatus.FORBIDDEN,
    )
