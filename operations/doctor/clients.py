"""In which order clients look for the issuer, and what each takes.

The three revisions are the specification's (authorization-server-discovery.mdx of 2026-07-28;
authorization.mdx of 2025-11-25 and 2025-06-18). The orders of the official SDKs are those of their
sources (Python: `mcp/client/auth/utils.py`; TypeScript: `src/client/auth.ts`), and so is VS Code's
(`src/vs/base/common/oauth.ts`). That of claude.ai is what server logs in public bug reports show:
it is played as the reports have it at their worst, without the challenge. Clients change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
OAUTH: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class Client:
    """How one client looks."""

    name: str
    follows_challenge: bool = True
    """Whether it asks at the URL that `WWW-Authenticate` names."""
    probes: bool = True
    """Whether it asks at the well-known paths when it has no such URL."""
    keeps_looking: bool = False
    """Whether it asks there also when there is nothing at the URL."""
    openid: bool = True
    """Whether it takes OpenID Connect's document where there is none of OAuth."""
    exact_resource: bool = False
    """Whether `resource` has to be the endpoint's URL (RFC 9728, section 3.3), and not one that it
    begins with."""
    checks_issuer: bool = True
    """Whether a document of another issuer is refused (RFC 8414, section 3.3)."""
    requires_pkce: bool = False
    """Whether a document without `code_challenge_methods_supported` is refused."""
    guesses_origin: bool = False
    """Whether it takes the endpoint's own host for the issuer when it finds no document."""
    remote: bool = False
    """Whether it runs elsewhere, and cannot reach this machine."""


CLIENTS: Final = (
    Client("2026-07-28 and 2025-11-25, to the letter", exact_resource=True, requires_pkce=True),
    Client(
        "2025-06-18, to the letter",
        probes=False,
        openid=False,
        exact_resource=True,
        checks_issuer=False,
    ),
    Client("Python SDK", keeps_looking=True, guesses_origin=True),
    Client("TypeScript SDK", checks_issuer=False, guesses_origin=True),
    Client(
        "claude.ai, where it does not follow WWW-Authenticate",
        follows_challenge=False,
        checks_issuer=False,
        guesses_origin=True,
        remote=True,
    ),
    Client("VS Code", exact_resource=True, checks_issuer=False, guesses_origin=True),
)


def metadata_urls(endpoint: str) -> list[str]:
    """Where a client looks that has no challenge: with the endpoint's path inserted, then without
    (RFC 9728, section 3.1).
    """
    origin, path = split(endpoint)
    return list(dict.fromkeys([f"{origin}{PROTECTED_RESOURCE}{path}", origin + PROTECTED_RESOURCE]))


def issuer_urls(issuer: str, client: Client) -> Iterator[str]:
    """Where a client looks for an issuer's document, in its order.

    authorization-server-discovery.mdx, "Authorization Server Metadata Discovery".
    """
    origin, path = split(issuer)
    yield f"{origin}{OAUTH}{path}"
    if not client.openid:
        return
    yield f"{origin}{OPENID}{path}"
    if path:
        yield f"{origin}{path}{OPENID}"


def split(url: str) -> tuple[str, str]:
    """A URL's origin, and its path without a slash at the end."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
