"""Access tokens: which are accepted, what they grant, and that nothing of one is logged.

Sources: RFC 7519, RFC 8725, RFC 9068; authorization/index.mdx, "Token Handling".
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks.authorization.jwks import ALGORITHMS, Jwks
from mcp_tasks.authorization.tokens import Grant, InvalidToken, TokenVerifier
from tests.integration.support.issuer import (
    AUDIENCE,
    Signer,
    compact,
    hmac_sha256,
    private_key,
    public_bytes,
    signature,
)

NOW: Final = 1_800_000_000
URL: Final = "https://login.example/tenant"
COGNITO: Final = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC"
CLIENT: Final = "4v8example"
SUPPORTED: Final = [name for names in ALGORITHMS.values() for name in names]

Check = Callable[..., Grant]


class OneKey(Signer):
    """An issuer with the keys of a test."""

    def __init__(self, *keys: Any) -> None:
        super().__init__(URL)
        self._keys = keys

    def document(self, path: str) -> Any:
        """Its documents."""
        return {"keys": list(self._keys)} if path.endswith("/keys") else super().document(path)


def checked_by(
    issuer: Signer, audience: str = AUDIENCE, clock: Callable[[], float] = time.time
) -> TokenVerifier:
    """A verifier of an issuer's tokens, whose keys are read without a network."""
    keys = Jwks(issuer.url, lambda url: issuer.document(urlsplit(url).path))
    return TokenVerifier(issuer.url, frozenset(audience.split()), keys, clock)


@pytest.fixture(scope="module")
def issuer() -> Signer:
    """An issuer that knows all algorithms."""
    return Signer(URL, SUPPORTED)


@pytest.fixture(scope="module")
def check(issuer: Signer) -> Check:
    """Mint a token that differs from a good one as the arguments say, and check it at NOW."""
    tokens = checked_by(issuer, clock=lambda: NOW)

    def check(*algorithm: str, **changed: Any) -> Grant:
        return tokens.verify(issuer.mint(*algorithm, **{"iat": NOW, "exp": NOW + 60, **changed}))

    return check


def refused(reason: str, check: Callable[[], Any]) -> None:
    """Expect a refusal with this reason."""
    with pytest.raises(InvalidToken) as found:
        check()
    assert (found.value.reason, str(found.value), found.value.args) == (reason, reason, (reason,))


@pytest.mark.parametrize("algorithm", SUPPORTED)
def test_a_good_token_names_its_principal_and_its_scopes(check: Check, algorithm: str) -> None:
    granted = check(algorithm, scope="tasks:read tasks:write")
    assert granted == Grant(f"{URL}|alice", frozenset({"tasks:read", "tasks:write"}))


def test_symmetric_algorithms_and_none_are_not_known() -> None:
    """RFC 8725, section 3.1."""
    assert not [name for name in SUPPORTED if name.startswith("HS") or name.lower() == "none"]


BAD: Final = {
    "garbage": "malformed",
    "three parts of garbage": "malformed",
    "empty parts": "malformed",
    "expired": "expired",
    "without an end": "malformed",
    "not yet valid": "not_yet_valid",
    "issued in the future": "not_yet_valid",
    "wrong issuer": "wrong_iss",
    "issuer with a slash": "wrong_iss",
    "wrong audience": "wrong_aud",
    "no audience": "wrong_aud",
    "wrong signature": "wrong_signature",
    "signature cut off": "wrong_signature",
    "claims exchanged": "wrong_signature",
    "alg none": "wrong_alg",
    "alg nOnE": "wrong_alg",
    "HS256 with the public key in PEM": "wrong_alg",
    "HS256 with the public key in DER": "wrong_alg",
    "HS256 with an empty secret": "wrong_alg",
    "unknown key id": "unknown_kid",
    "key in the header": "wrong_signature",
    "key's URL in the header": "wrong_signature",
    "certificate in the header": "wrong_signature",
    "critical extension": "critical_extension",
    "no subject": "invalid_sub",
    "ID token of Cognito": "wrong_token_use",
    "ID token of Keycloak": "wrong_typ",
    "ID token with a nonce": "not_an_access_token",
    "ID token with at_hash": "not_an_access_token",
    "huge": "token_too_long",
}


@pytest.mark.parametrize("wrong", BAD)
def test_a_bad_token_is_refused_with_its_reason(issuer: Signer, wrong: str) -> None:
    token = issuer.bad_tokens()[wrong]
    refused(BAD[wrong], lambda: checked_by(issuer).verify(token))


