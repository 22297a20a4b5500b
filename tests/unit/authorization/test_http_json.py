"""Fetching a document of the issuer's, over sockets of this machine."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mcp_tasks.authorization import http_json
from mcp_tasks.authorization.http_json import FetchError, fetch_json

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
                """Log nothing."""

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
def test_a_document_that_is_no_json_is_a_failure(serve: Callable[..., str], body: bytes) -> None:
    with pytest.raises(FetchError, match=r"^not JSON$"):
        fetch_json(serve(saying(body)))


@pytest.mark.usefixtures("usual_depth")
def test_a_document_that_is_nested_too_deeply_is_a_failure(serve: Callable[..., str]) -> None:
    with pytest.raises(FetchError, match=r"^not JSON$"):
        fetch_json(serve(saying(b"[" * 10_000)))


def test_a_large_document_is_not_read(serve: Callable[..., str]) -> None:
    body = json.dumps("x" * http_json.MAX_BODY_BYTES).encode()
    with pytest.raises(FetchError, match=r"^too large$"):
        fetch_json(serve(saying(body)))
    smaller = "x" * (http_json.MAX_BODY_BYTES - 2)
    assert fetch_json(serve(saying(json.dumps(smaller).encode()))) == smaller


@pytest.mark.parametrize("drop", [b"", b" "], ids=["silent", "dripping"])
def test_a_slow_issuer_is_not_waited_for(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, drop: bytes
) -> None:
    monkeypatch.setattr(http_json, "SOCKET_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(http_json, "BODY_TIMEOUT_SECONDS", 0.2)
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
def test_a_refused_connection_is_a_failure(url: str) -> None:
    with pytest.raises(FetchError, match=r"^unreachable$"):
        fetch_json(url)


def test_an_answer_that_is_no_http_is_a_failure(serve: Callable[..., str]) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"SSH-2.0-x\r\n")

    with pytest.raises(FetchError, match=r"^unreachable$"):
        fetch_json(serve(answer))


def test_no_proxy_is_used(serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", serve(saying(b'"the proxy"')))
    assert fetch_json(serve(saying(b'"the issuer"'))) == "the issuer"


def test_a_certificate_without_a_trusted_authority_is_refused(
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
