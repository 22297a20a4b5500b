"""Failures of the network are words, and never a trace."""

from __future__ import annotations

import socket
import ssl
import urllib.error
from collections.abc import Iterator

import pytest

from operations.doctor.report import examine
from operations.doctor.web import MAX_BYTES, Web, words_of
from tests.unit.operations.doctor.site import Site


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def test_nothing_listens(site: Site) -> None:
    url = f"{site.origin}/mcp"
    site.close()
    lines, well = examine(url, Web())
    assert not well
    assert lines[-1].startswith("STOP: no answer: nothing listens at 127.0.0.1")
    assert not any("Traceback" in line for line in lines)


def test_a_server_that_does_not_answer_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        answer = Web(timeout=0.2).get(f"http://127.0.0.1:{silent.getsockname()[1]}/x")
    assert answer.failure == "no answer: 127.0.0.1 did not answer in time"


def test_a_server_that_hangs_up(site: Site) -> None:
    site.serve("/x", "hang up")
    assert "broke the connection off" in Web().get(f"{site.origin}/x").failure


def test_a_server_without_tls(site: Site) -> None:
    answer = Web().get(site.origin.replace("http:", "https:") + "/x")
    assert answer.failure.startswith("no answer: TLS with 127.0.0.1 failed")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "does not resolve (DNS)"),
        (ConnectionRefusedError(111, "refused"), "connection refused"),
        (ConnectionResetError(104, "reset"), "broke the connection off"),
        (TimeoutError("timed out"), "did not answer in time"),
        (OSError(101, "Network is unreachable"), "Network is unreachable"),
    ],
)
def test_a_failure_is_named(error: Exception, words: str) -> None:
    assert words in words_of(urllib.error.URLError(error), "a.example")
    assert words in words_of(error, "a.example")


def test_a_certificate_that_is_not_accepted() -> None:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = "certificate has expired"
    assert words_of(urllib.error.URLError(error), "a.example") == (
        "no answer: the certificate of a.example is not accepted: certificate has expired"
    )


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://mcp.example.com/mcp", "http:// is taken for this machine only"),
        ("file:///etc/passwd", "it is no https:// URL"),
        ("https://", "it is no https:// URL"),
        ("", "it is no https:// URL"),
    ],
)
def test_what_no_client_asks_for_is_not_asked_for(url: str, refusal: str) -> None:
    """A document names URLs: of files, too, if it likes."""
    assert refusal in Web().get(url).failure


def test_a_redirect_is_followed(site: Site) -> None:
    site.serve("/old", {}, 302, Location="/new")
    site.serve("/new", {"found": True})
    assert Web().get(f"{site.origin}/old").document == {"found": True}


def test_an_answer_is_read_up_to_a_bound(site: Site) -> None:
    site.serve("/x", "x" * (MAX_BYTES + 1))
    assert len(Web().get(f"{site.origin}/x").body) == MAX_BYTES


@pytest.mark.parametrize("body", ["", "[1]", "null", "{", "\u00fc"])
def test_what_is_no_json_object_is_no_document(site: Site, body: str) -> None:
    site.serve("/x", body, Content_Type="application/json")
    answer = Web().get(f"{site.origin}/x")
    assert answer.document is None
    assert answer.summary == "200 application/json"
