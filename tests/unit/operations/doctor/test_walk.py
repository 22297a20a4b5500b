"""`make doctor` walks the clients' ways: against servers that are set up right, and wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from operations.doctor.clients import CLIENTS, Client, issuer_urls, metadata_urls
from operations.doctor.endpoint import Endpoint
from operations.doctor.report import examine
from operations.doctor.walk import Walk, walk
from operations.doctor.web import Answer, Web
from tests.unit.operations.doctor.site import Site

RESOURCE = "/.well-known/oauth-protected-resource"
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
BY_NAME = {client.name: client for client in CLIENTS}
LETTER, OLD, PYTHON, TYPESCRIPT, CLAUDE, VS_CODE = CLIENTS

EXACT = {LETTER.name, OLD.name, VS_CODE.name}


@pytest.fixture
def site() -> Iterator[Site]:
    """The endpoint's host."""
    site = Site()
    yield site
    site.close()


@pytest.fixture
def issuer() -> Iterator[Site]:
    """The issuer's host."""
    site = Site()
    yield site
    site.close()


def good(site: Site, issuer: Site, path: str = "/mcp", realm: str = "") -> str:
    """Set both up as a deployment with a domain is. Returns the endpoint's URL."""
    url = f"{site.origin}{path}"
    document = {"resource": url, "authorization_servers": [issuer.origin + realm]}
    site.serve(f"{RESOURCE}{path}", document)
    site.serve(RESOURCE, document)
    challenge(site, f"{site.origin}{RESOURCE}{path}", path)
    issuer.serve(f"{OAUTH}{realm}", metadata(issuer, realm))
    return url


def challenge(site: Site, named: str | None, path: str = "/mcp") -> None:
    """Let the endpoint answer 401."""
    value = f'Bearer scope="a b", resource_metadata="{named}"' if named else "Bearer"
    site.serve(f"POST {path}", {"error": "x"}, 401, WWW_Authenticate=value)


def metadata(site: Site, realm: str = "", changed: dict[str, Any] | None = None) -> dict[str, Any]:
    """The document of an issuer."""
    return {
        "issuer": site.origin + realm,
        "authorization_endpoint": f"{site.origin}{realm}/authorize",
        "registration_endpoint": f"{site.origin}{realm}/register",
        "code_challenge_methods_supported": ["S256"],
        **(changed or {}),
    }


def ways(url: str) -> dict[str, Walk]:
    """How each client fares."""
    web = Web()
    endpoint = Endpoint.ask(url, web)
    return {client.name: walk(client, endpoint, web) for client in CLIENTS}


def stopped(url: str) -> set[str]:
    """The clients that do not get to the login page."""
    return {name for name, way in ways(url).items() if way.stop}


def way_of(client: Client, url: str, web: Web | None = None) -> Walk:
    web = web or Web()
    return walk(client, Endpoint.ask(url, web), web)


# ---- Set up right --------------------------------------------------------------------------------


@pytest.mark.parametrize("realm", ["", "/realms/x"])
def test_every_client_finds_the_issuer_of_a_good_set_up(
    site: Site, issuer: Site, realm: str
) -> None:
    url = good(site, issuer, realm=realm)
    for name, way in ways(url).items():
        assert (way.stop, way.notes) == ("", []), name
        assert way.login == f"{issuer.origin}{realm}/authorize"


def test_the_report_says_that_all_is_well(site: Site, issuer: Site) -> None:
    """claude.ai does not reach this machine, and is not asked to."""
    url = good(site, issuer)
    lines, well = examine(url, Web())
    assert well
    assert f"{url}, without a token" in lines
    text = "\n".join(lines)
    assert "POST server/discover (2026-07-28): 401 application/json, WWW-Authenticate: " in text
    assert f"  1. GET {site.origin}{RESOURCE}/mcp (named by WWW-Authenticate): 200" in lines
    assert text.count(f"  logs in at {issuer.origin}/authorize") == len(CLIENTS) - 1
    assert "  cannot reach a server on this machine" in lines
    assert "STOP" not in text


def test_the_first_requests_are_those_of_both_revisions(site: Site, issuer: Site) -> None:
    Endpoint.ask(good(site, issuer), Web())
    assert site.asked == ["server/discover /mcp", "initialize /mcp"]


def test_a_document_is_fetched_once_for_all_clients(site: Site, issuer: Site) -> None:
    ways(good(site, issuer))
    assert site.asked.count(f"{RESOURCE}/mcp") == 1
    assert issuer.asked == [OAUTH]


