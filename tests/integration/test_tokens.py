"""Access tokens that are accepted and refused, and the challenges.

Sources: authorization/index.mdx, "Access Token Usage" and "Error Handling"; RFC 6750; RFC 9728.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from local.deployment import LocalStack
from local.gateway import Gateway
from mcp_tasks.authorization.jwks import MIN_FETCH_INTERVAL_SECONDS
from tests.integration.support.canaries import Logs
from tests.integration.support.client import Client
from tests.integration.support.issuer import Issuer
from tests.integration.support.stacks import SCOPE
from tests.integration.support.traces import Traces

MAX_INSTANCES: Final = 10
"""Of the authorizer (infra/deployment_profiles.py)."""

LIST: Final = "tools/list"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response with its headers as they were sent."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def challenge(self) -> dict[str, str]:
        """The parameters of the challenge, in the scheme `Bearer`."""
        text = self.headers["www-authenticate"]
        assert re.fullmatch(r'Bearer [a-z_]+="[^"\\]*"(, [a-z_]+="[^"\\]*")*', text), text
        return dict(re.findall(r'([a-z_]+)="([^"]*)"', text))

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error; the gateway knows no id."""
        found: dict[str, Any] = json.loads(self.body)
        assert found["jsonrpc"] == "2.0"
        error: dict[str, Any] = found["error"]
        assert isinstance(error["message"], str)
        return error


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The emulator's API Gateway, or the local gateway that streams."""

    url: str
    names: bool
    """Whether challenges can have the authorizer's context; the emulator's cannot."""

    def send(
        self,
        authorization: Sequence[str] = (),
        *,
        method: str = LIST,
        params: dict[str, Any] | None = None,
        query: str = "",
        version: str | None = None,
    ) -> Reply:
        """Send a correct request with these `Authorization` headers."""
        body, headers = Client(self.url).compose(method, params)
        if version is not None:
            message = json.loads(body)
            del message["params"]["_meta"]
            body, headers = json.dumps(message).encode(), {"MCP-Protocol-Version": version}
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        try:
            connection.putrequest("POST", parts.path + query)
            for name, value in headers.items():
                connection.putheader(name, value)
            for value in authorization:
                connection.putheader("Authorization", value)
            connection.putheader("Accept", "application/json, text/event-stream")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            lower = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, lower, answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="module", params=["emulator", "gateway"])
def endpoint(request: pytest.FixtureRequest, guarded: LocalStack) -> Endpoint:
    """The emulator's API Gateway and the local gateway."""
    if request.param == "emulator":
        return Endpoint(guarded.url, names=False)
    gateway: Gateway = request.getfixturevalue("guarded_gateway")
    return Endpoint(gateway.url, names=True)


@pytest.fixture
def server_not_reached(
    endpoint: Endpoint, guarded: LocalStack, issuer: Issuer, aws: Any
) -> Iterator[None]:
    """Check that the server's function got no request but the last one of the test."""
    logs, traces = Logs(guarded, aws), Traces(guarded, aws)
    before = traces.rows(), traces.executions()
    yield
    assert endpoint.send(bearer(issuer.mint(scope=SCOPE))).status == 200
    deadline = time.monotonic() + 10
    while not (answered := _answered(logs)):
        assert time.monotonic() < deadline, "not even that is in the logs"
        time.sleep(0.1)
    assert len(answered) == 1
    assert (traces.rows(), traces.executions()) == before


def _answered(logs: Logs) -> list[str]:
    """The API function's log lines about requests, through either endpoint."""
    groups = logs.groups().items()
    lines = [line for name, group in groups if "/mcp-guarded/Api" in name for line in group]
    _, gateway = logs.files()
    return [line for line in (*lines, *gateway.splitlines()) if '"request answered"' in line]


def metadata_url(guarded: LocalStack) -> str:
    """The metadata URL that challenges name."""
    return guarded.url.removesuffix("/mcp") + "/.well-known/oauth-protected-resource/mcp"


def bearer(token: str) -> list[str]:
    return [f"Bearer {token}"]


