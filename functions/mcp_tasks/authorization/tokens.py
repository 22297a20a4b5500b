"""Whether an access token is good, and for what: a JWT (RFC 7519, RFC 9068) of one issuer.

PyJWT checks the signature. The claims are checked here: it reads a number from a string, knows one
clock, and has no rule for Cognito's access tokens, which have no audience.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import jwt

from .jwks import ALGORITHMS, Jwks, SigningKey

Reason = Literal[
    "missing",
    "repeated",
    "query",
    "size",
    "malformed",
    "type",
    "critical",
    "algorithm",
    "key",
    "signature",
    "issuer",
    "audience",
    "use",
    "expired",
    "early",
    "subject",
    "scope",
]
"""What is wrong with a token, or with how it was sent, in a word that may be logged."""

LEEWAY_SECONDS: Final = 60
"""How far the issuer's clock may be off."""
MAX_CHARACTERS: Final = 16 * 1024
MAX_SUBJECT: Final = 255
"""Characters of a subject (OpenID Connect Core 1.0, section 2), and of a client id."""

_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_COGNITO: Final = re.compile(
    r"https://cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[A-Za-z0-9_-]+"
)

_jws: Final = jwt.PyJWS(algorithms=[name for names in ALGORITHMS.values() for name in names])


class InvalidToken(Exception):
    """A token that is not good; its text is the reason's word, and nothing of the token."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Grant:
    """Whom a good token was given to, and for what."""

    principal: str
    scopes: frozenset[str]


class TokenVerifier:
    """The check of access tokens of one issuer, for one audience. `clock` is given by tests."""

    def __init__(
        self, issuer: str, audience: str, keys: Jwks, clock: Callable[[], float] = time.time
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys = keys
        self._clock = clock

    def check(self, token: str) -> Grant:
        """What a token is good for. Raises InvalidToken, and KeysUnavailable."""
        if len(token) > MAX_CHARACTERS:
            raise InvalidToken("size")
        claims = _signed_claims(token, self._key(_header(token)))
        if claims.get("iss") != self._issuer:
            raise InvalidToken("issuer")
        if self._audience not in self._audiences(claims):
            raise InvalidToken("audience")
        if claims.get("token_use", "access") != "access":  # Cognito's ID tokens
            raise InvalidToken("use")
        self._check_times(claims)
        return Grant(f"{self._issuer}{_subject(claims)}", _scopes(claims))

    def _key(self, header: Mapping[str, Any]) -> SigningKey:
        """The key that the header names, and nothing else of the header."""
        named = self._keys.named(header.get("kid"))
        if not named:
            raise InvalidToken("key")
        for key in named:
            if header.get("alg") in key.algorithms:
                return key
        raise InvalidToken("algorithm")

    def _audiences(self, claims: Mapping[str, Any]) -> list[Any]:
        """Whom a token is for: `aud`, or the client of a Cognito access token, which has no `aud`.

        So does API Gateway's own JWT authorizer (developer guide, "Control access to HTTP APIs with
        JWT authorizers").
        """
        if "aud" in claims:
            found = claims["aud"]
            return found if isinstance(found, list) else [found]
        if _COGNITO.fullmatch(self._issuer) and claims.get("token_use") == "access":
            return [claims.get("client_id")]
        return []

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._clock()
        if _seconds(claims.get("exp")) <= now - LEEWAY_SECONDS:
            raise InvalidToken("expired")
        for name in ("nbf", "iat"):
            if name in claims and _seconds(claims[name]) > now + LEEWAY_SECONDS:
                raise InvalidToken("early")


def _header(token: str) -> dict[str, Any]:
    """The header, which nobody has signed yet: what it says chooses a key, and is checked."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError):
        header = None
    if header is None:
        raise InvalidToken("malformed")
    if "crit" in header:
        raise InvalidToken("critical")
    if str(header.get("typ", "JWT")).lower() not in _TYPES:
        raise InvalidToken("type")
    if not any(header.get("alg") in names for names in ALGORITHMS.values()):
        raise InvalidToken("algorithm")
    return header


def _signed_claims(token: str, key: SigningKey) -> dict[str, Any]:
    try:
        payload = _jws.decode(token, key.public, algorithms=key.algorithms)
    except jwt.PyJWTError:
        payload = None
    if payload is None:
        raise InvalidToken("signature")
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise InvalidToken("malformed")
    return claims


def _seconds(value: object) -> float:
    """A NumericDate (RFC 7519, section 2): a JSON number, and no string that looks like one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidToken("malformed")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidToken("malformed")
    return value


def _subject(claims: Mapping[str, Any]) -> str:
    """Who, after the issuer. An issuer has no fragment, so that no subject equals a client id."""
    kind, name = ("|", "sub") if "sub" in claims else ("#client|", "client_id")
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT or not value.isprintable():
        raise InvalidToken("subject")
    return f"{kind}{value}"


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """The scopes: `scope` (RFC 9068, section 2.2.3), or `scp`, as Entra ID and Okta call it."""
    value = claims.get("scope", claims.get("scp", ""))
    found = [n for n in value.split(" ") if n] if isinstance(value, str) else value
    if not isinstance(found, list):
        raise InvalidToken("scope")
    if not all(isinstance(name, str) and _SCOPE.fullmatch(name) for name in found):
        raise InvalidToken("scope")
    return frozenset(found)
