"""What the doctor prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from .clients import CLIENTS, OAUTH, OPENID, Client, split
from .endpoint import REQUESTS, Endpoint
from .walk import Walk, walk
from .web import LOOPBACK, Web

OPEN: Final = (
    "It answers without a token (auth=none): clients connect, and there is no issuer to find."
)


def examine(url: str, web: Web) -> tuple[list[str], bool]:
    """Walk all clients' ways. Returns the lines to print, and whether all is well."""
    endpoint = Endpoint.ask(url, web)
    lines = [f"{url}, without a token", *_asked(endpoint), ""]
    if endpoint.open:
        return [*lines, OPEN, *_probes(endpoint, web)], True
    if endpoint.trouble:
        return [*lines, f"STOP: {endpoint.trouble}"], False
    well = True
    for client in CLIENTS:
        if client.remote and urlsplit(url).hostname in LOOPBACK:
            lines += [client.name, "  cannot reach a server on this machine", ""]
            continue
        way = walk(client, endpoint, web)
        well = well and not way.stop
        lines += [*_way(client, way), ""]
    return [*lines, *_probes(endpoint, web)], well


def _asked(endpoint: Endpoint) -> Iterator[str]:
    for version, answer in endpoint.answers.items():
        challenge = answer.headers.get("WWW-Authenticate")
        named = f", WWW-Authenticate: {challenge}" if challenge else ""
        yield f"  POST {REQUESTS[version]} ({version}): {answer.summary}{named}"


def _way(client: Client, way: Walk) -> Iterator[str]:
    yield client.name
    for number, step in enumerate(way.steps, 1):
        yield f"  {number}. {step}"
    if way.stop:
        yield f"  STOPS: {way.stop}"
        yield f"  WHAT TO DO: {way.remedy}"
    else:
        yield f"  logs in at {way.login}"
    for note in way.notes:
        yield f"  note: {note}"


def _probes(endpoint: Endpoint, web: Web) -> Iterator[str]:
    """Documents that the endpoint's host does not have: clients ask, and 404 sends them on."""
    origin, path = split(endpoint.url)
    bad = []
    for url in (
        *(f"{origin}{kind}" for kind in (OAUTH, OPENID)),
        *(f"{origin}{kind}{path}" for kind in (OAUTH, OPENID)),
        f"{origin}{path}{OPENID}",
    ):
        answer = web.get(url)
        if answer.status != 404 and answer.document is None:
            bad.append(f"  GET {url}: {answer.summary}")
    if bad:
        yield "Documents that are not there. 404 sends a client on; what follows may stop it:"
        yield from bad
