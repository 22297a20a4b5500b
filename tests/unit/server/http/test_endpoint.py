"""Bad requests: each gets a clear JSON-RPC error, leaves no row and starts nothing.

Rules: basic/index.mdx ("Messages", "Error Codes"), basic/versioning.mdx,
basic/transports/streamable-http.mdx, server/tools.mdx ("Error Handling"), tasks.md.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mcp_tasks.limits import Limits
from mcp_tasks.protocol.headers import Headers
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.call import Call, Complete, Method
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http import exchange
from mcp_tasks.server.http.api_gateway import from_api_gateway, to_api_gateway
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.event_stream import written
from mcp_tasks.server.http.messages import HttpRequest
from mcp_tasks.server.response_channel import response_size
from mcp_tasks.server.server_methods import ServerMethods
from mcp_tasks.server_identity import ServerIdentity
from mcp_tasks.tasks.questions import FormQuestion, open_ask
from mcp_tasks.tasks.task import ANYONE, now_ms
from tests import wire
from tests.unit.support.aws import Calls
from tests.unit.support.stack import (
    CAPABILITIES_KEY,
    ENVIRONMENT,
    REVISION,
    VERSION_KEY,
    WITH_TASKS,
    Answer,
    Stack,
    meta,
    mirrored,
)

MAX_BODY = Limits().max_body_bytes

PARSE, INVALID, NO_METHOD, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
MISMATCH, CAPABILITY, VERSION = -32020, -32021, -32022
SUPPORTED: Final = [REVISION, "2025-11-25", "2025-06-18", "2025-03-26"]
OLD_CLIENT: Final = {"name": "old", "version": "1"}
UNKNOWN_ID: Final = f"c1-{'0' * 32}"
LIST: Final = mirrored("tools/list", {})


def body(**changes: Any) -> str:
    """A good `tools/list`, changed; None leaves a member out."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}
    return json.dumps({k: v for k, v in {**message, **changes}.items() if v is not ...})


def body_with_meta(**changes: Any) -> str:
    """A good `tools/list` with another `_meta`."""
    keys = {"version": VERSION_KEY, "capabilities": CAPABILITIES_KEY}
    changed = {keys.get(name, name): value for name, value in changes.items()}
    kept = {k: v for k, v in {**meta(), **changed}.items() if v is not ...}
    return body(params={"_meta": kept})


@dataclass(frozen=True)
class Bad:
    """A request, and what answers it."""

    body: str | bytes
    status: int
    code: int
    says: str = ""
    headers: dict[str, Any] = field(default_factory=lambda: dict(LIST))
    request_id: Any = None


UNREADABLE: Final = {
    "empty": Bad("", 400, PARSE, "not JSON"),
    "not JSON": Bad("{", 400, PARSE, "not JSON"),
    "two messages": Bad(body() + body(), 400, PARSE, "not JSON"),
    "not UTF-8": Bad(b'{"jsonrpc": "\xff"}', 400, PARSE, "UTF-8"),
    "UTF-16": Bad(body().encode("utf-16"), 400, PARSE, "UTF-8"),
    "a byte order mark": Bad(body().encode("utf-8-sig"), 400, PARSE, "not JSON"),
    "NaN": Bad(body(id=1)[:-1] + ', "x": NaN}', 400, PARSE, "number"),
    "Infinity": Bad(body(id=1)[:-1] + ', "x": -Infinity}', 400, PARSE, "number"),
    # Python reads it as infinity, which it can then not write as JSON again.
    "a float beyond double": Bad(body(id=1)[:-1] + ', "x": 1e999}', 400, PARSE, "number"),
    "an integer of 5000 digits": Bad(body()[:-1] + f', "x": {"9" * 5000}}}', 400, PARSE, "number"),
    "40,000 brackets": Bad("[" * 40_000, 400, PARSE, "nested"),
    "40,000 nested arrays": Bad(
        body()[:-1] + ', "x": ' + "[" * 40_000 + "]" * 40_000 + "}", 400, PARSE, "nested"
    ),
    "40,000 nested objects": Bad(
        body()[:-1] + ', "x": ' + '{"a":' * 40_000 + "1" + "}" * 40_000 + "}",
        400,
        PARSE,
        "nested",
    ),
    "half a surrogate pair": Bad(body(method="\ud800"), 400, PARSE, "surrogate"),
    "half a surrogate pair in a key": Bad(body(**{"\udfff": 1}), 400, PARSE, "surrogate"),
}

