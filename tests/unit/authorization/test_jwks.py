"""The issuer's signing keys: where they are found, which are used, and how often they are fetched.

Sources: OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3; RFC 7517.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mcp_tasks.authorization import http_json as fetching
from mcp_tasks.authorization.discovery import check_issuer, key_set
from mcp_tasks.authorization.http_json import FetchError, fetch_json
from mcp_tasks.authorization.jwks import Jwks, KeysUnavailable
from tests.integration.issuer import private_key, public_jwk

ISSUER: Final = "https://login.example/tenant"
OPENID: Final = f"{ISSUER}/.well-known/openid-configuration"
OAUTH: Final = "https://login.example/.well-known/oauth-authorization-server/tenant"
KEYS: Final = "https://keys.example/all"
START: Final = 1_800_000_000.0
MINUTE: Final = 60
HOUR: Final = 60 * MINUTE


class Web:
    """What can be fetched, and how often it was. What is not there answers 404."""

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
        """Let the issuer have these keys, and no others."""
        self.documents[KEYS] = {"keys": list(keys)}


class Clock:
    """Seconds since the epoch, as a test says."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def jwk(key_id: str = "a", algorithm: str = "ES256", **changed: Any) -> dict[str, Any]:
    """A good key; a member of None is left out."""
    found = {**public_jwk(algorithm, private_key(algorithm, 0), key_id), **changed}
    return {name: value for name, value in found.items() if value is not None}


@pytest.fixture
def web() -> Web:
    """An issuer with one key."""
    web = Web()
    web.publish(jwk("a"))
    return web


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def keys(web: Web, clock: Clock) -> Jwks:
    """The keys of that issuer."""
    return Jwks(ISSUER, web, clock)


def ids(keys: Jwks, *asked: str) -> list[str]:
    """Those ids that have a key."""
    return [key_id for key_id in asked if keys.named(key_id)]


@pytest.mark.parametrize(
    ("issuer", "openid", "oauth"),
    [
        (ISSUER, OPENID, OAUTH),
        (f"{ISSUER}/", OPENID, OAUTH),
        (
            "https://login.example",
            "https://login.example/.well-known/openid-configuration",
            "https://login.example/.well-known/oauth-authorization-server",
        ),
    ],
)
def test_an_issuer_describes_itself_as_openid_or_as_oauth(
    web: Web, issuer: str, openid: str, oauth: str
) -> None:
    described = {"issuer": issuer, "jwks_uri": KEYS}
    for location in (openid, oauth):
        web.documents = {location: described, KEYS: {"keys": ["k"]}}
        web.fetches.clear()
        assert key_set(issuer, web) == ["k"]
        assert list(web.fetches) == list(dict.fromkeys([openid, location, KEYS]))


def test_an_issuer_that_does_not_answer_is_asked_once(web: Web) -> None:
    web.failure = "timeout"
    with pytest.raises(FetchError, match="timeout"):
        key_set(ISSUER, web)
    assert web.fetches == {OPENID: 1}


@pytest.mark.parametrize("issuer", [f"{ISSUER}/", "https://LOGIN.example/tenant", "", None])
def test_a_description_of_another_issuer_is_refused(web: Web, issuer: str | None) -> None:
    """RFC 8414, section 3.3: "MUST be identical"."""
    web.documents[OPENID] = {"issuer": issuer, "jwks_uri": KEYS}
    with pytest.raises(FetchError, match="another issuer"):
        key_set(ISSUER, web)


@pytest.mark.parametrize("described", [None, [], "text"])
def test_so_is_what_is_no_description(web: Web, described: Any) -> None:
    web.documents[OPENID] = described
    with pytest.raises(FetchError, match="no metadata"):
        key_set(ISSUER, web)


@pytest.mark.parametrize("found", [None, [], {}, {"keys": None}, {"keys": {}}])
def test_so_is_what_is_no_key_set(web: Web, found: Any) -> None:
    web.documents[KEYS] = found
    with pytest.raises(FetchError, match="no key set"):
        key_set(ISSUER, web)