def test_every_bad_token_is_tested_here(issuer: Signer) -> None:
    assert list(issuer.bad_tokens()) == list(BAD)


@pytest.mark.parametrize("wrong", BAD)
def test_a_refusal_holds_nothing_of_the_token(issuer: Signer, wrong: str) -> None:
    """Lambda logs the text of an uncaught error, and that of its causes."""
    token = issuer.bad_tokens()[wrong]
    with pytest.raises(InvalidToken) as found:
        checked_by(issuer).verify(token)
    error = found.value
    assert (error.__context__, error.__cause__, error.args) == (None, None, (error.reason,))
    text = "".join(traceback.format_exception_only(error))
    assert not [part for part in token.split(".") if len(part) > 3 and part in text]


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "HS512"])
@pytest.mark.parametrize("key_id", ["of the key", "unknown", None])
def test_no_key_is_looked_for_when_the_algorithm_is_not_allowed(
    issuer: Signer, algorithm: str, key_id: str | None
) -> None:
    issuer.fetches.clear()
    header = {"alg": algorithm, **({} if key_id == "of the key" else {"kid": key_id})}
    token = issuer.mint(header=header, sign=lambda _: b"")
    refused("wrong_alg", lambda: checked_by(issuer).verify(token))
    assert not issuer.fetches


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("claimed", ["HS256", "RS256", "ES256", "EdDSA"])
def test_a_public_key_is_no_secret(
    issuer: Signer, encoding: Encoding, algorithm: str, claimed: str
) -> None:
    """RFC 8725, section 2.1: a key that is used with another algorithm than its own."""
    secret = public_bytes(private_key(algorithm, 0), encoding)
    token = issuer.mint(algorithm, header={"alg": claimed}, sign=hmac_sha256(secret))
    with pytest.raises(InvalidToken):
        checked_by(issuer).verify(token)


@pytest.mark.parametrize("key", ["RS256", "ES256", "EdDSA", "PS256"])
@pytest.mark.parametrize("algorithm", ["RS256", "ES384", "EdDSA", "PS256"])
def test_a_key_checks_its_own_algorithm_alone(issuer: Signer, key: str, algorithm: str) -> None:
    """RFC 8725, section 3.1: "Each key MUST be used with exactly one algorithm"."""
    token = issuer.mint(algorithm, header={"kid": issuer.key_id(key)})
    if key == algorithm:
        assert checked_by(issuer).verify(token)
    else:
        refused("wrong_alg", lambda: checked_by(issuer).verify(token))


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "PS512"])
def test_a_key_that_names_no_algorithm_checks_all_of_its_kind(algorithm: str) -> None:
    jwk = {n: v for n, v in Signer(URL).jwk("RS256").items() if n != "alg"}
    issuer = OneKey(jwk)
    sign = signature(algorithm, private_key("RS256", 0))
    token = issuer.mint(header={"alg": algorithm, "kid": jwk["kid"]}, sign=sign)
    assert checked_by(issuer).verify(token)


def test_a_secret_among_the_keys_signs_nothing() -> None:
    """An `oct` key in a public set is no secret, so anybody can sign with it."""
    issuer = OneKey({"kty": "oct", "k": "c2VjcmV0", "kid": "s", "alg": "HS256"})
    token = issuer.mint(header={"alg": "HS256", "kid": "s"}, sign=hmac_sha256(b"secret"))
    refused("wrong_alg", lambda: checked_by(issuer).verify(token))
    refused("unknown_kid", lambda: checked_by(issuer).verify(issuer.mint(header={"kid": "s"})))


def test_a_token_without_a_key_id_is_the_only_keys(issuer: Signer) -> None:
    one = Signer(URL, ["ES256"])
    assert checked_by(one).verify(one.mint("ES256", header={"kid": None}))
    refused("unknown_kid", lambda: checked_by(issuer).verify(issuer.mint(header={"kid": None})))


def test_a_rotated_key_is_good_and_the_withdrawn_one_is_not() -> None:
    issuer, now = Signer(URL, ["ES256"]), float(NOW)
    keys = Jwks(URL, lambda url: issuer.document(urlsplit(url).path), lambda: now)
    tokens = TokenVerifier(URL, frozenset([AUDIENCE]), keys, lambda: NOW)
    before = issuer.mint("ES256", iat=NOW, exp=NOW + 600)
    assert tokens.verify(before)
    issuer.rotate()
    after = issuer.mint("ES256", iat=NOW, exp=NOW + 600)
    now += 30
    assert tokens.verify(after)
    refused("unknown_kid", lambda: tokens.verify(before))


