"""Which browsers' pages may call, and under which names a server answers
(streamable-http.mdx, "Security & Endpoint").
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import pytest

from mcp_tasks.protocol.errors import ProtocolError
from mcp_tasks.protocol.origin import check_host, check_origin

ALLOWED: Final = ["https://app.example.com", "https://*.example.org", "http://localhost:*"]


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "https://app.example.com",
        "https://a.example.org",
        "https://a.b.example.org",
        "http://localhost:3000",
    ],
)
def test_a_page_on_the_list_may_call(origin: str | None) -> None:
    check_origin(origin, ALLOWED)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://APP.example.com",
        "https://app.example.com.evil.example",
        "https://evil.example/app.example.com",
        "https://example.org",
        "https://example.org.evil.example",
        "http://localhost",
        "https://localhost:3000",
    ],
)
def test_any_other_page_may_not(origin: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_origin(origin, ALLOWED)
    assert caught.value.status == HTTPStatus.FORBIDDEN


def test_no_page_may_call_unless_one_is_named() -> None:
    check_origin(None, [])
    with pytest.raises(ProtocolError):
        check_origin("https://app.example.com", [])


HOSTS: Final = ["localhost:*", "*.execute-api.example.com", "mcp.example.com:8443"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost:3000",
        "LOCALHOST:3000",
        "abc.execute-api.example.com",
        "Mcp.Example.com:8443",
    ],
)
def test_a_host_on_the_list_is_answered_in_any_case(host: str) -> None:
    """RFC 9110, section 4.2.3: the host is case-insensitive."""
    check_host(host, HOSTS)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "localhost",
        "localhost.evil.example:3000",
        "evil.example",
        "evil.example:3000",
        "mcp.example.com",
        "mcp.example.com:8443.evil.example",
        "execute-api.example.com",
    ],
)
def test_any_other_host_is_not(host: str | None) -> None:
    """A page that resolved its own name to this machine (DNS rebinding) sends that name."""
    with pytest.raises(ProtocolError) as caught:
        check_host(host, HOSTS)
    assert caught.value.status == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("host", [None, "", "anything.example"])
def test_every_host_is_answered_unless_one_is_named(host: str | None) -> None:
    check_host(host, [])


def test_only_a_star_stands_for_more_than_itself() -> None:
    """An IPv6 address is written in brackets, which are a set of characters to a shell."""
    check_origin("http://[::1]:3000", ["http://[::1]:*"])
    for pattern in ("http://[:1]:3000", "http://a.example.co?", "http://a.example.[a-z]om"):
        with pytest.raises(ProtocolError):
            check_origin("http://a.example.com", [pattern])
