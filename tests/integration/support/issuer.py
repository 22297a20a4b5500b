"""An OpenID Connect issuer on this machine, for tests and for trying out `auth=oauth`.

It has no users: it signs any claims, also such as no real issuer would sign.

    python -m tests.integration.support.issuer --audience https://mcp.example --scope "tasks:read"
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

AUDIENCE: Final = "https://mcp.example/mcp"
ALICE: Final = "alice"
LIFETIME_SECONDS: Final = 3600

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Sign = Callable[[bytes], bytes]


@cache
def private_key(algorithm: str, generation: int) -> PrivateKey:
    """A private key. It is made once per process, because an RSA key takes 0.1 seconds."""
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm.startswith("ES"):
        curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
        return ec.generate_private_key(curves[algorithm])
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_jwk(algorithm: str, key: PrivateKey, key_id: str) -> dict[str, Any]:
    """The public key as a JWK, as issuers publish it."""
    found = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    found.pop("key_ops", None)
    return {**found, "kid": key_id, "use": "sig", "alg": algorithm}


def public_bytes(key: PrivateKey, encoding: Encoding) -> bytes:
    """The public key's bytes, which an attacker may use as an HMAC secret."""
    return key.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)


def compact(header: Mapping[str, Any], claims: object, sign: Sign) -> str:
    """A token with any header and any claims (RFC 7515, section 7.1)."""
    parts = [json.dumps(header).encode()]
    parts.append(claims if isinstance(claims, bytes) else json.dumps(claims).encode())
    signed = b".".join(map(_base64url, parts))
    return (signed + b"." + _base64url(sign(signed))).decode()


def signature(algorithm: str, key: PrivateKey) -> Sign:
    """A function that signs with a key and an algorithm that suits the key."""
    found = jwt.get_algorithm_by_name(algorithm)
    return lambda signed: found.sign(signed, key)


def hmac_sha256(secret: bytes) -> Sign:
    """A function that signs with HS256. PyJWT would refuse a public key as the secret."""
    return lambda signed: hmac.new(secret, signed, hashlib.sha256).digest()


def unsigned(_: bytes) -> bytes:
    """The empty signature of `alg: none`."""
    return b""