@pytest.mark.parametrize(
    ("type_", "good"),
    [
        (None, True),
        ("JWT", True),
        ("jwt", True),
        ("at+jwt", True),
        ("AT+JWT", True),
        ("application/at+jwt", True),
        ("id+jwt", False),
        ("logout+jwt", False),
        ("dpop+jwt", False),
        ("JOSE", False),
        ("", False),
        (["JWT"], False),
        (7, False),
    ],
)
def test_the_type_is_that_of_an_access_token(check: Check, type_: Any, good: bool) -> None:
    """RFC 8725, section 3.11; RFC 9068, section 4. Many issuers say JWT, or nothing."""
    if good:
        assert check(header={"typ": type_})
    else:
        refused("wrong_typ", lambda: check(header={"typ": type_}))


@pytest.mark.parametrize("claim", ["nonce", "at_hash", "c_hash", "s_hash", "events"])
def test_neither_an_id_token_nor_a_logout_token_is_an_access_token(
    issuer: Signer, claim: str
) -> None:
    """Also where the audience of both is one client id (OpenID Connect Core 1.0, section 2)."""
    tokens = checked_by(issuer, CLIENT)
    plain: dict[str, Any] = {"aud": CLIENT, "header": {"typ": "JWT"}}
    assert tokens.verify(issuer.mint(**plain))
    for value in ("n-0S6_WzA2Mj", "", None, 7):
        claims = issuer.claims(aud=CLIENT) | {claim: value}
        id_token = issuer.mint(header={"typ": "JWT"}, payload=json.dumps(claims).encode())
        refused(
            "not_an_access_token",
            lambda token=id_token: tokens.verify(token),  # type: ignore[misc]
        )


@pytest.mark.parametrize(
    "kind",
    [
        *("ID", "id", "Refresh", "Offline", "Logout", "Serialized-ID", "RegistrationAccessToken"),
        *("", ["ID"], ["Bearer"], 1),
    ],
)
def test_other_tokens_that_say_what_they_are_are_no_access_tokens(check: Check, kind: Any) -> None:
    refused("wrong_typ", lambda: check(typ=kind))


@pytest.mark.parametrize("kind", ["Bearer", "DPoP", "JWT"])
def test_keycloaks_access_tokens_are_good(check: Check, kind: str) -> None:
    assert check(typ=kind)


@pytest.mark.parametrize(
    "changed",
    [
        {"header": {"typ": "JWT"}, "typ": "Bearer"},
        {"header": {"typ": "at+jwt"}},
        {"header": {"typ": "JWT"}, "token_use": "access"},
    ],
    ids=["Keycloak before 25", "RFC 9068", "Cognito"],
)
def test_a_token_that_says_it_is_an_access_token_may_have_a_nonce(
    check: Check, changed: dict[str, Any]
) -> None:
    """Keycloak 25, upgrading guide: the nonce was in all tokens before."""
    assert check(nonce="n", **changed)
    refused("not_an_access_token", lambda: check(at_hash="h", **changed))


def test_entras_access_tokens_with_a_nonce_in_the_header_are_good(check: Check) -> None:
    """Not a claim: it has to do with how Microsoft Graph verifies its own tokens."""
    assert check(header={"typ": "JWT", "nonce": "n"})


@pytest.mark.parametrize(
    ("type_", "good"),
    [
        ("at+jwt", True),
        ("application/at+jwt", True),
        ("AT+JWT", True),
        ("JWT", False),
        (None, False),
    ],
)
def test_access_tokens_can_have_to_say_that_they_are(
    issuer: Signer, type_: str | None, good: bool
) -> None:
    """`-c token_typ=at+jwt`: RFC 9068, section 4, "MUST verify that the typ header value is"."""
    keys = Jwks(issuer.url, lambda url: issuer.document(urlsplit(url).path))
    tokens = TokenVerifier(issuer.url, frozenset([AUDIENCE]), keys, at_jwt_only=True)
    token = issuer.mint(header={"typ": type_})
    if good:
        assert tokens.verify(token)
    else:
        refused("wrong_typ", lambda: tokens.verify(token))


