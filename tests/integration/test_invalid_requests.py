"""Invalid requests get a JSON-RPC error, write no row and start no execution."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.support.client import REVISION, TASKS, WITH_TASKS, Client
from tests.integration.support.traces import Traces

META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": WITH_TASKS,
}
HEADERS = {
    "MCP-Protocol-Version": REVISION,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "estimate_savings",
}
ARGUMENTS = {"monthly": 100, "years": 10, "share_of_stocks": 0.5}


def call(**changes: Any) -> dict[str, Any]:
    """A request that would create a task, with changes. `...` removes a member."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "estimate_savings", "arguments": ARGUMENTS, "_meta": META},
        **changes,
    }
    return {key: value for key, value in message.items() if value is not ...}


def call_with_meta(**changes: Any) -> dict[str, Any]:
    """The same request with changes to `_meta`."""
    meta = {
        f"io.modelcontextprotocol/{key}": value
        for key, value in {
            "protocolVersion": REVISION,
            "clientCapabilities": WITH_TASKS,
            **changes,
        }.items()
        if value is not ...
    }
    params = {"name": "estimate_savings", "arguments": ARGUMENTS, "_meta": meta}
    return call(params=params)


@pytest.fixture(autouse=True)
def _no_row_and_no_execution(traces: Traces) -> Iterator[None]:
    before = (traces.rows(), traces.executions())
    yield
    assert (traces.rows(), traces.executions()) == before


BODIES: list[tuple[str, bytes | object, int, int]] = [
    ("nothing", b"", 400, -32700),
    ("not JSON", b"{", 400, -32700),
    # API Gateway passes bodies on as text and replaces bytes that are not UTF-8, on AWS too. Unit
    # tests show that the function refuses such bytes.
    ("not UTF-8", b'{"jsonrpc": "\xff\xfe"}', 400, -32600),
    ("a number that JSON lacks", b'{"jsonrpc": "2.0", "id": NaN}', 400, -32700),
    ("nested too deeply", b"[" * 90_000, 400, -32700),
    ("too many values", b"[" + b"{}," * 100_000 + b"1]", 400, -32700),
    ("half a surrogate pair", b'{"jsonrpc": "2.0", "id": "\\ud800"}', 400, -32700),
    ("a batch", [call()], 400, -32600),
    ("a string", "hello", 400, -32600),
    ("no jsonrpc", call(jsonrpc=...), 400, -32600),
    ("a wrong jsonrpc", call(jsonrpc="1.0"), 400, -32600),
    ("a null id", call(id=None), 400, -32600),
    ("a boolean id", call(id=True), 400, -32600),
    ("a fractional id", call(id=1.5), 400, -32600),
    ("no method", call(method=...), 400, -32600),
    ("a response", {"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600),
    ("params that are a list", call(params=[]), 400, -32600),
    ("no params", call(params=...), 400, -32602),
    ("no _meta", call(params={"name": "hello"}), 400, -32602),
    ("a _meta that is a list", call(params={"name": "hello", "_meta": []}), 400, -32602),
    ("no revision", call_with_meta(protocolVersion=...), 400, -32602),
    ("a revision that is a number", call_with_meta(protocolVersion=20260728), 400, -32602),
    ("no capabilities", call_with_meta(clientCapabilities=...), 400, -32602),
    ("capabilities that are a list", call_with_meta(clientCapabilities=[]), 400, -32602),
    ("a revision unlike the header's", call_with_meta(protocolVersion="2025-11-25"), 400, -32020),
    ("a method unlike the header's", call(method="tools/list"), 400, -32020),
    ("a name unlike the header's", call(params={"name": "hello", "_meta": META}), 400, -32020),
    ("more than 1 MB", b'"' + b"x" * 1_100_000 + b'"', 413, -32600),
]


@pytest.mark.parametrize(("what", "body", "status", "code"), BODIES, ids=[b[0] for b in BODIES])
def test_an_invalid_body_is_refused(
    client: Client, what: str, body: bytes | object, status: int, code: int
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post(data, HEADERS)
    assert (answer.status, answer.error["code"]) == (status, code), answer.body
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "headers",
    [
        {"MCP-Protocol-Version": None},
        {"MCP-Protocol-Version": "2025-11-25"},
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "Tools/Call"},
        {"Mcp-Name": None},
        {"Mcp-Name": "Estimate_savings"},
        {"Mcp-Name": "=?base64?????=?="},
    ],
    ids=str,
)
def test_headers_that_differ_from_the_body_are_refused(
    client: Client, headers: dict[str, str | None]
) -> None:
    params = {"name": "estimate_savings", "arguments": ARGUMENTS}
    answer = client.request("tools/call", params, headers)
    assert (answer.status, answer.error["code"]) == (400, -32020)


def test_arguments_that_are_wrong_in_every_way_get_a_short_answer(client: Client) -> None:
    """Before their errors were bounded, the answer to these had several megabytes."""
    wrong: dict[str, Any] = {f"unknown {number}": {} for number in range(40_000)}
    answer = client.request("tools/call", {"name": "hello", "arguments": wrong})
    assert (answer.status, answer.result["isError"]) == (200, True)
    assert len(answer.body) < 8 * 1024


def test_an_encoded_name_is_decoded_before_it_is_compared(client: Client) -> None:
    headers = {"Mcp-Name": "=?base64?aGVsbG8=?="}
    answer = client.request("tools/call", {"name": "hello", "arguments": {"name": "x"}}, headers)
    assert answer.status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Mcp-Param-Region": "eu", "Mcp-Param-Priority": "42.0"}, 200),
        ({"mcp-param-region": "eu", "MCP-PARAM-PRIORITY": "42"}, 200),
        ({"Mcp-Param-Region": "=?base64?ZXU=?=", "Mcp-Param-Priority": "42"}, 200),
        ({"Mcp-Param-Region": "eu"}, 400),
        ({"Mcp-Param-Region": "us", "Mcp-Param-Priority": "42"}, 400),
        ({"Mcp-Param-Region": "eu", "Mcp-Param-Priority": "41"}, 400),
    ],
    ids=str,
)
def test_mirrored_parameters_have_to_match(
    client: Client, headers: dict[str, str], status: int
) -> None:
    params = {"name": "routed", "arguments": {"region": "eu", "priority": 42}}
    answer = client.request("tools/call", params, headers)
    assert answer.status == status
    if status == 400:
        assert answer.error["code"] == -32020