def test_a_valid_token_is_accepted(endpoint: Endpoint, issuer: Issuer) -> None:
    for algorithm in ("RS256", "ES256"):
        reply = endpoint.send(bearer(issuer.mint(algorithm, scope=SCOPE)))
        assert reply.status == 200
        assert "www-authenticate" not in reply.headers
        assert {tool["name"] for tool in json.loads(reply.body)["result"]["tools"]} >= {"say"}


def test_the_scheme_is_known_in_any_case(endpoint: Endpoint, issuer: Issuer) -> None:
    """RFC 9110, section 11.1."""
    assert endpoint.send([f"bEARER {issuer.mint(scope=SCOPE)}"]).status == 200


def refused(reply: Reply, guarded: LocalStack) -> None:
    """RFC 6750, section 3; RFC 9728, section 5.1."""
    assert reply.status == 401
    assert reply.challenge == {"scope": SCOPE, "resource_metadata": metadata_url(guarded)}
    assert reply.error["code"] == -32600


@pytest.mark.usefixtures("server_not_reached")
def test_no_invalid_token_is_accepted(
    endpoint: Endpoint, guarded: LocalStack, issuer: Issuer
) -> None:
    bad = issuer.bad_tokens()
    assert len(bad) > 20
    for token in bad.values():
        reply = endpoint.send(bearer(token))
        refused(reply, guarded)
        assert token.encode() not in reply.body


@pytest.mark.usefixtures("server_not_reached")
@pytest.mark.parametrize(
    "authorization",
    [[], [""], ["Bearer"], ["Bearer "], ["Basic YTpi"], ["{token}"], ["Bearer {token} {token}"]],
    ids=str,
)
def test_a_request_without_a_token_is_refused(
    endpoint: Endpoint, guarded: LocalStack, issuer: Issuer, authorization: list[str]
) -> None:
    token = issuer.mint(scope=SCOPE)
    refused(endpoint.send([value.format(token=token) for value in authorization]), guarded)


@pytest.mark.usefixtures("server_not_reached")
@pytest.mark.parametrize(
    "query", ["?access_token={token}", "?access_token=", "?a=b&access_token=x"]
)
def test_a_token_in_the_query_does_not_count(
    endpoint: Endpoint, guarded: LocalStack, issuer: Issuer, query: str
) -> None:
    """authorization/index.mdx, "Token Requirements"; with a good header, too: RFC 6750, section 2
    ("MUST NOT use more than one method")."""
    token = issuer.mint(scope=SCOPE)
    refused(endpoint.send(query=query.format(token=token)), guarded)
    refused(endpoint.send(bearer(token), query=query.format(token=token)), guarded)


@pytest.mark.usefixtures("server_not_reached")
def test_two_tokens_are_refused(endpoint: Endpoint, guarded: LocalStack, issuer: Issuer) -> None:
    """Two readers could take two different callers from them."""
    alice, bob = issuer.mint(scope=SCOPE), issuer.mint(scope=SCOPE, sub="bob")
    refused(endpoint.send(bearer(alice) + bearer(bob)), guarded)
    refused(endpoint.send(bearer(alice) + bearer("garbage")), guarded)
    refused(endpoint.send(bearer("garbage") + bearer(alice)), guarded)


@pytest.mark.usefixtures("server_not_reached")
@pytest.mark.parametrize(
    ("granted", "method", "params", "needed"),
    [
        ("", LIST, None, "mcp"),
        ("other", LIST, None, "mcp"),
        ("mcpx", "tools/call", {"name": "say", "arguments": {"text": "a"}}, "mcp"),
        ("mcp", "tools/call", {"name": "administer", "arguments": {}}, "mcp admin"),
        ("admin", "tools/call", {"name": "administer", "arguments": {}}, "mcp admin"),
        (
            "mcp admin",
            "tools/call",
            {"name": "publish_report", "arguments": {}},
            "mcp admin reports:write",
        ),
    ],
)
def test_a_missing_scope_is_a_challenge_that_names_all_scopes(
    endpoint: Endpoint,
    guarded: LocalStack,
    issuer: Issuer,
    granted: str,
    method: str,
    params: dict[str, Any] | None,
    needed: str,
) -> None:
    """authorization/index.mdx, "Runtime Insufficient Scope Errors"."""
    reply = endpoint.send(bearer(issuer.mint(scope=granted)), method=method, params=params)
    assert reply.status == 403
    assert reply.error["code"] == -32600
    if endpoint.names:
        challenge = {
            "error": "insufficient_scope",
            "scope": needed,
            "resource_metadata": metadata_url(guarded),
        }
        assert reply.challenge.items() >= challenge.items()