@pytest.mark.parametrize(
    ("crit", "reason"),
    [
        (["b64"], "critical_extension"),
        (["exp"], "malformed"),
        ([], "malformed"),
        ("b64", "malformed"),
    ],
)
def test_no_critical_extension_is_understood(check: Check, crit: Any, reason: str) -> None:
    """RFC 7515, section 4.1.11: then "the JWS is invalid". PyJWT understands one, `b64`."""
    refused(reason, lambda: check(header={"crit": crit, "b64": True, "exp": 1}))


@pytest.mark.parametrize("header", [{"kid": 7}, {"kid": ["a"]}, {"alg": ["RS256"]}, {"alg": 7}])
def test_members_of_another_type_are_refused(issuer: Signer, header: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken):
        checked_by(issuer).verify(issuer.mint(header=header))


@pytest.mark.parametrize(
    ("seconds", "good"),
    [(-59, True), (-59.9, True), (-60, False), (-61, False), (-3600, False), (1e300, True)],
)
def test_the_end_is_a_minute_late_at_most(check: Check, seconds: float, good: bool) -> None:
    if good:
        assert check(exp=NOW + seconds)
    else:
        refused("expired", lambda: check(exp=NOW + seconds))


@pytest.mark.parametrize("claim", ["nbf", "iat"])
@pytest.mark.parametrize(
    ("seconds", "good"), [(-1e9, True), (0, True), (59, True), (60, True), (61, False)]
)
def test_the_beginning_is_a_minute_early_at_most(
    check: Check, claim: str, seconds: float, good: bool
) -> None:
    if good:
        assert check(exp=NOW + 100, **{claim: NOW + seconds})
    else:
        refused("not_yet_valid", lambda: check(exp=NOW + 100, **{claim: NOW + seconds}))


def test_neither_beginning_is_required(check: Check) -> None:
    assert check(iat=None, nbf=None)


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "value",
    [f"{NOW + 60}", "soon", "", True, [NOW], {}, float("inf"), float("-inf"), float("nan")],
)
def test_a_time_is_a_number(check: Check, claim: str, value: Any) -> None:
    """RFC 7519, section 2: "A JSON numeric value"."""
    refused("malformed", lambda: check(**{claim: value}))


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
def test_a_time_of_null_is_no_time(issuer: Signer, check: Check, claim: str) -> None:
    claims = {**issuer.claims(iat=NOW, exp=NOW + 60), claim: None}
    refused("malformed", lambda: check(payload=json.dumps(claims).encode()))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("1" + "0" * 400, None),
        ("1" + "0" * 5000, "malformed"),
        ("1e400", "malformed"),
        ("-1e400", "malformed"),
        ("-1", "expired"),
        ("-1" + "0" * 400, "expired"),
        (f"{NOW}.5", None),
        ("0", "expired"),
    ],
)
def test_a_number_may_be_huge_or_negative(
    issuer: Signer, check: Check, number: str, reason: str | None
) -> None:
    """Python refuses to read an integer of more than 4,300 digits, and reads 1e400 as infinity."""
    claims = json.dumps(issuer.claims(exp="END")).replace('"END"', number).encode()
    if reason is None:
        assert check(payload=claims.replace(b'"iat"', b'"was"'))
    else:
        refused(reason, lambda: check(payload=claims.replace(b'"iat"', b'"was"')))


@pytest.mark.parametrize("payload", [b"", b"[]", b"null", b"7", b"{", b"\xff{}", b'{"iss": }'])
def test_claims_are_an_object(check: Check, payload: bytes) -> None:
    refused("malformed", lambda: check(payload=payload))


@pytest.mark.usefixtures("usual_depth")
def test_claims_that_are_too_deep_are_refused(check: Check) -> None:
    refused("malformed", lambda: check(payload=b"[" * 5000))


@pytest.mark.parametrize(
    ("audience", "good"),
    [
        (AUDIENCE, True),
        ([AUDIENCE], True),
        (["https://other.example", AUDIENCE], True),
        (["https://other.example"], False),
        ([], False),
        ("", False),
        (f"{AUDIENCE}/", False),
        (AUDIENCE.upper(), False),
        (AUDIENCE[:-1], False),
        (f"{AUDIENCE} https://other.example", False),
        ({AUDIENCE: True}, False),
        ([[AUDIENCE]], False),
        (7, False),
    ],
)
def test_the_audience_is_this_server(check: Check, audience: Any, good: bool) -> None:
    """authorization/index.mdx, "Token Handling": "issued specifically for them"."""
    if good:
        assert check(aud=audience)
    else:
        refused("wrong_aud", lambda: check(aud=audience))


