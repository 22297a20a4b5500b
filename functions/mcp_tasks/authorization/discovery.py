"""Finds an issuer's signing keys (OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3).

The issuer `https://login.example/tenant` describes itself in one of two documents, which name the
URL of its keys:

https://login.example/tenant/.well-known/openid-configuration
https://login.example/.well-known/oauth-authorization-server/tenant
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from .http_json import Fetch, FetchError

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Hosts for which http is allowed: the request does not leave the machine."""


def check_issuer(issuer: str) -> None:
    """Raise ValueError for a text that cannot be an issuer's URL (RFC 8414, section 2)."""
    parts = urlsplit(issuer)
    if not parts.hostname or not (parts.scheme == "https" or _is_local(parts)):
        raise ValueError(f"the issuer {issuer!r} is no https URL (http is only for 127.0.0.1)")
    if parts.query or parts.fragment or not issuer.isascii() or not issuer.isprintable():
        raise ValueError(f"the issuer {issuer!r} has a query, a fragment, or non-ASCII characters")


def fetch_key_set(issuer: str, fetch: Fetch) -> list[Any]:
    """Fetch the issuer's JWKs (RFC 7517, section 5), usable or not. Raises FetchError."""
    metadata = _metadata(issuer, fetch)
    if metadata.get("issuer") != issuer:
        raise FetchError("the metadata is another issuer's")
    location = metadata.get("jwks_uri")
    if not isinstance(location, str) or not _is_allowed(location, issuer):
        raise FetchError("jwks_uri is no https URL")
    found = fetch(location)
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise FetchError("no key set at jwks_uri")
    return keys


def _metadata(issuer: str, fetch: Fetch) -> dict[str, Any]:
    openid, oauth = _locations(issuer)
    try:
        found = fetch(openid)
    except FetchError as error:
        if error.status is None:  # The host did not answer, and the other document is there too.
            raise
        found = fetch(oauth)
    if not isinstance(found, dict):
        raise FetchError("the metadata is no JSON object")
    return found


def _locations(issuer: str) -> tuple[str, str]:
    """The URLs of the two documents. Both leave out a slash at the end of the issuer."""
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
