"""Where an issuer's signing keys are: OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3.

https://login.example/tenant/.well-known/openid-configuration
https://login.example/.well-known/oauth-authorization-server/tenant
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from .http_json import Fetch, FetchError

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Where http is good enough: the request stays on the machine."""


def check_issuer(issuer: str) -> None:
    """Raise ValueError for what cannot be an issuer (RFC 8414, section 2)."""
    parts = urlsplit(issuer)
    if not parts.hostname or not (parts.scheme == "https" or _is_local(parts)):
        raise ValueError(f"the issuer {issuer!r} is no https URL (http is for 127.0.0.1 alone)")
    if parts.query or parts.fragment or not issuer.isascii() or not issuer.isprintable():
        raise ValueError(f"the issuer {issuer!r} has a query, a fragment, or odd characters")


def key_set(issuer: str, fetch: Fetch) -> list[Any]:
    """The issuer's keys (RFC 7517, section 5), usable or not. Raises FetchError."""
    metadata = _metadata(issuer, fetch)
    if metadata.get("issuer") != issuer:
        raise FetchError("another issuer")
    location = metadata.get("jwks_uri")
    if not isinstance(location, str) or not _is_allowed(location, issuer):
        raise FetchError("jwks_uri")
    found = fetch(location)
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise FetchError("no key set")
    return keys


def _metadata(issuer: str, fetch: Fetch) -> dict[str, Any]:
    openid, oauth = _locations(issuer)
    try:
        found = fetch(openid)
    except FetchError as error:
        if error.status is None:  # no answer: the other document is on the same host
            raise
        found = fetch(oauth)
    if not isinstance(found, dict):
        raise FetchError("no metadata")
    return found


def _locations(issuer: str) -> tuple[str, str]:
    """Of the metadata. A slash at the issuer's end is left out in both."""
    parts = urlsplit(issuer)
    path = parts.path.removesuffix("/")
    host = f"{parts.scheme}://{parts.netloc}"
    return (
        f"{host}{path}/.well-known/openid-configuration",
        f"{host}/.well-known/oauth-authorization-server{path}",
    )


def _is_allowed(url: str, issuer: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (_is_local(parts) and _is_local(urlsplit(issuer)))


def _is_local(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in LOOPBACK
