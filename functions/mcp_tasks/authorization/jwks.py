"""The issuer's signing keys, kept for an hour, and fetched again for a key that is not known.

Whatever clients send, keys are fetched at most once in half a minute by one instance: a key id is
the sender's to choose. An issuer that cannot be reached stops nobody whose key is known, for a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import jwt
from aws_lambda_powertools import Logger

from .discovery import check_issuer, key_set
from .http_json import Fetch, FetchError, fetch_json

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

FRESH_SECONDS: Final = 60 * 60
"""After which keys are fetched again."""
KEPT_SECONDS: Final = 24 * 60 * 60
"""For which keys are good when the issuer cannot be reached."""
PAUSE_SECONDS: Final = 30
"""Between two fetches, when there are keys."""
RETRY_SECONDS: Final = 5
"""Between two fetches, when there are none, and nobody can come in."""

ALGORITHMS: Final[Mapping[str, Sequence[str]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
}
"""Curve, or key type where there is no curve -> what may be signed with it. No HMAC, no `none`."""

logger = Logger()


class KeysUnavailable(Exception):
    """There are no keys, so that no token can be checked; the issuer is to blame, not the token."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the issuer's."""

    id: str | None
    algorithms: Sequence[str]
    public: AllowedPublicKeys


class Jwks:
    """The keys of one issuer.

    `fetch` and `clock` (seconds since the epoch) are given by tests. Raises ValueError for an
    issuer that cannot be one.
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
        self._tried_at = 0.0

    def named(self, key_id: str | None) -> list[SigningKey]:
        """The keys of that id. Without an id: the issuer's only key, if it has only one (OpenID
        Connect Core 1.0, section 10.1).

        Raises KeysUnavailable when there are no keys, and none can be fetched.
        """
        age = self._clock() - self._fetched_at
        if age > KEPT_SECONDS:
            self._keys = None
        if (age > FRESH_SECONDS or not self._known(key_id)) and self._may_fetch():
            self._renew()
        if self._keys is None:
            raise KeysUnavailable("The issuer's keys cannot be fetched")
        return self._known(key_id)

    def _known(self, key_id: str | None) -> list[SigningKey]:
        keys = self._keys or []
        if key_id is None:
            return keys if len(keys) == 1 else []
        return [key for key in keys if key.id == key_id]

    def _may_fetch(self) -> bool:
        pause = RETRY_SECONDS if self._keys is None else PAUSE_SECONDS
        return self._clock() - self._tried_at >= pause

    def _renew(self) -> None:
        """Replace all keys: what the issuer has withdrawn is gone. A failure leaves them."""
        try:
            found = key_set(self._issuer, self._fetch)
        except FetchError as error:
            logger.warning("The issuer's keys are not fetched", reason=error.reason)
        else:
            self._keys = _signing_keys(found)
            self._fetched_at = self._clock()
        self._tried_at = self._clock()


def _signing_keys(found: Iterable[Any]) -> list[SigningKey]:
    """Those of a set (RFC 7517, section 4) that a token may be signed with."""
    keys = []
    for jwk in found:
        with suppress(Exception):  # whatever is wrong with one key, the others are good
            key = _signing_key(jwk)
            if key is not None:
                keys.append(key)
    return keys


def _signing_key(jwk: Mapping[str, Any]) -> SigningKey | None:
    """None for a key that is for encryption, for another algorithm, secret no more, or too short;
    raises anything for one that is broken.
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