NOT_A_REQUEST: Final = {
    "a batch": Bad(f"[{body()}]", 400, INVALID, "Batches"),
    "an empty batch": Bad("[]", 400, INVALID, "Batches"),
    "a string": Bad('"tools/list"', 400, INVALID, "object"),
    "null": Bad("null", 400, INVALID, "object"),
    "no jsonrpc": Bad(body(jsonrpc=...), 400, INVALID, "jsonrpc", request_id=1),
    "jsonrpc 1.0": Bad(body(jsonrpc="1.0"), 400, INVALID, "jsonrpc", request_id=1),
    "jsonrpc as a number": Bad(body(jsonrpc=2.0), 400, INVALID, "jsonrpc", request_id=1),
    "a null id": Bad(body(id=None), 400, INVALID, "id"),
    "a bool id": Bad(body(id=True), 400, INVALID, "id"),
    "a float id": Bad(body(id=1.5), 400, INVALID, "id"),
    "a long id": Bad(body(id="a" * 1001), 400, INVALID, "1000 characters"),
    "an object id": Bad(body(id={}), 400, INVALID, "id"),
    "a result": Bad(
        '{"jsonrpc":"2.0","id":7,"result":{}}', 400, INVALID, "responses", request_id=7
    ),
    "an error": Bad(
        '{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":""}}',
        400,
        INVALID,
        "responses",
        request_id="a",
    ),
    "no method": Bad(body(method=...), 400, INVALID, "method", request_id=1),
    "an empty method": Bad(body(method=""), 400, INVALID, "method", request_id=1),
    "a method that is no string": Bad(body(method=1), 400, INVALID, "method", request_id=1),
    "params as a list": Bad(body(params=[]), 400, INVALID, "params", request_id=1),
    "params as null": Bad(body(params=None), 400, INVALID, "params", request_id=1),
}

BAD_META: Final = {
    "no params": Bad(body(params=...), 400, PARAMS, "_meta", request_id=1),
    "no _meta": Bad(body(params={}), 400, PARAMS, "_meta", request_id=1),
    "_meta as a list": Bad(body(params={"_meta": []}), 400, PARAMS, "_meta", request_id=1),
    "no version": Bad(body_with_meta(version=...), 400, PARAMS, "protocolVersion", request_id=1),
    "a null version": Bad(
        body_with_meta(version=None), 400, PARAMS, "protocolVersion", request_id=1
    ),
    "a version as a number": Bad(
        body_with_meta(version=20260728), 400, PARAMS, "protocolVersion", request_id=1
    ),
    "no capabilities": Bad(
        body_with_meta(capabilities=...), 400, PARAMS, "clientCapabilities", request_id=1
    ),
    "null capabilities": Bad(
        body_with_meta(capabilities=None), 400, PARAMS, "clientCapabilities", request_id=1
    ),
    "capabilities as a list": Bad(
        body_with_meta(capabilities=["tasks"]), 400, PARAMS, "clientCapabilities", request_id=1
    ),
    "clientInfo as a string": Bad(
        body_with_meta(**{"io.modelcontextprotocol/clientInfo": "me"}),
        400,
        PARAMS,
        "clientInfo",
        request_id=1,
    ),
    "another revision": Bad(
        body_with_meta(version="2025-11-25"),
        400,
        VERSION,
        "2025-11-25 begins with initialize",
        {**LIST, "MCP-Protocol-Version": "2025-11-25"},
        request_id=1,
    ),
    "a revision to come": Bad(
        body_with_meta(version="2027-01-01"),
        400,
        VERSION,
        "Unsupported",
        {**LIST, "MCP-Protocol-Version": "2027-01-01"},
        request_id=1,
    ),
    "no revision at all": Bad(
        body_with_meta(version=""),
        400,
        VERSION,
        "Unsupported",
        {**LIST, "MCP-Protocol-Version": ""},
        request_id=1,
    ),
    "neither version, but a modern header": Bad(
        body(params={}), 400, PARAMS, "_meta", {"Mcp-Method": "tools/list"}, request_id=1
    ),
    "a revision to come, in its header only": Bad(
        body(params={}),
        400,
        VERSION,
        "Unsupported",
        {**LIST, "MCP-Protocol-Version": "2027-01-01"},
        request_id=1,
    ),
}

