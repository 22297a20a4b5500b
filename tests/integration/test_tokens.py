"""Who comes in by an access token, and who does not (authorization/index.mdx, "Access Token Usage"
and "Error Handling"; RFC 6750; RFC 9728)."""

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
from tests.integration.support.client import Client
from tests.integration.support.issuer import Issuer
from tests.integration.support.leaks import Logs
from tests.integration.support.stacks import SCOPE
from tests.integration.support.traces import Traces

MAX_INSTANCES: Final = 10
"""Of the authorizer (infra/profile.py)."""

LIST: Final = "tools/list"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, with its headers as they were sent."""

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
class Door:
    """A way in: the emulator's API Gateway, or the local one that streams."""

    url: str
    names: bool
    """Whether it knows what an authorizer says in its context; the emulator does not."""

    def knock(
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
def door(request: pytest.FixtureRequest, guarded: LocalStack) -> Door:
    """Both ways in."""
    if request.param == "emulator":
        return Door(guarded.url, names=False)
    gateway: Gateway = request.getfixturevalue("guarded_gateway")
    return Door(gateway.url, names=True)


@pytest.fixture
def unreached(door: Door, guarded: LocalStack, issuer: Issuer, aws: Any) -> Iterator[None]:
    """Nothing of what a test sends reaches the server: it answers nobody but who comes in last."""
    logs, traces = Logs(guarded, aws), Traces(guarded, aws)
    before = traces.rows(), traces.executions()
    yield
    assert door.knock(bearer(issuer.mint(scope=SCOPE))).status == 200
    deadline = time.monotonic() + 10
    while not (answered := _answered(logs)):
        assert time.monotonic() < deadline, "not even that is in the logs"
        time.sleep(0.1)
    assert len(answered) == 1
    assert (traces.rows(), traces.executions()) == before


def _answered(logs: Logs) -> list[str]:
    """The lines about requests that the stack's api function wrote, behind either door."""
    groups = logs.groups().items()
    lines = [line for name, group in groups if "/mcp-guarded/Api" in name for line in group]
    _, gateway = logs.files()
    return [line for line in (*lines, *gateway.splitlines()) if '"request answered"' in line]


def metadata_url(guarded: LocalStack) -> str:
    """What challenges name."""
    return guarded.url.removesuffix("/mcp") + "/.well-known/oauth-protected-resource/mcp"


def bearer(token: str) -> list[str]:
    return [f"Bearer {token}"]


def test_a_good_token_comes_in(door: Door, issuer: Issuer) -> None:
    for algorithm in ("RS256", "ES256"):
        reply = door.knock(bearer(issuer.mint(algorithm, scope=SCOPE)))
        assert reply.status == 200
        assert "www-authenticate" not in reply.headers
        assert {tool["name"] for tool in json.loads(reply.body)["result"]["tools"]} >= {"say"}


def test_the_scheme_is_known_in_any_case(door: Door, issuer: Issuer) -> None:
    """RFC 9110, section 11.1."""
    assert door.knock([f"bEARER {issuer.mint(scope=SCOPE)}"]).status == 200


def refused(reply: Reply, guarded: LocalStack) -> None:
    """RFC 6750, section 3; RFC 9728, section 5.1."""
    assert reply.status == 401
    assert reply.challenge == {"scope": SCOPE, "resource_metadata": metadata_url(guarded)}
    assert reply.error["code"] == -32600


@pytest.mark.usefixtures("unreached")
def test_no_bad_token_comes_in(door: Door, guarded: LocalStack, issuer: Issuer) -> None:
    bad = issuer.bad_tokens()
    assert len(bad) > 20
    for token in bad.values():
        reply = door.knock(bearer(token))
        refused(reply, guarded)
        assert token.encode() not in reply.body


@pytest.mark.usefixtures("unreached")
@pytest.mark.parametrize(
    "authorization",
    [[], [""], ["Bearer"], ["Bearer "], ["Basic YTpi"], ["{token}"], ["Bearer {token} {token}"]],
    ids=str,
)
def test_nobody_comes_in_without_a_token(
    door: Door, guarded: LocalStack, issuer: Issuer, authorization: list[str]
) -> None:
    token = issuer.mint(scope=SCOPE)
    refused(door.knock([value.format(token=token) for value in authorization]), guarded)


@pytest.mark.usefixtures("unreached")
@pytest.mark.parametrize(
    "query", ["?access_token={token}", "?access_token=", "?a=b&access_token=x"]
)
def test_a_token_in_the_query_is_none(
    door: Door, guarded: LocalStack, issuer: Issuer, query: str
) -> None:
    """authorization/index.mdx, "Token Requirements"; with a good header, too: RFC 6750, section 2
    ("MUST NOT use more than one method")."""
    token = issuer.mint(scope=SCOPE)
    refused(door.knock(query=query.format(token=token)), guarded)
    refused(door.knock(bearer(token), query=query.format(token=token)), guarded)


@pytest.mark.usefixtures("unreached")
def test_two_tokens_are_none(door: Door, guarded: LocalStack, issuer: Issuer) -> None:
    """Whoever reads the first and whoever reads the last would let in two different callers."""
    alice, bob = issuer.mint(scope=SCOPE), issuer.mint(scope=SCOPE, sub="bob")
    refused(door.knock(bearer(alice) + bearer(bob)), guarded)
    refused(door.knock(bearer(alice) + bearer("garbage")), guarded)
    refused(door.knock(bearer("garbage") + bearer(alice)), guarded)


@pytest.mark.usefixtures("unreached")
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
def test_a_scope_too_few_is_a_challenge_that_names_all(
    door: Door,
    guarded: LocalStack,
    issuer: Issuer,
    granted: str,
    method: str,
    params: dict[str, Any] | None,
    needed: str,
) -> None:
    """authorization/index.mdx, "Runtime Insufficient Scope Errors"."""
    reply = door.knock(bearer(issuer.mint(scope=granted)), method=method, params=params)
    assert reply.status == 403
    assert reply.error["code"] == -32600
    if door.names:
        challenge = {
            "error": "insufficient_scope",
            "scope": needed,
            "resource_metadata": metadata_url(guarded),
        }
        assert reply.challenge.items() >= challenge.items()


def test_a_step_up_comes_in(door: Door, issuer: Issuer) -> None:
    params = {"name": "administer", "arguments": {}}
    token = issuer.mint(scope="mcp admin")
    reply = door.knock(bearer(token), method="tools/call", params=params)
    assert reply.status == 200


def test_a_scope_is_asked_for_of_clients_that_name_no_tool_in_a_header(
    door: Door, guarded: LocalStack, issuer: Issuer
) -> None:
    """Of earlier revisions. The function's own challenge, which API Gateway renames on AWS."""
    params = {"name": "administer", "arguments": {}}
    for scopes, status in (("mcp", 403), ("mcp admin", 200)):
        reply = door.knock(
            bearer(issuer.mint(scope=scopes)),
            method="tools/call",
            params=params,
            version="2025-11-25",
        )
        assert reply.status == status
        if status == 403:
            assert reply.error["data"] == {"requiredScopes": ["mcp", "admin"]}
            assert reply.challenge["scope"] == "mcp admin"


def test_a_tool_is_not_called_under_the_name_of_another(door: Door, issuer: Issuer) -> None:
    """The authorizer reads the header, the function the body: they have to agree."""
    body, headers = Client(door.url).compose("tools/call", {"name": "administer", "arguments": {}})
    headers["Mcp-Name"] = "say"
    headers["Authorization"] = f"Bearer {issuer.mint(scope='mcp')}"
    answer = Client(door.url).post(body, headers)
    assert answer.status in (400, 403)


def test_a_rotated_key_comes_in_at_once(
    guarded: LocalStack, guarded_gateway: Gateway, issuer: Issuer
) -> None:
    """Keys are fetched again for one that is not known; by each instance at most every half minute,
    so there has to be one without a fetch, as between any two rotations."""
    doors = [Door(guarded.url, names=False), Door(guarded_gateway.url, names=True)]
    old = bearer(issuer.mint(scope=SCOPE))
    assert [door.knock(old).status for door in doors] == [200, 200]
    while time.monotonic() - issuer.asked_at <= MIN_FETCH_INTERVAL_SECONDS:
        time.sleep(0.5)
    issuer.rotate()
    new = bearer(issuer.mint(scope=SCOPE))
    assert [door.knock(new).status for door in doors * 5] == [200] * 10


def test_unknown_keys_make_nobody_fetch_for_each_of_them(door: Door, issuer: Issuer) -> None:
    """A key id is the sender's to choose: it must not make the server a hammer."""
    before = issuer.fetches.total()
    for number in range(60):
        header = {"kid": f"key-{number}"}
        assert door.knock(bearer(issuer.mint(scope=SCOPE, header=header))).status == 401
    # Of each instance one discovery and one set of keys, in half a minute.
    assert issuer.fetches.total() - before <= 2 * MAX_INSTANCES


def test_the_metadata_says_where_tokens_come_from(
    door: Door, guarded: LocalStack, issuer: Issuer
) -> None:
    """RFC 9728, section 3; the challenge's address is the first that a client tries."""
    reply = door.knock()
    at = reply.challenge["resource_metadata"]
    own = door.url.removesuffix("/mcp") + urlsplit(at).path.partition("/v1")[2]
    for url in (own, own.removesuffix("/mcp")):
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            document = json.load(answer)
        assert document["resource"] == guarded.url
        assert document["authorization_servers"] == [issuer.url]
        assert document["scopes_supported"] == [SCOPE]
        assert document["bearer_methods_supported"] == ["header"]
