"""Reads a request's token, which has to be in one `Authorization` header and nowhere else.

Sources: RFC 6750, section 2; authorization/index.mdx, "Token Requirements": "Access tokens MUST NOT
be included in the URI query string".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..protocol.headers import Headers
from .tokens import InvalidToken

_CREDENTIALS: Final = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")
"""The scheme in upper or lower case (RFC 9110, section 11.1), one token, and nothing after it."""


def bearer_token(headers: Headers, query: Iterable[str]) -> str:
    """The token of a request. `query` holds the names of its query parameters.

    Raises InvalidToken when there is none, or more than one place that may hold one.
    """
    if any(name.lower() == "access_token" for name in query):
        raise InvalidToken("token_in_query")
    values = headers.all("authorization")
    if not values:
        raise InvalidToken("no_token")
    if len(values) > 1:
        raise InvalidToken("several_authorization_headers")
    credentials = _CREDENTIALS.fullmatch(values[0])
    if credentials is None:
        raise InvalidToken("malformed")
    return credentials[1]
