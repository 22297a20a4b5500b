"""Web pages of the origins that may call: preflights, and answers that their scripts can read.

Source: Fetch standard, section 3.2, "CORS protocol". The page in a real browser runs where a
Chromium is installed; everything that it relies on is checked by HTTP, too.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.integration.support.browser import (
    ALLOWED_PAGE,
    EVIL,
    PROGRAMS,
    find_program,
    hop,
    visit,
)
from tests.integration.support.client import Client

PAGE: Final = "http://localhost:5173"
"""An origin that the stacks of this machine allow."""
OTHER: Final = "https://evil.example"
ALLOW: Final = "access-control-allow-origin"
FOR_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: str


def send(url: str, method: str, headers: dict[str, str], body: bytes | None = None) -> Reply:
    """Send a request as a browser would."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request(method, parts.path, body, headers)
        answer = connection.getresponse()
        lower = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, lower, answer.read().decode())
    finally:
        connection.close()


def preflight(url: str, origin: str, headers: str = "content-type,mcp-method") -> Reply:
    """The question of a browser before a page's POST."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": headers,
    }
    return send(url, "OPTIONS", asked)


@pytest.fixture(params=["buffered", "streamed"])
def guarded_endpoint(request: pytest.FixtureRequest, guarded: LocalStack) -> str:
    """The URL of `guarded` in either carrier."""
    if request.param == "buffered":
        return guarded.url
    gateway: Gateway = request.getfixturevalue("guarded_gateway")
    return gateway.url


def test_a_page_on_the_list_may_send_what_clients_send(endpoint: str) -> None:
    answer = preflight(endpoint, PAGE, "content-type,mcp-method,mcp-param-region")
    assert answer.status in (200, 204)
    assert answer.headers[ALLOW] == PAGE
    assert "Origin" in answer.headers["vary"]
    assert answer.headers["access-control-allow-methods"] == "POST, GET, DELETE"
    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert {"authorization", "mcp-session-id", "mcp-param-region"} <= set(allowed)


def test_a_preflight_needs_no_token(guarded_endpoint: str) -> None:
    """Browsers send it without credentials."""
    answer = preflight(guarded_endpoint, PAGE, "authorization,content-type")
    assert (answer.status in (200, 204), answer.headers[ALLOW]) == (True, PAGE)


@pytest.mark.parametrize("origin", [OTHER, "null", "http://localhost.evil.example:5173"])
def test_no_other_page_may_send_or_read_anything(endpoint: str, origin: str) -> None:
    asked = preflight(endpoint, origin)
    assert (asked.status, asked.headers.get(ALLOW)) == (403, None)
    body, headers = Client(endpoint).compose("tools/list")
    sent = send(endpoint, "POST", {**headers, "Origin": origin}, body)
    assert (sent.status, sent.headers.get(ALLOW)) == (403, None)


@pytest.mark.parametrize("token", [None, "t"], ids=["JSON", "an event stream"])
def test_an_answer_can_be_read(endpoint: str, token: str | None) -> None:
    meta = {} if token is None else {"progressToken": token}
    call = {"name": "narrate", "arguments": {"steps": 2}}
    body, headers = Client(endpoint).compose("tools/call", call, meta=meta)
    accept = {"Accept": "application/json, text/event-stream"}
    answer = send(endpoint, "POST", {**headers, **accept, "Origin": PAGE}, body)
    kind = "application/json" if token is None else "text/event-stream"
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert (answer.headers[ALLOW], answer.headers["vary"]) == (PAGE, "Origin")
    assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]


def test_the_challenge_can_be_read(guarded_endpoint: str) -> None:
    """API Gateway gives it without the function; the page has to learn where to get a token."""
    for headers in ({}, {"Authorization": "Bearer nonsense"}):
        answer = send(guarded_endpoint, "POST", {**headers, "Origin": PAGE}, b"{}")
        assert answer.status == 401
        assert answer.headers[ALLOW] == FOR_ALL
        assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
        assert answer.headers["www-authenticate"].startswith("Bearer ")


def test_the_metadata_can_be_read_with_a_protocol_version(guarded_endpoint: str) -> None:
    url = guarded_endpoint.removesuffix("mcp") + ".well-known/oauth-protected-resource/mcp"
    asked = preflight(url, OTHER, "mcp-protocol-version")
    assert (asked.status, asked.headers[ALLOW]) == (204, FOR_ALL)
    assert asked.headers["access-control-allow-headers"] == "Mcp-Protocol-Version"
    assert send(url, "GET", {"Origin": OTHER}).headers[ALLOW] == FOR_ALL


# ---- In a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium() -> str:
    found = find_program()
    if found is None:
        pytest.skip(f"no Chromium on the PATH: {', '.join(PROGRAMS)}")
    return found


def opened(chromium: str, host: str, endpoint: str, guarded: str, folder: Path) -> dict[str, Any]:
    """What the page at a host could read of each answer; a text where it could read nothing."""
    with hop(urlsplit(endpoint).port or 0, ALLOWED_PAGE) as serving:
        query = urlencode({"mcp": endpoint, "guarded": guarded})
        report = visit(chromium, f"http://{host}:{serving.port}/page?{query}", serving, folder)
    return {k: json.loads(text) if text.startswith("{") else text for k, text in report.items()}


def test_a_page_in_a_browser_is_a_client(
    chromium: str, endpoint: str, guarded: LocalStack, tmp_path: Path
) -> None:
    read = opened(chromium, "localhost", endpoint, guarded.url, tmp_path / "browser")
    assert [answer for answer in read.values() if isinstance(answer, str)] == []
    assert read["initialize"]["headers"]["mcp-session-id"].startswith("c1-")
    assert "narrate" in read["list"]["text"]
    assert read["stream"]["headers"]["content-type"] == "text/event-stream"
    assert "2 steps" in read["stream"]["text"]
    assert read["resume"]["status"] >= 400  # there is no such event; the page can read so
    assert read["end"]["status"] in (200, 204)
    for name in ("challenged", "refused"):
        assert read[name]["status"] == 401
        assert read[name]["headers"]["www-authenticate"].startswith("Bearer ")
    assert json.loads(read["metadata"]["text"])["authorization_servers"]


def test_a_foreign_page_in_a_browser_reads_nothing_but_what_is_public(
    chromium: str, endpoint: str, guarded: LocalStack, tmp_path: Path
) -> None:
    read = opened(chromium, EVIL, endpoint, guarded.url, tmp_path / "browser")
    of_the_server = ["initialize", "list", "stream", "resume", "end", "challenged", "refused"]
    assert [read[name] for name in of_the_server] == ["TypeError: Failed to fetch"] * 7
    assert json.loads(read["metadata"]["text"])["authorization_servers"]
