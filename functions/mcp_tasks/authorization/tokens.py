"""Verifies access tokens: JWTs (RFC 7519, RFC 9068) of one issuer.

PyJWT verifies the signature. This module verifies the claims itself, because PyJWT accepts a string
as a time, takes no clock, and has no rule for Cognito's access tokens, which have no audience.
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
    "no_token",
    "several_authorization_headers",
    "token_in_query",
    "token_too_long",
    "malformed",
    "wrong_typ",
    "critical_extension",
    "wrong_alg",
    "unknown_kid",
    "wrong_signature",
    "wrong_iss",
    "wrong_aud",
    "wrong_token_use",
    "not_an_access_token",
    "expired",
    "not_yet_valid",
    "invalid_sub",
    "invalid_scope",
]
"""Why a token was refused, for the log. `wrong_` and `invalid_` go with the name of a claim or of a
header parameter (RFC 7515, section 4; RFC 7519, section 4). `wrong_typ` stands for both: the header
parameter, and Keycloak's claim."""

LEEWAY_SECONDS: Final = 60
"""How far the issuer's clock may differ from this one."""
MAX_TOKEN_CHARACTERS: Final = 16 * 1024
MAX_SUBJECT_CHARACTERS: Final = 255
"""Of a subject (OpenID Connect Core 1.0, section 2), and of a client id."""

_RFC_9068: Final = frozenset({"at+jwt", "application/at+jwt"})
_TYPES: Final = _RFC_9068 | {"jwt"}
_BEARER: Final = frozenset({"bearer", "dpop"})
"""What Keycloak writes into the claim `typ` of its access tokens."""
_ACCESS_TOKENS: Final = _BEARER | _TYPES | {"access", "access_token"}
"""What issuers write into that claim. Other tokens have others: `ID`, `Refresh`, `Logout`."""
_OTHER_TOKENS_CLAIMS: Final = ("at_hash", "c_hash", "s_hash", "events")
"""Claims of ID tokens (OpenID Connect Core 1.0, sections 3.1.3.6 and 3.3.2.11; FAPI 1.0 Advanced,
section 5.1.1), and of logout tokens (OpenID Connect Back-Channel Logout 1.0, section 2.4)."""
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_COGNITO: Final = re.compile(
    r"https://cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[A-Za-z0-9_-]+"
)

_jws: Final = jwt.PyJWS(algorithms=[name for names in ALGORITHMS.values() for name in names])


class InvalidToken(Exception):
    """A token was refused. The message is the reason, and quotes nothing of the token."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Grant:
    """What a valid token grants: whose requests it allows, and with which scopes."""

    principal: str
    scopes: frozenset[str]


class TokenVerifier:
    """Verifies the access tokens of one issuer, which have to name one of the audiences.

    With `at_jwt_only`, the header has to say that the token is an access token (RFC 9068, section
    4). Tests pass `clock`, in seconds.
    """

    def __init__(
        self,
        issuer: str,
        audiences: frozenset[str],
        keys: Jwks,
        clock: Callable[[], float] = time.time,
        *,
        at_jwt_only: bool = False,
    ) -> None:
        self._issuer = issuer
        self._expected_audiences = audiences
        self._keys = keys
        self._clock = clock
        self._types = _RFC_9068 if at_jwt_only else _TYPES

    def verify(self, token: str) -> Grant:
        """Verify a token and return what it grants. Raises InvalidToken and KeysUnavailable."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise InvalidToken("token_too_long")
        header = _header(token)
        if _type(header) not in self._types:
            raise InvalidToken("wrong_typ")
        claims = _signed_claims(token, self._key(header))
        if claims.get("iss") != self._issuer:
            raise InvalidToken("wrong_iss")
        named = {name for name in self._audiences(claims) if isinstance(name, str)}
        if not named & self._expected_audiences:
            raise InvalidToken("wrong_aud")
        _check_kind(header, claims)
        self._check_times(claims)
        return Grant(f"{self._issuer}{_subject(claims)}", _scopes(claims))

    def _key(self, header: Mapping[str, Any]) -> SigningKey:
        """The key that the header names. A key in the header itself is never used."""
        keys = self._keys.with_id(header.get("kid"))
        if not keys:
            raise InvalidToken("unknown_kid")
        for key in keys:
            if header.get("alg") in key.algorithms:
                return key
        raise InvalidToken("wrong_alg")

    def _audiences(self, claims: Mapping[str, Any]) -> list[Any]:
        """The audiences of a token: `aud`, or the client of a Cognito access token, which has none.

        API Gateway's own JWT authorizer has the same rule (developer guide, "Control access to HTTP
        APIs with JWT authorizers").
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
                raise InvalidToken("not_yet_valid")


def _header(token: str) -> dict[str, Any]:
    """The header, checked. Its signature is not verified yet: it is needed to find the key."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError):
        header = None
    if header is None:
        raise InvalidToken("malformed")
    if "crit" in header:
        raise InvalidToken("critical_extension")
    if not any(header.get("alg") in names for names in ALGORITHMS.values()):
        raise InvalidToken("wrong_alg")
    return header


