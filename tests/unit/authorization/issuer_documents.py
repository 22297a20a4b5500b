"""What an issuer publishes about itself, without a network."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from mcp_tasks.authorization.http_json import FetchError
from tests.integration.support.issuer import private_key, public_jwk

ISSUER: Final = "https://login.example/tenant"
OPENID: Final = f"{ISSUER}/.well-known/openid-configuration"
OAUTH: Final = "https://login.example/.well-known/oauth-authorization-server/tenant"
KEYS: Final = "https://keys.example/all"


class Web:
    """The documents that can be fetched, and how often each was. Any other URL answers 404."""

    def __init__(self) -> None:
        self.documents: dict[Any, Any] = {
            OPENID: {"issuer": ISSUER, "jwks_uri": KEYS},
            KEYS: {"keys": []},
        }
        self.fetches: Counter[str] = Counter()
        self.failure: str | None = None

    def __call__(self, url: str) -> Any:
        self.fetches[url] += 1
        if self.failure:
            raise FetchError(self.failure)
        if url not in self.documents:
            raise FetchError("status 404", 404)
        return self.documents[url]

    def publish(self, *keys: Any) -> None:
        """Publish exactly these keys."""
        self.documents[KEYS] = {"keys": list(keys)}


def jwk(key_id: str = "a", algorithm: str = "ES256", **changed: Any) -> dict[str, Any]:
    """A good key; a member of None is left out."""
    found = {**public_jwk(algorithm, private_key(algorithm, 0), key_id), **changed}
    return {name: value for name, value in found.items() if value is not None}
