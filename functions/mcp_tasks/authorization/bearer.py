"""The token of a request: in one `Authorization` header, and nowhere else.

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
"""The scheme in any case (RFC 9110, section 11.1); one token, and nothing after it."""


def bearer_token(headers: Headers, query: Iterable[str]) -> str:
    """The token. `query` are the names in the query. Raises InvalidToken."""
    if any(name.lower() == "access_token" for name in query):
        raise InvalidToken("query")
    values = headers.all("authorization")
    if not values:
        raise InvalidToken("missing")
    if len(values) > 1:
        raise InvalidToken("repeated")
    credentials = _CREDENTIALS.fullmatch(values[0])
    if credentials is None:
        raise InvalidToken("malformed")
    return credentials[1]