def test_an_open_server_needs_no_issuer(site: Site) -> None:
    """As `make up` has it."""
    site.serve("POST /v1/mcp", {"jsonrpc": "2.0", "id": 1, "result": {}})
    lines, well = examine(f"{site.origin}/v1/mcp", Web())
    assert well
    assert "It answers without a token (auth=none)" in "\n".join(lines)


# ---- The orders ----------------------------------------------------------------------------------


def test_without_a_challenge_the_inserted_path_comes_first(site: Site, issuer: Site) -> None:
    """authorization-server-discovery.mdx, "Protected Resource Metadata Discovery Requirements"."""
    url = good(site, issuer, "/x/mcp")
    del site.replies[f"{RESOURCE}/x/mcp"]
    challenge(site, None, "/x/mcp")
    assert not way_of(LETTER, url).stop
    assert site.asked[-2:] == [f"{RESOURCE}/x/mcp", RESOURCE]


def test_the_challenge_s_url_comes_first_and_for_most_clients_alone(
    site: Site, issuer: Site
) -> None:
    url = good(site, issuer)
    challenge(site, f"{site.origin}/elsewhere")
    found = ways(url)
    assert {name for name, way in found.items() if way.stop} == {
        client.name for client in (LETTER, OLD, TYPESCRIPT, VS_CODE)
    }
    assert [step.partition(":")[0] for step in found[LETTER.name].steps] == ["GET http"]
    assert f"{site.origin}/elsewhere (named by" in found[PYTHON.name].steps[0]
    assert f"GET {site.origin}{RESOURCE}/mcp" in found[PYTHON.name].steps[1]


def test_an_issuer_with_a_path_is_looked_for_in_three_places() -> None:
    """authorization-server-discovery.mdx, "Authorization Server Metadata Discovery"."""
    assert list(issuer_urls("https://a.example/tenant1", LETTER)) == [
        "https://a.example/.well-known/oauth-authorization-server/tenant1",
        "https://a.example/.well-known/openid-configuration/tenant1",
        "https://a.example/tenant1/.well-known/openid-configuration",
    ]
    assert list(issuer_urls("https://a.example/", LETTER)) == [
        "https://a.example/.well-known/oauth-authorization-server",
        "https://a.example/.well-known/openid-configuration",
    ]
    assert list(issuer_urls("https://a.example/t", OLD)) == [
        "https://a.example/.well-known/oauth-authorization-server/t"
    ]
    assert metadata_urls("https://a.example/mcp") == [
        f"https://a.example{RESOURCE}/mcp",
        f"https://a.example{RESOURCE}",
    ]


def test_an_openid_issuer_serves_all_but_clients_of_2025_06_18(site: Site, issuer: Site) -> None:
    """Cognito's document is at the path's end only."""
    url = good(site, issuer, realm="/pool")
    del issuer.replies[f"{OAUTH}/pool"]
    issuer.serve(f"/pool{OPENID}", metadata(issuer, "/pool"))
    assert stopped(url) == {OLD.name}
    assert "does not read OpenID" in ways(url)[OLD.name].stop


# ---- Set up wrong --------------------------------------------------------------------------------


def test_api_gateway_s_own_host_serves_only_who_follows_the_challenge(
    site: Site, issuer: Site
) -> None:
    """The document is below the stage, and the rest of the host is 403."""
    url = good(site, issuer, "/v1/mcp")
    site.serve(f"/v1{RESOURCE}/mcp", {**site.replies[RESOURCE][2]})
    challenge(site, f"{site.origin}/v1{RESOURCE}/mcp", "/v1/mcp")
    for path in (f"{RESOURCE}/v1/mcp", RESOURCE, OAUTH, OPENID):
        site.serve(path, {"message": "Forbidden"}, 403)
    assert stopped(url) == {CLAUDE.name}
    way = ways(url)[CLAUDE.name]
    assert [step.rpartition(": ")[2] for step in way.steps] == ["403 application/json"] * 3
    assert f"takes {site.origin} for the issuer" in way.stop
    assert "without a token: a firewall, CDN or authorizer refuses" in way.remedy
    text = "\n".join(examine(url, Web())[0])
    assert f"  GET {site.origin}{OPENID}: 403 application/json" in text


def test_a_host_of_api_gateway_s_is_told_to_get_a_domain(issuer: Site) -> None:
    """No request leaves this machine: what was fetched is in the cache."""
    url = "https://a1b2.execute-api.eu-west-1.amazonaws.com/v1/mcp"
    web = Web()
    host = url.removesuffix("/v1/mcp")
    for path in (f"{RESOURCE}/v1/mcp", RESOURCE, OAUTH):
        web._fetched[host + path] = Answer(host + path, 403)
    way = walk(CLAUDE, Endpoint(url, {}), web)
    assert "domain=mcp.example.com hosted_zone=ID" in way.remedy


