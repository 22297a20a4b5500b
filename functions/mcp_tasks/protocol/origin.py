"""The checks of `Origin` and `Host` (streamable-http.mdx, "Security & Endpoint").

A malicious web page can call every server that its browser reaches. `Origin` names the page that
calls. `Host` has the name by which the browser reached the server: it reveals a page that made its
own name resolve to the server's address (DNS rebinding).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus

from .errors import ErrorCode, ProtocolError


def check_origin(origin: str | None, allowed: Sequence[str]) -> None:
    """Refuse a request from a web page that the deployment does not allow.

    Clients that are not browsers send no Origin, and pass. `allowed` holds origins such as
    `https://app.example.com`, with `*` for any run of characters (`http://localhost:*`).

    Raises ProtocolError with HTTP 403.
    """
    if origin is None or is_allowed(origin, allowed):
        return
    raise _forbidden("This Origin may not call this server; its operator can allow it")


def is_allowed(origin: str, allowed: Sequence[str]) -> bool:
    """Whether pages of an origin may call, and read the answers."""
    return _matches(origin, allowed)


def check_host(host: str | None, allowed: Sequence[str]) -> None:
    """Refuse a request whose Host is not one of the deployment's names.

    `allowed` holds hosts with their ports, with `*` as above; an empty list allows every host.

    Raises ProtocolError with HTTP 403.
    """
    if not allowed or (host is not None and _matches(host.lower(), allowed)):
        return
    raise _forbidden("This server does not answer under this Host; its operator can allow it")


def _matches(value: str, patterns: Sequence[str]) -> bool:
    return any(_pattern(pattern).fullmatch(value) for pattern in patterns)


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*"))


def _forbidden(message: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INVALID_REQUEST, message, status=HTTPStatus.FORBIDDEN)
