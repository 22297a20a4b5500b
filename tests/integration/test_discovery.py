"""Discovery over HTTP: what the gateway serves, what it has not, and what clients make of it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from operations.doctor.clients import CLIENTS
from operations.doctor.endpoint import Endpoint
from operations.doctor.report import examine
from operations.doctor.walk import walk
from operations.doctor.web import Web
from tests.integration.support.issuer import Issuer

LETTER = CLIENTS[0]


@pytest.fixture(params=["buffered", "streamed"])
def guarded_url(
    request: pytest.FixtureRequest, guarded: LocalStack, guarded_gateway: Gateway
) -> str:
    """The URL of `guarded` (`auth=oauth`) in either carrier."""
    return guarded.url if request.param == "buffered" else guarded_gateway.url


def _ask(url: str, method: str, body: bytes | None = None) -> tuple[int, Message, bytes]:
    request = urllib.request.Request(url, body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
        "/.well-known/oauth-protected-resource/other",
        "/.well-known",
        "/other",
    ],
)
def test_what_is_not_there_is_404_in_json(guarded_url: str, path: str) -> None:
    """Below the stage; at a domain, these are the paths of its root."""
    status, headers, body = _ask(guarded_url.removesuffix("/mcp") + path, "GET")
    assert status == 404, body
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["error"]["code"] == -32600


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_method_that_the_endpoint_lacks_is_405(guarded_url: str, method: str) -> None:
    status, headers, body = _ask(guarded_url, method)
    assert status == 405, body
    assert headers["Allow"] == "POST, GET, DELETE"


def test_a_registration_at_the_server_itself_is_404(guarded_url: str) -> None:
    """Clients of 2025-03-26 take the server for its own issuer."""
    url = guarded_url.removesuffix("/mcp") + "/register"
    assert _ask(url, "POST", b'{"redirect_uris": []}')[0] in (404, 415)


def test_the_doctor_follows_the_challenge_to_the_issuer(
    guarded: LocalStack, issuer: Issuer
) -> None:
    web = Web()
    endpoint = Endpoint.ask(guarded.url, web)
    assert [answer.status for answer in endpoint.answers.values()] == [401, 401]
    way = walk(LETTER, endpoint, web)
    assert way.steps[0].endswith("(named by WWW-Authenticate): 200")
    assert (way.stop, way.login) == ("", f"{issuer.url}/authorize")


def test_the_doctor_finds_an_open_server_open(stack: LocalStack) -> None:
    lines, well = examine(stack.url, Web())
    assert well, lines
    assert any("without a token (auth=none)" in line for line in lines)