HEADERS: Final = {
    "no version header": Bad(
        body(),
        400,
        MISMATCH,
        "MCP-Protocol-Version",
        {**LIST, "MCP-Protocol-Version": None},
        request_id=1,
    ),
    "another version header": Bad(
        body(),
        400,
        MISMATCH,
        "MCP-Protocol-Version",
        {**LIST, "MCP-Protocol-Version": "2025-11-25"},
        request_id=1,
    ),
    "a version header sent twice": Bad(
        body(),
        400,
        MISMATCH,
        "2 times",
        {**LIST, "MCP-Protocol-Version": [REVISION, REVISION]},
        request_id=1,
    ),
    "no method header": Bad(
        body(), 400, MISMATCH, "Mcp-Method", {**LIST, "Mcp-Method": None}, request_id=1
    ),
    "another method header": Bad(
        body(), 400, MISMATCH, "Mcp-Method", {**LIST, "Mcp-Method": "tools/call"}, request_id=1
    ),
    "a method header in capitals": Bad(
        body(), 400, MISMATCH, "Mcp-Method", {**LIST, "Mcp-Method": "TOOLS/LIST"}, request_id=1
    ),
}

LARGE: Final = {
    "more than 1 MiB": Bad(body(padding="x" * MAX_BODY), 413, INVALID, "larger"),
    "more than 1 MiB in UTF-8": Bad(
        json.dumps({"padding": "ä" * (MAX_BODY // 2)}, ensure_ascii=False),
        413,
        INVALID,
        "larger",
    ),
    "another page": Bad(body(), 403, INVALID, "Origin", {**LIST, "Origin": "https://evil.example"}),
    "a page whose name begins alike": Bad(
        body(), 403, INVALID, "Origin", {**LIST, "Origin": "https://app.example.com.evil.example"}
    ),
    "a page of no origin": Bad(body(), 403, INVALID, "Origin", {**LIST, "Origin": "null"}),
}

EVERY: Final = {**UNREADABLE, **NOT_A_REQUEST, **BAD_META, **HEADERS, **LARGE}


@pytest.mark.parametrize("bad", EVERY.values(), ids=EVERY)
def test_a_bad_request_is_refused_and_does_nothing(stack: Stack, bad: Bad) -> None:
    answer = stack.send(bad.body, bad.headers)
    assert (answer.status, answer.code) == (bad.status, bad.code)
    assert bad.says in answer.error["message"]
    assert answer.message.get("id") == bad.request_id
    assert stack.calls.made == []
    assert stack.rows == []


@pytest.mark.parametrize(
    ("name", "requested"),
    [
        ("another revision", "2025-11-25"),
        ("a revision to come", "2027-01-01"),
        ("a revision to come, in its header only", "2027-01-01"),
    ],
)
def test_an_error_names_the_revisions_that_are_supported(
    stack: Stack, name: str, requested: str
) -> None:
    """versioning.mdx: clients pick one of `supported` and retry."""
    bad = BAD_META[name]
    assert stack.send(bad.body, bad.headers).error["data"] == {
        "supported": SUPPORTED,
        "requested": requested,
    }


def test_a_revision_of_any_length_is_not_echoed_whole(stack: Stack) -> None:
    version = "9" * 10_000
    answer = stack.send(body_with_meta(version=version), {**LIST, "MCP-Protocol-Version": version})
    assert answer.code == VERSION
    assert len(answer.error["data"]["requested"]) < 100


@pytest.mark.parametrize(
    ("requested", "spoken"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        # lifecycle.mdx, "Version Negotiation": another one, the latest.
        ("2024-11-05", "2025-11-25"),
        (REVISION, "2025-11-25"),
    ],
)
def test_an_older_client_learns_the_revision_from_initialize(
    stack: Stack, requested: str, spoken: str
) -> None:
    """versioning.mdx: its handshake has no `_meta` and no headers."""
    params = {"protocolVersion": requested, "capabilities": {}, "clientInfo": OLD_CLIENT}
    answer = stack.post("initialize", params, revision="2025-11-25")
    assert answer.status == 200
    assert answer.result["protocolVersion"] == spoken
    assert [call.operation for call in stack.calls.made] == ["get_secret_value"]


@pytest.mark.parametrize("requested", [None, 7])
def test_a_handshake_without_a_revision_is_refused(stack: Stack, requested: object) -> None:
    params = {"protocolVersion": requested, "capabilities": {}, "clientInfo": OLD_CLIENT}
    answer = stack.post("initialize", params, revision="2025-11-25")
    # Those clients take an error of HTTP for a lost session.
    assert (answer.status, answer.code) == (200, PARAMS)
    assert "protocolVersion" in answer.error["message"]


def test_a_request_that_says_nothing_of_itself_is_of_the_oldest_revision(stack: Stack) -> None:
    """2025-11-25 basic/transports.mdx, "Protocol Version Header": then 2025-03-26 is assumed."""
    answer = stack.send(body(params={}), {}, method="tools/list", revision="2025-03-26")
    assert answer.status == 200
    assert not any("title" in tool for tool in answer.result["tools"])


REMOVED: Final = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "tasks/result",
    "tasks/list",
    "TOOLS/LIST",
    "tools/list ",
    "nonsense",
]


@pytest.mark.parametrize("method", REMOVED)
def test_a_method_that_is_not_served_is_not_found(stack: Stack, method: str) -> None:
    """streamable-http.mdx: HTTP 404 and -32601; tasks.md removed tasks/result and tasks/list."""
    answer = stack.send(body(method=method), {**LIST, "Mcp-Method": method.strip()}, method=method)
    if method.strip() == method:
        assert (answer.status, answer.code) == (404, NO_METHOD)
        assert method in answer.error["message"]
    else:
        assert (answer.status, answer.code) == (400, MISMATCH)
    assert stack.calls.made == []


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/initialized", "x"])
def test_a_notification_is_accepted_and_never_answered(stack: Stack, method: str) -> None:
    """streamable-http.mdx: 202 with an empty body."""
    answer = stack.send(body(id=..., method=method), {"Mcp-Method": method})
    assert answer == Answer(202, {})
    assert stack.calls.made == []


@pytest.mark.parametrize("method", ["tools/call", "tasks/cancel"])
def test_a_request_without_an_id_is_a_notification_and_does_nothing(
    stack: Stack, method: str
) -> None:
    params = {"name": "count", "arguments": {"upto": 1}, "taskId": UNKNOWN_ID, "_meta": meta()}
    answer = stack.send(body(id=..., method=method, params=params), mirrored(method, params))
    assert answer == Answer(202, {})
    assert stack.calls.made == []


@pytest.mark.parametrize("request_id", [0, -1, "", "a", "ключ", 2**63, "1" * 1000])
def test_an_answer_carries_the_requests_id(stack: Stack, request_id: object) -> None:
    assert stack.post("tools/list", request_id=request_id).message["id"] == request_id
    assert stack.post("nonsense", request_id=request_id).message["id"] == request_id


@pytest.mark.parametrize(
    "origin", [None, "https://app.example.com", "http://localhost:3000", "http://localhost:1"]
)
def test_an_allowed_page_or_none_may_call(stack: Stack, origin: str | None) -> None:
    assert stack.post("tools/list", headers={"Origin": origin}).status == 200


HOST: Final = "mcp.example.com"


@pytest.fixture
def named(stack: Stack) -> Stack:
    """A server that answers under one name only."""
    stack.environment["ALLOWED_HOSTS"] = HOST
    stack.serve()
    return stack


@pytest.mark.parametrize("host", [None, "evil.example", f"{HOST}.evil.example", f"{HOST}:81"])
def test_another_host_is_refused_before_anything_is_read(named: Stack, host: str | None) -> None:
    """streamable-http.mdx, "Security & Endpoint": DNS rebinding."""
    for text in (body(), "{"):
        answer = named.send(text, {**LIST, "Host": host})
        assert (answer.status, answer.code) == (403, INVALID)
        assert "Host" in answer.error["message"]
    assert named.calls.made == []


def test_its_own_host_is_answered(named: Stack) -> None:
    assert named.post("tools/list", headers={"Host": HOST}).status == 200


def test_any_host_is_answered_when_none_is_named(stack: Stack) -> None:
    assert stack.post("tools/list", headers={"Host": "anything.example"}).status == 200


def test_a_body_of_exactly_1_mib_is_read(stack: Stack) -> None:
    text = body()
    padded = text + " " * (MAX_BODY - len(text))
    assert stack.send(padded, LIST, method="tools/list").status == 200


def test_names_of_headers_are_read_in_any_case(stack: Stack) -> None:
    """RFC 9110, section 5.1: MiniStack sends them in lower case, API Gateway as they came."""
    for change in (str.lower, str.upper):
        headers = {change(name): value for name, value in LIST.items()}
        assert stack.send(body(), headers, method="tools/list").status == 200


def test_space_around_a_header_does_not_count(stack: Stack) -> None:
    headers = {name: f" {value}\t" for name, value in LIST.items()}
    assert stack.send(body(), headers, method="tools/list").status == 200


def test_every_result_names_the_server(stack: Stack) -> None:
    """basic/index.mdx: serverInfo goes into each result's `_meta`."""
    for answer in (stack.post("server/discover"), stack.post("tools/list"), stack.call("echo")):
        assert answer.result["_meta"]["io.modelcontextprotocol/serverInfo"] == {
            "name": "unit",
            "title": "Unit tests",
            "version": "1.2.3",
        }


def test_a_body_in_base64_is_a_body(stack: Stack) -> None:
    """API Gateway encodes what is not declared as text."""
    assert stack.send(body().encode(), LIST, method="tools/list").status == 200


def offering(method: Method) -> Endpoint:
    """A server of nothing else."""
    identity = ServerIdentity("n", "1")
    return Endpoint(
        ServerMethods(identity, Catalogue(), method, method, method, method, {}, method)
    )


def nothing(call: Call) -> Complete:
    return Complete({})


def test_a_body_that_only_claims_to_be_base64_is_not_json() -> None:
    http = from_api_gateway({"body": "{]", "isBase64Encoded": True, "headers": LIST}, "none")
    answer = offering(nothing).answer(http)
    assert (answer.status, json.loads(answer.message or "")["error"]["code"]) == (400, PARSE)


def test_an_event_with_single_headers_only_is_read() -> None:
    """`sam local invoke` and hand-written events have no multiValueHeaders."""
    http = from_api_gateway({"headers": {"Mcp-Name": "x"}, "body": "{}"}, "none")
    assert http.headers.get("mcp-name") == "x"
    assert http.body == b"{}"


def test_an_event_with_nothing_in_it_is_a_bad_request_and_no_crash() -> None:
    empty: dict[str, Any] = {
        "headers": None,
        "multiValueHeaders": None,
        "body": None,
        "requestContext": None,
    }
    http = from_api_gateway(empty, "none")
    assert http.caller == Caller(ANYONE)
    assert offering(nothing).answer(http).status == 400


def test_the_principal_is_the_caller_whom_iam_named() -> None:
    arn = "arn:aws:iam::123456789012:user/alice"
    event = {"requestContext": {"identity": {"userArn": arn}}}
    assert from_api_gateway(event, "iam").caller == Caller(arn)
    assert from_api_gateway({}, "iam").caller is None


def test_what_goes_wrong_inside_is_an_internal_error_without_its_words() -> None:
    def broken(call: Call) -> Complete:
        raise RuntimeError("the table's password")

    params = {"name": "x", "_meta": meta()}
    headers = Headers({k: [v] for k, v in mirrored("tools/call", params).items()})
    text = body(method="tools/call", params=params)
    answer = offering(broken).answer(HttpRequest(headers, text.encode(), Caller(ANYONE)))
    assert answer.status == 500
    message = json.loads(answer.message or "")
    reference = message["error"]["data"]["reference"]
    assert message == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
            "code": INTERNAL,
            "message": f"Internal error (reference {reference})",
            "data": {"reference": reference},
        },
    }


