"""Which web pages may read the server's answers (Fetch standard, section 3.2, "CORS protocol")."""

from __future__ import annotations

from typing import Final

import pytest

from mcp_tasks.protocol.cors import EXPOSED, REQUEST_HEADERS, answer_headers, preflight_headers

ALLOWED: Final = ["https://app.example.com", "http://localhost:*"]


@pytest.mark.parametrize("origin", ["https://app.example.com", "http://localhost:5173"])
def test_an_answer_names_the_origin_that_may_read_it(origin: str) -> None:
    headers = answer_headers(origin, ALLOWED)
    assert headers["Access-Control-Allow-Origin"] == origin
    assert headers["Vary"] == "Origin"
    assert set(headers["Access-Control-Expose-Headers"].split(", ")) == set(EXPOSED)


@pytest.mark.parametrize(
    "origin",
    [None, "", "null", "https://evil.example", "https://app.example.com.evil.example"],
)
def test_no_other_origin_is_named(origin: str | None) -> None:
    assert answer_headers(origin, ALLOWED) == {"Vary": "Origin"}


def test_without_a_list_there_is_nothing_about_pages() -> None:
    assert answer_headers("https://app.example.com", []) == {}


def test_pages_read_what_clients_need() -> None:
    """The session's id, the challenge, and when to come again."""
    assert {"Mcp-Session-Id", "WWW-Authenticate", "Retry-After"} <= set(EXPOSED)


def test_pages_may_send_what_the_protocol_has() -> None:
    """A wildcard would not do: it does not cover Authorization (Fetch, 3.2.3)."""
    allowed = preflight_headers(None)["Access-Control-Allow-Headers"].split(", ")
    assert allowed == list(REQUEST_HEADERS)
    assert {
        "Authorization",
        "Content-Type",
        "Idempotency-Key",
        "Last-Event-ID",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Protocol-Version",
        "Mcp-Session-Id",
    } <= set(allowed)


def test_headers_that_repeat_arguments_are_allowed_by_their_names() -> None:
    asked = "content-type, mcp-param-region,Mcp-Param-Team, x-evil"
    allowed = preflight_headers(asked)["Access-Control-Allow-Headers"].split(", ")
    assert allowed[len(REQUEST_HEADERS) :] == ["mcp-param-region", "Mcp-Param-Team"]


def test_a_preflight_allows_the_methods_of_the_endpoint() -> None:
    assert preflight_headers(None)["Access-Control-Allow-Methods"] == "POST, GET, DELETE"