@pytest.mark.parametrize("issuer_", ["", 7, None, [URL], URL.upper(), f"{URL}/", f"{URL}#", "x"])
def test_the_issuer_is_the_configured_one(issuer: Signer, check: Check, issuer_: Any) -> None:
    claims = {**issuer.claims(iat=NOW, exp=NOW + 60), "iss": issuer_}
    refused("wrong_iss", lambda: check(payload=json.dumps(claims).encode()))


@pytest.fixture(scope="module")
def cognito() -> Check:
    """Check a token of a Cognito user pool, for the audience CLIENT."""
    pool = Signer(COGNITO, ["RS256"])

    def check(**changed: Any) -> Grant:
        claims = {"aud": None, "token_use": "access", "client_id": CLIENT, **changed}
        return checked_by(pool, CLIENT).verify(pool.mint(**claims))

    return check


def test_cognitos_access_tokens_have_a_client_for_an_audience(cognito: Check) -> None:
    """API Gateway developer guide, "JWT authorizers": client_id, "only if aud is not present"."""
    assert cognito().principal == f"{COGNITO}|alice"
    refused("wrong_aud", lambda: cognito(client_id="another"))
    refused("wrong_aud", lambda: cognito(client_id=None))
    refused("wrong_aud", lambda: cognito(aud="another"))
    refused("wrong_aud", lambda: cognito(aud=[]))
    refused("wrong_aud", lambda: cognito(token_use=None))
    assert cognito(aud=CLIENT, client_id="another")


@pytest.mark.parametrize("use", ["id", "refresh", "", 7, ["access"]])
def test_cognitos_other_tokens_are_no_access_tokens(cognito: Check, use: Any) -> None:
    refused("wrong_token_use", lambda: cognito(aud=CLIENT, token_use=use))


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://cognito-idp.eu-central-1.amazonaws.com.example/eu-central-1_AbC",
        "https://evil.example/https://cognito-idp.eu-central-1.amazonaws.com/p",
        "https://cognito-idp-eu.example/p",
        f"{COGNITO}/more",
    ],
)
def test_no_other_issuers_tokens_do_without_an_audience(url: str) -> None:
    other = Signer(url, ["ES256"])
    token = other.mint("ES256", aud=None, token_use="access", client_id=CLIENT)
    refused("wrong_aud", lambda: checked_by(other, CLIENT).verify(token))


@pytest.mark.parametrize(
    ("claims", "principal"),
    [
        ({"sub": "alice"}, f"{URL}|alice"),
        ({"sub": "alice", "client_id": "machine"}, f"{URL}|alice"),
        ({"sub": None, "client_id": "machine"}, f"{URL}#client|machine"),
        ({"sub": "a|b c@d"}, f"{URL}|a|b c@d"),
        ({"sub": "zoë"}, f"{URL}|zoë"),
        ({"sub": "x" * 255}, f"{URL}|{'x' * 255}"),
    ],
)
def test_the_principal_is_a_subject_or_else_a_client(
    check: Check, claims: dict[str, Any], principal: str
) -> None:
    assert check(**claims).principal == principal


@pytest.mark.parametrize("name", ["sub", "client_id"])
@pytest.mark.parametrize(
    "value", ["", "x" * 256, 7, True, ["alice"], {"a": 1}, "a\nb", "a\0", "\ud800", "a\u2028b"]
)
def test_a_name_is_a_short_line_of_text(check: Check, name: str, value: Any) -> None:
    """A client id does not replace an invalid subject."""
    claims = {"sub": None, "client_id": "machine", name: value}
    refused("invalid_sub", lambda: check(**claims))


def test_a_subject_of_null_is_not_made_up_for(issuer: Signer, check: Check) -> None:
    claims = {**issuer.claims(iat=NOW, exp=NOW + 60), "sub": None, "client_id": "machine"}
    refused("invalid_sub", lambda: check(payload=json.dumps(claims).encode()))


