"""Sessions: what they know, whom they belong to, and what they cost."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.server import sessions
from mcp_tasks.server.sessions import LIFETIME_MS
from mcp_tasks.tasks.task import now_ms
from tests.unit.support.aws import SESSIONS, TABLE
from tests.unit.support.in_session import SessionClient
from tests.unit.support.stack import Stack
from tests.unit.support.whole import HANDSHAKE

INVALID_REQUEST: Final = -32600
ALICE: Final = "arn:aws:iam::111122223333:user/alice"
MALLORY: Final = "arn:aws:iam::111122223333:user/mallory"
each_version = pytest.mark.parametrize("version", HANDSHAKE)


@each_version
def test_initialize_gives_a_session_of_this_cell_without_a_write(
    stack: Stack, version: str
) -> None:
    client = SessionClient(stack, version)
    assert (client.session_id or "").startswith("c1-")
    assert stack.calls.operations == ["get_secret_value"]


def test_two_sessions_have_different_ids(stack: Stack) -> None:
    assert SessionClient(stack).session_id != SessionClient(stack).session_id


@each_version
def test_delete_ends_a_session(stack: Stack, version: str) -> None:
    client = SessionClient(stack, version)
    assert client.request("tools/list").status == 200
    assert client.end().status == 204
    for reply in (client.request("tools/list"), client.end(), client.resume("x")):
        assert (reply.status, reply.code) in ((404, INVALID_REQUEST), (400, INVALID_REQUEST))
    assert client.request("tools/list").status == 404
    assert client.end().status == 404


@pytest.mark.parametrize(
    "session_id", ["", "x", "c1-", "c1-AAAA", "c2-AAAA", "c1-" + "A" * 7000, "c1-" + "A" * 120]
)
def test_an_unknown_session_is_not_found(stack: Stack, session_id: str) -> None:
    client = SessionClient(stack, session_id=session_id)
    reply = client.request("tools/list")
    assert (reply.status, reply.code) == (404, INVALID_REQUEST)
    assert "initialize" in reply.response["error"]["message"]
    assert client.end().status == 404
    assert set(stack.calls.operations) <= {"get_secret_value"}


def test_a_session_is_its_principals_alone(stack: Stack) -> None:
    alice = SessionClient(stack, user_arn=ALICE)
    thief = SessionClient(stack, user_arn=MALLORY, session_id=alice.session_id)
    for reply in (thief.request("ping"), thief.request("tools/list"), thief.end()):
        assert reply.status == 404
    assert alice.request("tools/list").status == 200


def test_a_session_of_another_key_is_not_found(stack: Stack) -> None:
    """After the deployment's secret was replaced, clients begin anew."""
    client = SessionClient(stack)
    other = "another key, of at least thirty-two characters"
    stack.calls.instead["get_secret_value"] = lambda **arguments: {"SecretString": other}
    stack.serve()
    assert client.request("ping").status == 404


def test_a_session_id_expires(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SessionClient(stack)
    monkeypatch.setattr(sessions, "now_ms", lambda: now_ms() + LIFETIME_MS - 60_000)
    assert client.request("ping").status == 200
    monkeypatch.setattr(sessions, "now_ms", lambda: now_ms() + LIFETIME_MS + 60_000)
    assert client.request("ping").status == 404


def test_a_second_initialize_in_a_session_is_refused(stack: Stack) -> None:
    client = SessionClient(stack)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}
    reply = client.request("initialize", params)
    assert (reply.status, reply.code) == (400, INVALID_REQUEST)
    assert client.request("ping").status == 200


@pytest.mark.parametrize("method", ["ping", "tasks/get", "initialize"])
def test_what_needs_nothing_of_its_session_reads_nothing(stack: Stack, method: str) -> None:
    client = SessionClient(stack)
    stack.calls.forget()
    client.request(method)
    client.notify("notifications/initialized")
    assert SESSIONS not in tables(stack)


@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/list", {}), ("tools/call", {"name": "echo", "arguments": {"text": "a"}})],
)
def test_what_needs_its_session_reads_it_once(
    stack: Stack, method: str, params: dict[str, Any]
) -> None:
    client = SessionClient(stack)
    stack.calls.forget()
    client.request(method, params)
    assert tables(stack).count(SESSIONS) == 1


def test_a_client_without_a_session_costs_what_it_cost(stack: Stack) -> None:
    client = SessionClient(stack)
    client.session_id = None
    stack.calls.forget()
    assert client.request("tools/list").status == 200
    assert stack.calls.made == []


def test_the_level_is_remembered_for_other_instances(stack: Stack) -> None:
    client = SessionClient(stack)
    assert client.request("logging/setLevel", {"level": "error"}).result == {}
    stack.serve()
    item = stack.deployment.session_table.read
    (key,) = {call.arguments["Key"]["pk"]["S"] for call in session_calls(stack)}
    assert item(key.removeprefix("session#")).level == "error"


def test_a_level_cannot_be_set_in_a_session_that_has_ended(stack: Stack) -> None:
    client = SessionClient(stack)
    client.end()
    assert client.request("logging/setLevel", {"level": "error"}).status == 404


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_a_client_that_names_no_revision_is_served_by_its_sessions(
    stack: Stack, version: str
) -> None:
    client = SessionClient(stack, version)
    reply = client.request("tools/list", headers={"MCP-Protocol-Version": None})
    tools = {tool["name"]: tool for tool in reply.result["tools"]}
    assert tools
    assert ("icons" in reply.result["tools"][0]) is False


def test_get_and_delete_without_a_session_are_not_allowed(stack: Stack) -> None:
    client = SessionClient(stack)
    client.session_id = None
    for reply in (client.resume(None), client.end()):
        assert reply.status == 405
        assert reply.headers["Allow"] == "POST"


def tables(stack: Stack) -> list[str]:
    """The table of each call to DynamoDB since the calls were forgotten."""
    return [call.arguments.get("TableName", TABLE) for call in stack.calls.made]


def session_calls(stack: Stack) -> list[Any]:
    return [call for call in stack.calls.made if call.arguments.get("TableName") == SESSIONS]