@pytest.mark.parametrize(
    "location",
    [
        None,
        7,
        "http://keys.example/all",
        "http://127.0.0.1/all",
        "file:///etc/passwd",
        "ftp://keys.example/all",
        "//keys.example/all",
        "https://[/all",
    ],
)
def test_keys_come_over_https(web: Web, location: Any) -> None:
    web.documents[OPENID] = {"issuer": ISSUER, "jwks_uri": location}
    web.documents[location] = {"keys": []}
    with pytest.raises(FetchError, match="jwks_uri"):
        key_set(ISSUER, web)
    assert location not in web.fetches


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("http://127.0.0.1:9/all", True),
        ("http://localhost/all", True),
        ("http://[::1]/all", True),
        ("https://keys.example/all", True),
        ("http://keys.example/all", False),
        ("http://127.0.0.1.example/all", False),
        ("file:///etc/passwd", False),
        ("file://localhost/etc/passwd", False),
        ("ftp://127.0.0.1/all", False),
    ],
)
def test_an_issuer_on_this_machine_may_use_http_on_this_machine(
    location: str, allowed: bool
) -> None:
    issuer = "http://127.0.0.1:8000"
    web = Web()
    web.documents[f"{issuer}/.well-known/openid-configuration"] = {
        "issuer": issuer,
        "jwks_uri": location,
    }
    web.documents[location] = {"keys": ["k"]}
    if allowed:
        assert key_set(issuer, web) == ["k"]
    else:
        with pytest.raises(FetchError, match="jwks_uri"):
            key_set(issuer, web)


@pytest.mark.parametrize(
    "issuer",
    [
        "",
        "login.example",
        "http://login.example",
        "http://127.0.0.1.example",
        "file:///keys",
        "file://localhost/keys",
        "https://",
        "https://login.example/?tenant=1",
        "https://login.example/#a",
        "https://login.example/\n",
        "https://login.example/é",
    ],
)
def test_what_is_no_issuer_is_an_error_of_the_deployment(issuer: str) -> None:
    """RFC 8414, section 2: https, "no query or fragment components"."""
    with pytest.raises(ValueError, match="the issuer"):
        Jwks(issuer)


@pytest.mark.parametrize("issuer", [ISSUER, f"{ISSUER}/", "http://127.0.0.1:9", "http://localhost"])
def test_what_may_be_an_issuer(issuer: str) -> None:
    check_issuer(issuer)


def test_keys_are_fetched_once_an_hour(keys: Jwks, web: Web, clock: Clock) -> None:
    for minute in range(181):
        clock.now = START + minute * MINUTE
        assert ids(keys, "a") == ["a"]
    assert web.fetches == {OPENID: 3, KEYS: 3}


def test_unknown_ids_fetch_at_most_once_in_half_a_minute(
    keys: Jwks, web: Web, clock: Clock
) -> None:
    """A key id is the sender's to choose."""
    for number in range(1000):
        assert keys.named(f"unknown-{number}") == []
        clock.now = START + number * 0.0299
    assert web.fetches[KEYS] == 1
    for number in range(1000):
        clock.now = START + 30 + number * 0.1
        assert keys.named(f"unknown-{number}") == []
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
        keys.named("a")
    web.failure = None
    web.publish(jwk("a"))
    clock.now += 5
    assert ids(keys, "a") == ["a"]


def test_a_failed_fetch_is_repeated_after_half_a_minute_while_there_are_keys(
    keys: Jwks, web: Web, clock: Clock
) -> None:
    keys.named("a")
    web.failure = "timeout"
    web.fetches.clear()
    for second in range(300):
        clock.now = START + HOUR + 1 + second
        assert ids(keys, "a") == ["a"]
    assert web.fetches == {OPENID: 10}


def test_and_after_five_seconds_while_there_are_none(keys: Jwks, web: Web, clock: Clock) -> None:
    web.failure = "timeout"
    for second in range(60):
        clock.now = START + second
        with pytest.raises(KeysUnavailable):
            keys.named("a")
    assert web.fetches == {OPENID: 12}


def test_a_failed_fetch_is_logged(keys: Jwks, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        "mcp_tasks.authorization.jwks.logger.warning",
        lambda text, **more: said.append((text, more)),
    )
    web.failure = "timeout"
    with pytest.raises(KeysUnavailable):
        keys.named("a")
    assert said == [("The issuer's keys are not fetched", {"reason": "timeout"})]


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
    (key,) = keys.named("k")
    assert list(key.algorithms) == usable