def _type(header: Mapping[str, Any]) -> str:
    """The header parameter `typ`, whose case does not matter (RFC 7515, section 4.1.9)."""
    return str(header.get("typ", "JWT")).lower()


def _check_kind(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Refuse the issuer's other tokens: one client id may be the audience of all of them.

    An access token may have a `nonce` only if it says that it is one: Keycloak wrote the client's
    `nonce` into all tokens before version 25.
    """
    use, kind = claims.get("token_use", "access"), claims.get("typ", "access")
    if use != "access":  # Cognito's ID tokens
        raise InvalidToken("wrong_token_use")
    if not isinstance(kind, str) or kind.lower() not in _ACCESS_TOKENS:
        raise InvalidToken("wrong_typ")
    if any(name in claims for name in _OTHER_TOKENS_CLAIMS):
        raise InvalidToken("not_an_access_token")
    declared = _type(header) in _RFC_9068 or kind.lower() in _BEARER or "token_use" in claims
    if "nonce" in claims and not declared:
        raise InvalidToken("not_an_access_token")


def _signed_claims(token: str, key: SigningKey) -> dict[str, Any]:
    try:
        payload = _jws.decode(token, key.public, algorithms=key.algorithms)
    except jwt.PyJWTError:
        payload = None
    if payload is None:
        raise InvalidToken("wrong_signature")
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise InvalidToken("malformed")
    return claims


def _seconds(value: object) -> float:
    """A NumericDate (RFC 7519, section 2): a JSON number. A string of digits is refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidToken("malformed")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidToken("malformed")
    return value


def _subject(claims: Mapping[str, Any]) -> str:
    """The part of the principal after the issuer: the subject, or else the client id.

    An issuer has no fragment, so no subject's principal equals a client's.
    """
    kind, name = ("|", "sub") if "sub" in claims else ("#client|", "client_id")
    value = claims.get(name)
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= MAX_SUBJECT_CHARACTERS
        or not value.isprintable()
    ):
        raise InvalidToken("invalid_sub")
    return f"{kind}{value}"


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """The scopes in `scope` (RFC 9068, section 2.2.3), or in `scp`, as Entra ID and Okta do.

    An application of Entra ID that acts for itself has `roles` in their place ("Access token claims
    reference": the client credential flow "uses this set of permission in place of user scopes").
    The roles of a user are none: the client was not given them.
    """
    value = claims.get("scope", claims.get("scp"))
    if value is None:
        value = claims.get("roles", "") if _is_application_of_entra(claims) else ""
    found = [n for n in value.split(" ") if n] if isinstance(value, str) else value
    if not isinstance(found, list):
        raise InvalidToken("invalid_scope")
    if not all(isinstance(name, str) and _SCOPE.fullmatch(name) for name in found):
        raise InvalidToken("invalid_scope")
    return frozenset(found)


def _is_application_of_entra(claims: Mapping[str, Any]) -> bool:
    """Whether a token of Entra ID is an application's own: by `idtyp`, which an API has to ask for
    ("Optional claims reference"), or because its subject is the requestor itself; a user's subject
    is another for each API.
    """
    return claims.get("idtyp") == "app" or claims.get("oid", "") == claims.get("sub")
