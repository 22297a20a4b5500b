"""Which browsers' pages may call (streamable-http.mdx, "Security & Endpoint")."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import pytest

from mcp_tasks.protocol.errors import ProtocolError
from mcp_tasks.protocol.origin import check

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
    check(origin, ALLOWED)


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
        check(origin, ALLOWED)
    assert caught.value.status == HTTPStatus.FORBIDDEN


def test_no_page_may_call_unless_one_is_named() -> None:
    check(None, [])
    with pytest.raises(ProtocolError):
        check("https://app.example.com", [])