@pytest.mark.parametrize("depth", [100, 250, 900, 945])
@pytest.mark.parametrize("tool", ["echo", "count", "anything"])
def test_arguments_of_any_depth_are_the_clients_mistake(
    stack: Stack, tool: str, depth: int
) -> None:
    """Whoever reads or writes them again may stand deeper on the stack than the parser did."""
    nested = "[" * depth + "]" * depth
    params = f'{{"name":"{tool}","arguments":{{"text":{nested}}},"_meta":{json.dumps(meta())}}}'
    text = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    answer = stack.send(text, mirrored("tools/call", {"name": tool}), method="tools/call")
    assert answer.status < 500
    if tool != "anything":  # which takes what its schema allows
        assert "error" in answer.message or answer.result["isError"] is True
        assert stack.calls.made == []


def test_no_number_leaves_that_json_does_not_have(stack: Stack) -> None:
    """A tool that overflows must not break the client's parser."""
    event_body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "overflow", "arguments": {"number": 1e308}, "_meta": meta()},
        }
    )
    headers = {k: [v] for k, v in mirrored("tools/call", {"name": "overflow"}).items()}
    http = from_api_gateway({"multiValueHeaders": headers, "body": event_body}, "none")
    response = to_api_gateway(stack.server.answer(http))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    message = json.loads(response["body"], parse_constant=refuse)
    wire.check("tools/call", message)