@pytest.mark.parametrize(
    ("resource", "halted"),
    [
        ("/", EXACT),
        ("/mc", set(BY_NAME)),
        ("/mcp/", EXACT),
        ("/other", set(BY_NAME)),
        (None, set(BY_NAME)),
    ],
)
def test_a_document_of_another_resource_is_not_taken(
    site: Site, issuer: Site, resource: str | None, halted: set[str]
) -> None:
    """RFC 9728, section 3.3: the very URL. Some clients take one that the endpoint begins with."""
    url = good(site, issuer)
    document = {
        "resource": resource and site.origin + resource,
        "authorization_servers": [issuer.origin],
    }
    site.serve(f"{RESOURCE}/mcp", document)
    site.serve(RESOURCE, document)
    assert stopped(url) == halted
    for name in halted:
        assert "and not the endpoint" in ways(url)[name].stop


def test_a_document_without_issuer_is_the_end(site: Site, issuer: Site) -> None:
    url = good(site, issuer)
    site.serve(f"{RESOURCE}/mcp", {"resource": url, "authorization_servers": []})
    assert stopped(url) == set(BY_NAME)


def test_a_document_of_another_issuer_stops_who_checks(site: Site, issuer: Site) -> None:
    """RFC 8414, section 3.3; Entra's `{tenantid}` and a slash too many are usual reasons."""
    url = good(site, issuer)
    issuer.serve(OAUTH, metadata(issuer, changed={"issuer": f"{issuer.origin}/"}))
    assert stopped(url) == {LETTER.name, PYTHON.name}
    found = ways(url)
    assert f"deploy with issuer={issuer.origin}/" in found[LETTER.name].remedy
    assert "other clients refuse that" in found[TYPESCRIPT.name].notes[0]


def test_an_issuer_that_does_not_say_pkce_stops_who_goes_by_the_letter(
    site: Site, issuer: Site
) -> None:
    """security-considerations.mdx: "MCP clients MUST refuse to proceed"."""
    url = good(site, issuer)
    document = metadata(issuer)
    del document["code_challenge_methods_supported"]
    issuer.serve(OAUTH, document)
    assert stopped(url) == {LETTER.name}
    issuer.serve(OAUTH, metadata(issuer, changed={"code_challenge_methods_supported": ["plain"]}))
    assert stopped(url) == set(BY_NAME)


def test_an_issuer_that_takes_no_registration_is_noted(site: Site, issuer: Site) -> None:
    url = good(site, issuer)
    none = {"registration_endpoint": None}
    issuer.serve(OAUTH, metadata(issuer, changed=none))
    assert "takes no registrations" in ways(url)[PYTHON.name].notes[0]
    cimd = {"client_id_metadata_document_supported": True}
    issuer.serve(OAUTH, metadata(issuer, changed=none | cimd))
    assert ways(url)[PYTHON.name].notes == []


def test_an_issuer_without_a_document(site: Site, issuer: Site) -> None:
    url = good(site, issuer)
    issuer.replies.clear()
    assert stopped(url) == set(BY_NAME)
    assert "is issuer= to the letter" in ways(url)[PYTHON.name].remedy


def test_a_login_page_in_place_of_the_document_is_told(site: Site, issuer: Site) -> None:
    """A single-page application answers every path with its own page."""
    url = good(site, issuer)
    for path in (f"{RESOURCE}/mcp", RESOURCE, OAUTH):
        site.serve(path, "<html>")
    way = way_of(LETTER, url)
    assert way.steps[0].endswith(": 200 text/html")
    assert "no JSON object" in way.remedy


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (403, {"x-amzn-ErrorType": "MissingAuthenticationTokenException"}, "wants signatures"),
        (404, {}, "with /mcp at its end"),
        (403, {}, "and no 401"),
        (
            401,
            {"x-amzn-remapped-www-authenticate": "Bearer"},
            "API Gateway has renamed it",
        ),
    ],
)
def test_an_endpoint_that_asks_for_no_login_is_told_why(
    site: Site, status: int, headers: dict[str, str], said: str
) -> None:
    site.replies["POST /mcp"] = (status, headers, {})
    lines, well = examine(f"{site.origin}/mcp", Web())
    assert not well
    assert said in lines[-1]
    assert lines[-1].startswith("STOP: ")