def short_rsa() -> dict[str, Any]:
    """A key of 1024 bits."""
    return public_jwk("RS256", rsa.generate_private_key(65537, 1024), "bad")


def private(algorithm: str) -> dict[str, Any]:
    """A key that everybody can sign with."""
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
    assert len(keys.named(None)) == 1
    web.publish(jwk("a"), jwk("b"))
    clock.now += HOUR + 1
    assert keys.named(None) == []


Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serve an answer at an address of this machine, with TLS if there is a context."""
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(answer: Answer, context: ssl.SSLContext | None = None) -> str:
        class Serving(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running.append((server, thread))
        return f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def saying(body: bytes, status: int = 200, **headers: str) -> Answer:
    """An answer that comes at once."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def test_a_document_is_fetched_with_its_query(serve: Callable[..., str]) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        saying(json.dumps([request.path, request.headers["Accept"]]).encode())(request)

    assert fetch_json(f"{serve(answer)}/a/b?c=d#e") == ["/a/b?c=d", "application/json"]


@pytest.mark.parametrize("status", [204, 301, 302, 307, 401, 404, 500])
def test_any_status_but_200_is_a_failure_and_no_redirect_is_followed(
    serve: Callable[..., str], status: int
) -> None:
    target = serve(saying(b'"elsewhere"'))
    with pytest.raises(FetchError, match=f"^status {status}$") as failed:
        fetch_json(serve(saying(b"{}", status, Location=target)))
    assert failed.value.status == status


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff"])
def test_what_is_no_json_is_a_failure(serve: Callable[..., str], body: bytes) -> None:
    with pytest.raises(FetchError, match=r"^not JSON$"):
        fetch_json(serve(saying(body)))


def test_nor_is_what_is_too_deep(serve: Callable[..., str]) -> None:
    url = serve(saying(b"[" * 10_000))
    before = sys.getrecursionlimit()  # which other tests' libraries raise
    sys.setrecursionlimit(1000)
    try:
        with pytest.raises(FetchError, match=r"^not JSON$"):
            fetch_json(url)
    finally:
        sys.setrecursionlimit(before)


def test_a_large_document_is_not_read(serve: Callable[..., str]) -> None:
    body = json.dumps("x" * fetching.MAX_BYTES).encode()
    with pytest.raises(FetchError, match=r"^too large$"):
        fetch_json(serve(saying(body)))
    smaller = "x" * (fetching.MAX_BYTES - 2)
    assert fetch_json(serve(saying(json.dumps(smaller).encode()))) == smaller


@pytest.mark.parametrize("drop", [b"", b" "], ids=["silent", "dripping"])
def test_a_slow_issuer_is_not_waited_for(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, drop: bytes
) -> None:
    monkeypatch.setattr(fetching, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(fetching, "BODY_SECONDS", 0.2)
    over = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        saying(b" ")(request)
        end = time.monotonic() + 5
        while time.monotonic() < end and not over.wait(0.02):
            request.wfile.write(drop)

    url = serve(answer)
    try:
        with pytest.raises(FetchError, match=r"^timeout$"):
            fetch_json(url)
    finally:
        over.set()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://127.0.0.1:99999", "http://127.0.0.1:1/a b", "https://"]
)
def test_nobody_there_is_a_failure(url: str) -> None:
    with pytest.raises(FetchError, match=r"^unreachable$"):
        fetch_json(url)


def test_what_is_no_http_is_a_failure(serve: Callable[..., str]) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"SSH-2.0-x\r\n")

    with pytest.raises(FetchError, match=r"^unreachable$"):
        fetch_json(serve(answer))


def test_no_proxy_is_asked(serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", serve(saying(b'"the proxy"')))
    assert fetch_json(serve(saying(b'"the issuer"'))) == "the issuer"


def test_a_certificate_that_nobody_vouches_for_is_refused(
    serve: Callable[..., str], tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = tmp_path / "server.pem"
    file.write_bytes(pem + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with pytest.raises(FetchError, match=r"^TLS$"):
        fetch_json(serve(saying(b"{}"), context))