def test_a_request_of_a_client_without_capabilities_is_served(stack: Stack) -> None:
    assert stack.post("tools/list", capabilities={}).status == 200
    assert stack.post("tools/list", capabilities=WITH_TASKS).status == 200


def test_a_bytes_body_reaches_the_parser_as_it_was_sent() -> None:
    raw = b"\xff\x00"
    event = {"body": base64.b64encode(raw).decode(), "isBase64Encoded": True}
    assert from_api_gateway(event, "none").body == raw


JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["tools/list", "accept", REVISION, "echo", UNKNOWN_ID]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
PARAMETERS: Final = [
    "_meta",
    "argument",
    "arguments",
    "context",
    "cursor",
    "inputResponses",
    "name",
    "ref",
    "requestState",
    "taskId",
    "uri",
]
METHODS: Final = [
    "completion/complete",
    "prompts/get",
    "resources/read",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
]


@settings(
    max_examples=100,
    phases=[Phase.generate],  # the first example tells enough, and each costs several calls
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    method=st.sampled_from(METHODS),
    params=st.dictionaries(st.sampled_from(PARAMETERS), JSON),
    meta_changes=st.dictionaries(st.sampled_from([VERSION_KEY, CAPABILITIES_KEY]), JSON),
    message=st.dictionaries(st.sampled_from(["jsonrpc", "id", "params"]), JSON, max_size=1),
    answer=JSON,
    action=JSON,
)
def test_no_json_at_all_makes_the_server_fail(
    stack: Stack,
    method: str,
    params: dict[str, Any],
    meta_changes: dict[str, Any],
    message: dict[str, Any],
    answer: Any,
    action: Any,
) -> None:
    """Whatever a client sends is the client's mistake, and answered as such."""
    if not stack.rows:
        asking = stack.created("count", {"upto": 1})
        question = FormQuestion("?", {"type": "object", "properties": {"a": {"type": "string"}}})
        stack.deployment.task_table.ask(asking, open_ask("token", {"a": question}), now_ms())
    (row,) = stack.rows
    (ask,) = row["asks"]["M"].values()
    (key,) = ask["M"]["questions"]["M"]
    known = {
        "name": "review" if method == "prompts/get" else "echo",
        "arguments": {},
        "uri": "docs://handbook",
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "language", "value": ""},
        "taskId": row["taskId"]["S"] if method == "tasks/update" else UNKNOWN_ID,
        "inputResponses": {key: {"action": action, "content": answer}},
        "_meta": {**meta(), **meta_changes},
    }
    sent = {**known, **params}
    text = body(**{"method": method, "params": sent, **message})
    status = stack.send(text, mirrored(method, sent), method=method).status
    assert status < 500