def test_no_subject_has_the_principal_of_a_client(check: Check) -> None:
    """No text of a subject makes the principal of a client."""
    client = check(sub=None, client_id="machine").principal
    for subject in ("machine", "client|machine", "#client|machine", "|machine"):
        assert check(sub=subject).principal != client


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, set()),
        ({"scope": ""}, set()),
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": " a  b a "}, {"a", "b"}),
        ({"scope": ["a", "b"]}, {"a", "b"}),
        ({"scp": "a b"}, {"a", "b"}),
        ({"scp": ["a", "https://mcp.example/b"]}, {"a", "https://mcp.example/b"}),
        ({"scope": "a", "scp": "b"}, {"a"}),
        ({"scope": "", "scp": "b"}, set()),
        ({"roles": ["a"]}, set()),
        ({"roles": ["a"], "idtyp": "app"}, {"a"}),
        ({"roles": ["a", "b"], "oid": "alice"}, {"a", "b"}),
        ({"roles": ["a"], "oid": "another"}, set()),
        ({"roles": ["a"], "idtyp": "user"}, set()),
        ({"roles": ["a"], "idtyp": "app", "scp": "b"}, {"b"}),
        ({"roles": ["a"], "oid": "alice", "scp": ""}, set()),
    ],
)
def test_scopes_are_a_string_or_a_list_or_an_applications_roles(
    check: Check, claims: dict[str, Any], scopes: set[str]
) -> None:
    assert check(**claims).scopes == scopes


@pytest.mark.parametrize(
    "scope", [["a b"], ["a", ""], [7], {"a": 1}, 7, True, "a\tb", 'a"', "a\\b", "é", "a\u00a0b"]
)
def test_a_scope_is_one_word(check: Check, scope: Any) -> None:
    """RFC 6749, section 3.3. A scope `a b` would become two when scopes are joined by spaces."""
    refused("invalid_scope", lambda: check(scope=scope))


def test_a_token_of_16_kb_is_the_largest(issuer: Signer) -> None:
    tokens = checked_by(issuer)
    empty = issuer.mint(padding="")
    header, payload, signed = map(len, empty.split("."))
    room = 16 * 1024 - 2 - header - signed
    token = issuer.mint(padding="x" * ((room - payload) * 3 // 4))
    assert 16 * 1024 - 4 <= len(token) <= 16 * 1024
    assert tokens.verify(token)
    refused(
        "token_too_long",
        lambda: tokens.verify(issuer.mint(padding="x" * ((room - payload) * 3 // 4 + 4))),
    )


@pytest.mark.parametrize("token", ["", ".", "..", "...", "é.é.é", "\ud800", "a" * 16384, "." * 9])
def test_any_text_that_is_no_token_is_refused(issuer: Signer, token: str) -> None:
    refused("malformed", lambda: checked_by(issuer).verify(token))


def test_a_header_of_any_characters_is_read(issuer: Signer) -> None:
    refused("unknown_kid", lambda: checked_by(issuer).verify(issuer.mint(header={"kid": "é"})))
    assert checked_by(issuer).verify(issuer.mint(header={"note": "é"}))


ALTERED: Final = Signer(URL, ["ES256"])
TOKENS: Final = checked_by(ALTERED)
GOOD: Final = ALTERED.mint("ES256", scope="a")


@settings(deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.characters(exclude_categories=[]))
def test_a_token_with_one_other_character_is_refused(place: int, character: str) -> None:
    token = GOOD[:place] + character + GOOD[place + 1 :]
    if token == GOOD:
        assert TOKENS.verify(token)
    else:
        with pytest.raises(InvalidToken):
            TOKENS.verify(token)


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
HEADERS: Final = st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5c", "zip", "enc"]),
    JSON | st.sampled_from(["ES256", ALTERED.key_id("ES256"), "JWT", "none"]),
)
CLAIMS: Final = st.dictionaries(
    st.sampled_from(
        ["iss", "aud", "sub", "exp", "nbf", "iat", "scope", "scp", "token_use", "typ", "nonce"]
    ),
    JSON,
)


@settings(deadline=None)
@given(HEADERS, CLAIMS)
def test_any_header_is_refused_with_a_word(header: dict[str, Any], claims: dict[str, Any]) -> None:
    token = compact(header, {**ALTERED.claims(), **claims}, lambda _: b"\0" * 64)
    with pytest.raises(InvalidToken):
        TOKENS.verify(token)


@settings(deadline=None)
@given(CLAIMS)
def test_any_signed_claims_are_good_or_refused_with_a_word(claims: dict[str, Any]) -> None:
    payload = json.dumps({**ALTERED.claims(), **claims}).encode()
    try:
        granted = TOKENS.verify(ALTERED.mint("ES256", payload=payload))
    except InvalidToken:
        return
    assert granted.principal.startswith(f"{URL}|")
    assert " ".join(granted.scopes).isascii()
