"""One client's way from a 401 to the issuer's login page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .clients import OAUTH, Client, issuer_urls, metadata_urls, split
from .endpoint import Endpoint
from .web import Answer, Web


@dataclass(slots=True)
class Walk:
    """What the client asks for, and where that ends."""

    client: Client
    steps: list[str] = field(default_factory=list)
    """Each request with its answer, in order."""
    login: str = ""
    """The authorization endpoint, when the client finds it."""
    stop: str = ""
    """Why it stops."""
    remedy: str = ""
    """What to do about it."""
    notes: list[str] = field(default_factory=list)
    """What may stop it later."""

    def see(self, answer: Answer, why: str = "") -> None:
        """Note a request."""
        self.steps.append(f"GET {answer.url}{f' ({why})' if why else ''}: {answer.summary}")

    def halt(self, stop: str, remedy: str) -> Walk:
        """End without a login page."""
        self.stop, self.remedy = stop, remedy
        return self


def walk(client: Client, endpoint: Endpoint, web: Web) -> Walk:
    """Go the client's way."""
    way = Walk(client)
    named = endpoint.metadata_url
    if not client.probes and not named:
        return way.halt(
            "the 401 names no resource_metadata in WWW-Authenticate, and the client looks nowhere "
            "else",
            "send it: infra/gateway_responses.py does, unless something in front takes it away",
        )
    document = _resource(way, endpoint, web)
    if document is None or way.stop:
        return way
    servers = document.get("authorization_servers")
    if not isinstance(servers, list) or not servers or not isinstance(servers[0], str):
        return way.halt(
            "the document names no authorization_servers", "deploy with issuer=https://..."
        )
    return _issuer(way, servers[0], web)


def _resource(way: Walk, endpoint: Endpoint, web: Web) -> dict[str, Any] | None:
    """The document of the protected resource. None when the way goes on, or ends, without it."""
    client, named = way.client, endpoint.metadata_url
    urls = _document_urls(client, endpoint)
    others: list[str] = []
    for url in urls:
        answer = web.get(url)
        way.see(answer, "named by WWW-Authenticate" if url == named else "")
        if (document := answer.document) is None:
            continue
        resource = document.get("resource")
        if _is_resource(client, resource, endpoint.url):
            return document
        others.append(f"the resource of {url} is {resource!r}, and not the endpoint {endpoint.url}")
    if others:
        way.halt(
            others[0],
            "give clients the very URL of the output Endpoint, or deploy with url= as clients "
            "have it",
        )
        return None
    if client.guesses_origin:
        _guess(way, endpoint, web)
        return None
    way.halt("no document says who the issuer is", _remedy(endpoint, urls, web))
    return None


def _document_urls(client: Client, endpoint: Endpoint) -> list[str]:
    """Where the client looks for the document of the resource, in its order."""
    named = endpoint.metadata_url if client.follows_challenge else None
    if named and not client.keeps_looking:
        return [named]
    probed = metadata_urls(endpoint.url) if client.probes else []
    return list(dict.fromkeys([*([named] if named else []), *probed]))


def _is_resource(client: Client, resource: object, endpoint: str) -> bool:
    """Whether the document is this endpoint's (RFC 9728, section 3.3)."""
    if not isinstance(resource, str):
        return False
    (origin, path), (wanted, below) = split(resource), split(endpoint)
    if origin.lower() != wanted.lower():
        return False
    if client.exact_resource:
        return (urlsplit(resource).path or "/") == (urlsplit(endpoint).path or "/")
    return f"{below}/".startswith(f"{path}/")


def _guess(way: Walk, endpoint: Endpoint, web: Web) -> None:
    """What clients do that know of servers that are their own issuer (2025-03-26)."""
    origin, _ = split(endpoint.url)
    answer = web.get(origin + OAUTH)
    way.see(answer, "the endpoint's own host, as a guess")
    found = answer.document
    if found and found.get("authorization_endpoint"):
        way.login = str(found["authorization_endpoint"])
        return
    way.halt(
        f"it finds no document, takes {origin} for the issuer, and asks for {origin}/authorize",
        _remedy(endpoint, metadata_urls(endpoint.url), web),
    )


def _remedy(endpoint: Endpoint, urls: list[str], web: Web) -> str:
    if ".execute-api." in split(endpoint.url)[0].lower():
        return (
            "API Gateway's own host serves nothing outside of a stage. Deploy with "
            "domain=mcp.example.com hosted_zone=ID (aws route53 list-hosted-zones), or with url= "
            "of a CDN in front"
        )
    answers = [web.get(url) for url in urls]
    if any(answer.status == 200 for answer in answers):
        return "what is served there is no JSON object: let these paths lead to the API, too"
    if any(answer.status in (401, 403) for answer in answers):
        return "let these paths pass without a token: a firewall, CDN or authorizer refuses them"
    if failure := next((answer.failure for answer in answers if answer.failure), ""):
        return f"let clients reach it ({failure})"
    return (
        f"serve the document at {urls[0]}. The API has it: a CDN in front has to pass this path "
        "on, too, and auth=oauth has to be deployed with url= as clients have it"
    )


def _issuer(way: Walk, issuer: str, web: Web) -> Walk:
    """The issuer's document, and what it allows."""
    failures = []
    for url in issuer_urls(issuer, way.client):
        answer = web.get(url)
        way.see(answer)
        if answer.failure:
            failures.append(answer.failure)
        document = answer.document
        if document is None or not document.get("authorization_endpoint"):
            continue
        if document.get("issuer") != issuer:
            told = f"the document's issuer is {document.get('issuer')!r}, and not {issuer!r}"
            if way.client.checks_issuer:
                return way.halt(told, f"deploy with issuer={document.get('issuer')}, to the letter")
            way.notes.append(f"{told}: other clients refuse that")
        return _login(way, document)
    if failures:
        return way.halt(f"the issuer {issuer} cannot be reached", failures[0])
    only = "" if way.client.openid else " for OAuth, and this client does not read OpenID Connect's"
    return way.halt(
        f"the issuer {issuer} has no document{only}",
        "is issuer= to the letter what the issuer's tokens have as iss? An issuer without "
        "oauth-authorization-server serves clients of 2025-11-25 and later only"
        if not way.client.openid
        else "is issuer= to the letter what the issuer's tokens have as iss?",
    )


def _login(way: Walk, document: dict[str, Any]) -> Walk:
    methods = document.get("code_challenge_methods_supported")
    if methods is None:
        told = "the issuer's document has no code_challenge_methods_supported"
        if way.client.requires_pkce:
            return way.halt(
                f"{told}, so it seems to have no PKCE",
                "most clients go on. A client to the letter needs an issuer that says S256",
            )
        way.notes.append(f"{told}: a client to the letter stops here")
    elif "S256" not in methods:
        return way.halt("the issuer has no PKCE with S256", "turn it on at the issuer")
    cimd = document.get("client_id_metadata_document_supported")
    if not document.get("registration_endpoint") and not cimd:
        way.notes.append(
            "the issuer takes no registrations: give the client a client id that you have made"
        )
    way.login = str(document["authorization_endpoint"])
    return way
