"""`WWW-Authenticate`: the challenge that tells a client which token it needs.

Sources: RFC 6750, section 3; RFC 9728, section 5.1; authorization/index.mdx, "Protected Resource
Metadata Discovery Requirements" and "Runtime Insufficient Scope Errors".
"""

from __future__ import annotations

from collections.abc import Iterable


def bearer_challenge(
    resource_metadata: str,
    scopes: Iterable[str] = (),
    error: str | None = None,
    description: str | None = None,
) -> str:
    """A challenge of the scheme `Bearer`.

    `scopes` are all scopes that the request needs. `error` is left out for a request without a
    token. No value may hold a quote or a backslash; scopes cannot (RFC 6749, section 3.3).
    """
    scope = " ".join(scopes)
    parameters = {
        "error": error,
        "error_description": description,
        "scope": scope or None,
        "resource_metadata": resource_metadata,
    }
    given = (f'{name}="{value}"' for name, value in parameters.items() if value is not None)
    return f"Bearer {', '.join(given)}"
