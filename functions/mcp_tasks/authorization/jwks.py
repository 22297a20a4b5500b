"""A cache of the issuer's signing keys (JWKS, RFC 7517).

The keys are fetched again after an hour, and for a token whose key id is unknown. The sender of a
token chooses its key id, so one instance of the function fetches at most once in 30 seconds. While
the issuer cannot be reached, the cached keys are used for up to a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import jwt
from aws_lambda_powertools import Logger

from .discovery import check_issuer, fetch_key_set
from .http_json import Fetch, FetchError, fetch_json

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

REFRESH_AFTER_SECONDS: Final = 60 * 60
"""The age at which keys are fetched again."""
MAX_AGE_SECONDS: Final = 24 * 60 * 60
"""The age up to which keys are used while the issuer cannot be reached."""
MIN_FETCH_INTERVAL_SECONDS: Final = 30
"""Between two fetches while there are cached keys."""
RETRY_INTERVAL_SECONDS: Final = 5
"""Between two fetches while there are no keys, when every request fails."""

ALGORITHMS: Final[Mapping[str, Sequence[str]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
}
"""The algorithms allowed for each curve, or for a key type without curves. No HMAC, no `none`."""

logger = Logger()


class KeysUnavailable(Exception):
    """The issuer's keys cannot be fetched, so no token can be verified."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the issuer's, and the algorithms that it may be used with."""

    id: str | None
    algorithms: Sequence[str]
    public: AllowedPublicKeys


class Jwks:
    """The keys of one issuer.

    Tests pass `fetch` and `clock` (seconds since the epoch). Raises ValueError for a text that
    cannot be an issuer's URL.
    """

    def __init__(
        self, issuer: str, fetch: Fetch = fetch_json, clock: Callable[[], float] = time.time
    ) -> None:
        check_issuer(issuer)
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: list[SigningKey] | None = None
        self._fetched_at = 0.0
        self._last_fetch_at = 0.0

    def with_id(self, key_id: str | None) -> list[SigningKey]:
        """The keys of that id. Without an id: the issuer's key, if it has exactly one (OpenID
        Connect Core 1.0, section 10.1).

        Raises KeysUnavailable when no keys are cached and none can be fetched.
        """
        age = self._clock() - self._fetched_at
        if age > MAX_AGE_SECONDS:
            self._keys = None
        if (age > REFRESH_AFTER_SECONDS or not self._cached(key_id)) and self._may_fetch():
            self._refresh()
        if self._keys is None:
            raise KeysUnavailable("The issuer's keys cannot be fetched")
        return self._cached(key_id)

    def _cached(self, key_id: str | None) -> list[SigningKey]:
        keys = self._keys or []
        if key_id is None:
            return keys if len(keys) == 1 else []
        return [key for key in keys if key.id == key_id]

    def _may_fetch(self) -> bool:
        interval = RETRY_INTERVAL_SECONDS if self._keys is None else MIN_FETCH_INTERVAL_SECONDS
        return self._clock() - self._last_fetch_at >= interval

    def _refresh(self) -> None:
        """Replace all keys, so that withdrawn ones are dropped. A failed fetch keeps them."""
        try:
            found = fetch_key_set(self._issuer, self._fetch)
        except FetchError as error:
            logger.warning("The issuer's signing keys could not be fetched", reason=error.reason)
        else:
            self._keys = _signing_keys(found)
            self._fetched_at = self._clock()
        self._last_fetch_at = self._clock()


def _signing_keys(found: Iterable[Any]) -> list[SigningKey]:
    """The keys of a set (RFC 7517, section 5) that a token may be signed with."""
    keys = []
    for jwk in found:
        with suppress(Exception):  # A malformed key leaves the others usable.
            key = _signing_key(jwk)
            if key is not None:
                keys.append(key)
    return keys


def _signing_key(jwk: Mapping[str, Any]) -> SigningKey | None:
    """Read a JWK (RFC 7517, section 4).

    Returns None for a key that must not be used: one for encryption or for an algorithm that is not
    allowed, a private key that was published, and one that is too short. Raises any exception for a
    malformed one.
    """
    if jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ["verify"]):
        return None
    allowed = ALGORITHMS.get(str(jwk.get("crv") or jwk.get("kty")), ())
    algorithms = [name for name in allowed if jwk.get("alg", name) == name]
    if not algorithms or "d" in jwk:
        return None
    key = jwt.PyJWK(dict(jwk), algorithms[0])
    if key.Algorithm.check_key_length(key.key) is not None:
        return None
    return SigningKey(jwk.get("kid"), algorithms, key.key)
