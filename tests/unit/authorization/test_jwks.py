"""The cache of an issuer's signing keys: which are used, and how often they are fetched.

Source: RFC 7517.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mcp_tasks.authorization.jwks import Jwks, KeysUnavailable
from tests.integration.support.issuer import private_key, public_jwk
from tests.unit.authorization.issuer_documents import ISSUER, KEYS, OPENID, Web, jwk

START: Final = 1_800_000_000.0
MINUTE: Final = 60
HOUR: Final = 60 * MINUTE


class Clock:
    """A clock that a test sets, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def keys(web: Web, clock: Clock) -> Jwks:
    """The keys of that issuer."""
    return Jwks(ISSUER, web, clock)


def ids(keys: Jwks, *asked: str) -> list[str]:
    """The ids that have a key."""
    return [key_id for key_id in asked if keys.with_id(key_id)]


def test_keys_are_fetched_once_an_hour(keys: Jwks, web: Web, clock: Clock) -> None:
    for minute in range(181):
        clock.now = START + minute * MINUTE
        assert ids(keys, "a") == ["a"]
    assert web.fetches == {OPENID: 3, KEYS: 3}


def test_unknown_ids_fetch_at_most_once_in_half_a_minute(
    keys: Jwks, web: Web, clock: Clock
) -> None:
    """The sender of a token chooses its key id."""
    for number in range(1000):
        assert keys.with_id(f"unknown-{number}") == []
        clock.now = START + number * 0.0299
    assert web.fetches[KEYS] == 1
    for number in range(1000):
        clock.now = START + 30 + number * 0.1
        assert keys.with_id(f"unknown-{number}") == []
    assert web.fetches[KEYS] == 1 + 4


def test_a_new_key_is_known_and_the_withdrawn_one_is_not(
    keys: Jwks, web: Web, clock: Clock
) -> None:
    assert ids(keys, "a", "b") == ["a"]
    web.publish(jwk("b"))
    clock.now += 29
    assert ids(keys, "b", "a") == ["a"]
    clock.now += 1
    assert ids(keys, "b", "a") == ["b"]


def test_an_issuer_may_withdraw_all_keys(keys: Jwks, web: Web, clock: Clock) -> None:
    assert ids(keys, "a") == ["a"]
    web.publish()
    clock.now += HOUR + 1
    assert ids(keys, "a") == []


@pytest.mark.parametrize("broken", ["no answer", "no key set"])
def test_keys_are_kept_for_a_day_while_the_issuer_is_down(
    keys: Jwks, web: Web, clock: Clock, broken: str
) -> None:
    assert ids(keys, "a") == ["a"]
    if broken == "no answer":
        web.failure = "timeout"
    else:
        web.documents[KEYS] = {"error": "sorry"}
    for hour in range(1, 25):
        clock.now = START + hour * HOUR
        assert ids(keys, "a") == ["a"]
    clock.now += 1
    with pytest.raises(KeysUnavailable):
        keys.with_id("a")
    web.failure = None
    web.publish(jwk("a"))
    clock.now += 5
    assert ids(keys, "a") == ["a"]


def test_a_failed_fetch_is_repeated_after_half_a_minute_while_there_are_keys(
    keys: Jwks, web: Web, clock: Clock
) -> None:
    keys.with_id("a")
    web.failure = "timeout"
    web.fetches.clear()
    for second in range(300):
        clock.now = START + HOUR + 1 + second
        assert ids(keys, "a") == ["a"]
    assert web.fetches == {OPENID: 10}


def test_a_failed_fetch_is_repeated_after_five_seconds_while_there_are_no_keys(
    keys: Jwks, web: Web, clock: Clock
) -> None:
    web.failure = "timeout"
    for second in range(60):
        clock.now = START + second
        with pytest.raises(KeysUnavailable):
            keys.with_id("a")
    assert web.fetches == {OPENID: 12}


def test_a_failed_fetch_is_logged(keys: Jwks, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        "mcp_tasks.authorization.jwks.logger.warning",
        lambda text, **more: said.append((text, more)),
    )
    web.failure = "timeout"
    with pytest.raises(KeysUnavailable):
        keys.with_id("a")
    assert said == [("The issuer's signing keys could not be fetched", {"reason": "timeout"})]


@pytest.mark.parametrize(
    ("algorithm", "changed", "usable"),
    [
        (
            "RS256",
            {"alg": None},
            ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
        ),
        ("RS256", {}, ["RS256"]),
        ("RS256", {"alg": "PS384"}, ["PS384"]),
        ("ES256", {"alg": None}, ["ES256"]),
        ("ES384", {"alg": None}, ["ES384"]),
        ("ES512", {"alg": None}, ["ES512"]),
        ("EdDSA", {"alg": None}, ["EdDSA"]),
        ("ES256", {"use": None, "key_ops": ["verify"]}, ["ES256"]),
    ],
)
def test_a_key_is_for_the_algorithms_of_its_kind_or_for_the_one_that_it_says(
    keys: Jwks, web: Web, algorithm: str, changed: Mapping[str, Any], usable: list[str]
) -> None:
    web.publish(jwk("k", algorithm, **changed))
    (key,) = keys.with_id("k")
    assert list(key.algorithms) == usable


def short_rsa() -> dict[str, Any]:
    """A key of 1024 bits."""
    return public_jwk("RS256", rsa.generate_private_key(65537, 1024), "bad")


def private(algorithm: str) -> dict[str, Any]:
    """A JWK with the private key in it."""
    number = private_key(algorithm, 0)
    assert isinstance(number, ec.EllipticCurvePrivateKey)
    secret = number.private_numbers().private_value.to_bytes(32, "big")
    return jwk("bad", algorithm, d=base64.urlsafe_b64encode(secret).rstrip(b"=").decode())


@pytest.mark.parametrize(
    "bad",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad", "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad", "crv": "P-256"},
        jwk("bad", "RS256", alg="HS256"),
        jwk("bad", "RS256", alg="none"),
        jwk("bad", "RS256", alg="RSA-OAEP"),
        jwk("bad", "RS256", alg="ES256"),
        jwk("bad", "RS256", use="enc"),
        jwk("bad", "RS256", use=None, key_ops=["encrypt"]),
        jwk("bad", "RS256", key_ops=7),
        jwk("bad", "RS256", n="%"),
        jwk("bad", "RS256", n=None),
        jwk("bad", "RS256", crv="P-256"),
        jwk("bad", "ES256", x="AAAA"),
        jwk("bad", "ES256", y=jwk("k")["x"]),
        jwk("bad", "ES256", crv="secp256k1", alg="ES256K"),
        jwk("bad", "ES256", crv=["P-256"]),
        jwk("bad", "EdDSA", crv="Ed448"),
        jwk("bad", "EdDSA", x=7),
        private("ES256"),
        short_rsa(),
        {"kid": "bad"},
        "bad",
        None,
        ["bad"],
    ],
)
def test_an_unusable_key_is_left_out_and_the_others_are_good(
    keys: Jwks, web: Web, bad: Any
) -> None:
    web.publish(jwk("first"), bad, jwk("last"))
    assert ids(keys, "first", "bad", "last") == ["first", "last"]


def test_without_an_id_the_only_key_is_meant(keys: Jwks, web: Web, clock: Clock) -> None:
    """OpenID Connect Core 1.0, section 10.1: with several, "a kid value MUST be provided"."""
    web.publish(jwk("a", kid=None), {"kty": "oct", "k": "c2VjcmV0"})
    assert len(keys.with_id(None)) == 1
    web.publish(jwk("a"), jwk("b"))
    clock.now += HOUR + 1
    assert keys.with_id(None) == []