@pytest.mark.parametrize(("more", "fits"), [(0, True), (-1, False)])
def test_notifications_count_towards_the_size_of_the_response(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, more: int, fits: bool
) -> None:
    """A function returns the notifications and the result in one piece."""
    sizes: list[int] = []

    def way(server: Any, http: Any) -> Any:
        answer = server.answer(http)
        sizes.append(answer.size + sum(response_size(written(e)) for e in answer.events))
        return to_api_gateway(answer)

    stack.way = way
    params = {"name": "count", "arguments": {"upto": 3}, "_meta": {"progressToken": 1}}
    assert stack.post("tools/call", params, capabilities={}).notifications
    monkeypatch.setattr(exchange, "MAX_RESPONSE_BYTES", sizes[0] + more)
    answer = stack.post("tools/call", params, capabilities={})
    assert answer.notifications
    assert ("result" in answer.message) is fits


def test_a_function_for_subscriptions_answers_nothing_else(
    aws: Calls, catalogue: Catalogue
) -> None:
    """`METHODS`: no tool runs in it, whatever a request to its gateway asks for."""
    stack = Stack(aws, catalogue, {**ENVIRONMENT, "METHODS": "subscriptions/listen"})
    for revision, method in ((REVISION, "tools/call"), ("2025-06-18", "tools/call")):
        params = {"name": "echo", "arguments": {"text": "a"}}
        assert stack.post(method, params, revision=revision).code == -32601
    assert stack.calls.made == []
    assert stack.listen([]).message["result"] is not None