def test_a_token_with_the_missing_scope_is_accepted(endpoint: Endpoint, issuer: Issuer) -> None:
    params = {"name": "administer", "arguments": {}}
    token = issuer.mint(scope="mcp admin")
    reply = endpoint.send(bearer(token), method="tools/call", params=params)
    assert reply.status == 200


def test_scopes_are_checked_without_an_mcp_name_header(
    endpoint: Endpoint, guarded: LocalStack, issuer: Issuer
) -> None:
    """Clients of earlier revisions. The function sends the challenge, which API Gateway renames."""
    params = {"name": "administer", "arguments": {}}
    for scopes, status in (("mcp", 403), ("mcp admin", 200)):
        reply = endpoint.send(
            bearer(issuer.mint(scope=scopes)),
            method="tools/call",
            params=params,
            version="2025-11-25",
        )
        assert reply.status == status
        if status == 403:
            assert reply.error["data"] == {"requiredScopes": ["mcp", "admin"]}
            assert reply.challenge["scope"] == "mcp admin"


def test_a_tool_cannot_be_called_under_another_tools_name(
    endpoint: Endpoint, issuer: Issuer
) -> None:
    """The authorizer reads the header and the function the body: they have to agree."""
    body, headers = Client(endpoint.url).compose(
        "tools/call", {"name": "administer", "arguments": {}}
    )
    headers["Mcp-Name"] = "say"
    headers["Authorization"] = f"Bearer {issuer.mint(scope='mcp')}"
    answer = Client(endpoint.url).post(body, headers)
    assert answer.status in (400, 403)


def test_a_token_of_a_rotated_key_is_accepted_at_once(
    guarded: LocalStack, guarded_gateway: Gateway, issuer: Issuer
) -> None:
    """An instance fetches the keys again for an unknown key id, at most every half minute. The
    test waits for an instance that may fetch, as between any two real rotations."""
    doors = [Endpoint(guarded.url, names=False), Endpoint(guarded_gateway.url, names=True)]
    old = bearer(issuer.mint(scope=SCOPE))
    assert [endpoint.send(old).status for endpoint in doors] == [200, 200]
    while time.monotonic() - issuer.asked_at <= MIN_FETCH_INTERVAL_SECONDS:
        time.sleep(0.5)
    issuer.rotate()
    new = bearer(issuer.mint(scope=SCOPE))
    assert [endpoint.send(new).status for endpoint in doors * 5] == [200] * 10


def test_unknown_key_ids_do_not_cause_a_fetch_each(endpoint: Endpoint, issuer: Issuer) -> None:
    """Senders choose key ids: they must not make the server flood the issuer."""
    before = issuer.fetches.total()
    for number in range(60):
        header = {"kid": f"key-{number}"}
        assert endpoint.send(bearer(issuer.mint(scope=SCOPE, header=header))).status == 401
    # Each instance fetches the discovery document and the keys once in half a minute.
    assert issuer.fetches.total() - before <= 2 * MAX_INSTANCES


def test_the_metadata_names_the_issuer(
    endpoint: Endpoint, guarded: LocalStack, issuer: Issuer
) -> None:
    """RFC 9728, section 3. Clients try the challenge's URL first."""
    reply = endpoint.send()
    at = reply.challenge["resource_metadata"]
    own = endpoint.url.removesuffix("/mcp") + urlsplit(at).path.partition("/v1")[2]
    for url in (own, own.removesuffix("/mcp")):
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            document = json.load(answer)
        assert document["resource"] == guarded.url
        assert document["authorization_servers"] == [issuer.url]
        assert document["scopes_supported"] == [SCOPE]
        assert document["bearer_methods_supported"] == ["header"]