class Signer:
    """An issuer's keys, documents and tokens, without the HTTP server."""

    def __init__(self, url: str, algorithms: Sequence[str] = ("RS256", "ES256")) -> None:
        self.url = url
        self.algorithms = algorithms
        self.generation = 0
        self.fetches: Counter[str] = Counter()
        """How often each path was requested."""
        self.asked_at = 0.0
        """When a path was requested last, by the monotonic clock, in seconds."""

    def key_id(self, algorithm: str) -> str:
        """The id of the current key, derived from the key: no other process has the same id."""
        key = private_key(algorithm, self.generation)
        return hashlib.sha256(public_bytes(key, Encoding.DER)).hexdigest()[:16]

    def rotate(self) -> None:
        """Sign with new keys, and publish the old ones no more."""
        self.generation += 1

    def jwk(self, algorithm: str) -> dict[str, Any]:
        """The public key of the current key, as a JWK."""
        key = private_key(algorithm, self.generation)
        return public_jwk(algorithm, key, self.key_id(algorithm))

    def document(self, path: str) -> Any:
        """The document at a path, or None for an unknown path."""
        self.fetches[path] += 1
        self.asked_at = time.monotonic()
        own = urlsplit(self.url).path
        if path in (
            f"{own}/.well-known/openid-configuration",
            f"/.well-known/oauth-authorization-server{own}",
        ):
            return {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        if path == f"{own}/keys":
            return {"keys": [self.jwk(algorithm) for algorithm in self.algorithms]}
        return None

    def claims(self, **changed: Any) -> dict[str, Any]:
        """A valid token's claims, some of them changed. None removes a claim."""
        now = int(time.time())
        good = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": ALICE,
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
        }
        return {name: value for name, value in {**good, **changed}.items() if value is not None}

    def mint(
        self,
        algorithm: str = "RS256",
        *,
        header: Mapping[str, Any] | None = None,
        sign: Sign | None = None,
        payload: bytes | None = None,
        **claims: Any,
    ) -> str:
        """A valid token, some of its parts changed. None removes a claim or a member of the header.

        `sign` replaces the signature, and `payload` all claims.
        """
        good = {"alg": algorithm, "kid": self.key_id(algorithm), "typ": "at+jwt"}
        head = {
            name: value for name, value in {**good, **(header or {})}.items() if value is not None
        }
        key = private_key(algorithm, self.generation)
        body = self.claims(**claims) if payload is None else payload
        return compact(head, body, sign or signature(algorithm, key))

    def bad_tokens(self, audience: str = AUDIENCE) -> dict[str, str]:
        """Tokens that have to be refused, by what is wrong with them."""
        now = int(time.time())
        rsa_key = private_key("RS256", self.generation)
        stranger = private_key("RS256", self.generation + 1000)
        pem, der = (public_bytes(rsa_key, form) for form in (Encoding.PEM, Encoding.DER))
        stranger_jwk = public_jwk("RS256", stranger, "own")

        def mint(algorithm: str = "RS256", **changed: Any) -> str:
            return self.mint(algorithm, **{"aud": audience, **changed})

        def hs256(secret: bytes) -> str:
            return mint(header={"alg": "HS256"}, sign=hmac_sha256(secret))

        def with_own_key(**header: Any) -> str:
            return mint(header=header, sign=signature("RS256", stranger))

        return {
            "garbage": "garbage",
            "three parts of garbage": "a.b.c",
            "empty parts": "..",
            "expired": mint(iat=now - 3700, exp=now - 100),
            "without an end": mint(exp=None),
            "not yet valid": mint(nbf=now + 100),
            "issued in the future": mint(iat=now + 100),
            "wrong issuer": mint(iss="https://other.example"),
            "issuer with a slash": mint(iss=f"{self.url}/"),
            "wrong audience": mint(aud="https://other.example"),
            "no audience": mint(aud=None),
            "wrong signature": with_own_key(),
            "signature cut off": mint().rpartition(".")[0] + ".",
            "claims exchanged": _exchanged(mint(), self.claims(aud=audience, sub="mallory")),
            "alg none": mint(header={"alg": "none"}, sign=unsigned),
            "alg nOnE": mint(header={"alg": "nOnE"}, sign=unsigned),
            "HS256 with the public key in PEM": hs256(pem),
            "HS256 with the public key in DER": hs256(der),
            "HS256 with an empty secret": hs256(b""),
            "unknown key id": mint(header={"kid": "unknown"}),
            "key in the header": with_own_key(jwk=stranger_jwk),
            "key's URL in the header": with_own_key(jku="https://other.example/keys"),
            "certificate in the header": with_own_key(x5c=["MIIB"], x5u="https://other.example/x"),
            "critical extension": mint(header={"crit": ["b64"], "b64": True}),
            "no subject": mint(sub=None),
            "ID token of Cognito": mint(token_use="id"),
            "ID token of Keycloak": mint(typ="ID"),
            "ID token with a nonce": mint(header={"typ": "JWT"}, nonce="n"),
            "ID token with at_hash": mint(header={"typ": "JWT"}, at_hash="h"),
            "huge": mint(padding="x" * 16 * 1024),
        }


class Issuer(Signer):
    """The issuer on a port of 127.0.0.1. It serves inside its context."""

    def __init__(
        self, path: str = "", port: int = 0, algorithms: Sequence[str] = ("RS256", "ES256")
    ) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self), False)
        self._server.server_bind()
        super().__init__(f"http://127.0.0.1:{self._server.server_port}{path}", algorithms)
        self.available = True
        """When false, every response is 503."""

    def __enter__(self) -> Self:
        self._server.server_activate()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _exchanged(token: str, claims: Mapping[str, Any]) -> str:
    header, _, signed = token.split(".")
    return f"{header}.{_base64url(json.dumps(claims).encode()).decode()}.{signed}"


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = issuer.document(self.path)
            status = 200 if found else 404
            body = json.dumps(found).encode()
            self.send_response(status if issuer.available else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Write no access log."""

    return Serving


def main() -> None:
    """Print the issuer's URL and a token, and serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--audience", required=True, help="the token's audience")
    parser.add_argument("--scope", default="", help="the token's scopes, separated by spaces")
    parser.add_argument("--sub", default=ALICE, help="the token's subject")
    parser.add_argument(
        "--seconds", type=int, default=LIFETIME_SECONDS, help="how long the token is valid"
    )
    parser.add_argument(
        "--port", type=int, default=0, help="a port of 127.0.0.1; by default a free one"
    )
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Issuer(port=options.port) as issuer:
        token = issuer.mint(
            aud=options.audience,
            sub=options.sub,
            scope=options.scope or None,
            exp=int(time.time()) + options.seconds,
        )
        print(f"issuer {issuer.url}\ntoken {token}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