def test_an_unsupported_revision_is_answered_with_the_supported_ones(client: Client) -> None:
    body = json.dumps(call_with_meta(protocolVersion="v999.0.0")).encode()
    answer = client.post(body, {**HEADERS, "MCP-Protocol-Version": "v999.0.0"})
    assert (answer.status, answer.error["code"]) == (400, -32022)
    supported = [REVISION, "2025-11-25", "2025-06-18", "2025-03-26"]
    assert answer.error["data"] == {"supported": supported, "requested": "v999.0.0"}


@pytest.mark.parametrize("params", [None, [], {}, {"protocolVersion": 1, "capabilities": {}}])
def test_a_malformed_initialize_is_refused(client: Client, params: object) -> None:
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = client.send(json.dumps(message).encode())
    assert answer.error["code"] in (-32602, -32600)


@pytest.mark.parametrize(
    "method", ["ping", "initialize", "tasks/result", "tasks/list", "no/such", "resources/subscribe"]
)
def test_an_unknown_method_is_not_found(client: Client, method: str) -> None:
    answer = client.request(method)
    assert (answer.status, answer.error["code"]) == (404, -32601)


def test_the_error_names_an_unknown_tool(client: Client) -> None:
    answer = client.call("no_such_tool")
    assert (answer.status, answer.error["code"]) == (400, -32602)
    assert "no_such_tool" in answer.error["message"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "monthly"),
        ({"monthly": "100", "years": 1}, "monthly"),
        ({"monthly": 1, "years": 1.5}, "years"),
        ({"monthly": 1, "years": 61}, "years"),
        ({"monthly": -1, "years": 1}, "monthly"),
        ({"monthly": 1, "years": 1, "extra": 1}, "extra"),
    ],
    ids=str,
)
def test_arguments_that_break_the_schema_give_a_tool_error_that_names_the_field(
    client: Client, arguments: dict[str, Any], field: str
) -> None:
    """tools.mdx, "Error Handling": a model can correct its arguments, so it sees the error."""
    result = client.call("estimate_savings", **arguments).result
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert field in result["content"][0]["text"]


@pytest.mark.parametrize("arguments", [[], "x", 1, None], ids=str)
def test_arguments_that_are_no_object_are_invalid_params(client: Client, arguments: object) -> None:
    params = {"name": "estimate_savings", "arguments": arguments}
    answer = client.request("tools/call", params)
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.parametrize(
    "task_id",
    [
        "c1-00000000000000000000000000000000",
        "c2-00000000000000000000000000000000",
        "",
        "c1",
        "../../etc/passwd",
        "c1-0000000000000000000000000000000g",
        "x" * 10_000,
        7,
        None,
        ["c1-00000000000000000000000000000000"],
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_id_that_names_no_task_is_invalid(
    client: Client, method: str, task_id: object
) -> None:
    # A header line is limited to less than 10 kB. The server accepts a missing Mcp-Name here.
    headers = {"Mcp-Name": None} if isinstance(task_id, str) and len(task_id) > 1000 else {}
    answer = client.request(method, {"taskId": task_id, "inputResponses": {}}, headers)
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_task_methods_need_the_extension(plain_client: Client, method: str) -> None:
    params = {"taskId": "c1-00000000000000000000000000000000", "inputResponses": {}}
    answer = plain_client.request(method, params)
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert answer.error["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}


def test_a_request_from_a_foreign_origin_is_refused(client: Client) -> None:
    headers = {**HEADERS, "Origin": "https://evil.example"}
    answer = client.post(json.dumps(call()).encode(), headers)
    assert answer.status == 403
    assert "id" not in answer.message, "refused before the body was read"
    assert client.request("tools/list", headers={"Origin": "http://localhost:5173"}).status == 200


def test_a_notification_is_accepted_without_an_answer(client: Client) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = client.post(json.dumps(message).encode())
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_only_post_is_allowed(client: Client, method: str) -> None:
    answer = client.send(b"", method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "POST"


def test_session_ids_are_ignored_and_never_sent(client: Client) -> None:
    headers = {"Mcp-Session-Id": "abc", "Last-Event-ID": "7"}
    answer = client.request("tools/list", headers=headers)
    assert answer.status == 200
    assert "Mcp-Session-Id" not in answer.headers
