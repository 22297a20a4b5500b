"""Which revision a request is taken for, and what each of the earlier ones gets.

The pages of 2025-11-25 are named as such; the older two differ from it in what they do not have.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from infra.figures import ANSWERED_AT_ONCE
from mcp_tasks.protocol.headers import Headers
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http import batch as batches
from mcp_tasks.server.http import exchange
from mcp_tasks.server.http.batch import MAX_BATCH_MESSAGES
from mcp_tasks.server.http.messages import HttpRequest
from mcp_tasks.tasks.task import ANYONE
from tests.unit.support.aws import Calls
from tests.unit.support.stack import CAPABILITIES_KEY, REVISION, VERSION_KEY, Answer, Stack
from tests.unit.support.whole import ALL_AND_TASKS, HANDSHAKE, accept, whole_catalogue, whole_stack

CLIENT: Final = {"capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}}
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INVALID_REQUEST: Final = -32600

every_revision = pytest.mark.parametrize("revision", HANDSHAKE)


@pytest.fixture
def server(aws: Calls) -> Stack:
    return whole_stack(aws)


def initialize(server: Stack, version: Any, **options: Any) -> Answer:
    params = {"protocolVersion": version, **CLIENT}
    return server.post("initialize", params, revision=HANDSHAKE[0], **options)


def post(server: Stack, revision: str, method: str, **params: Any) -> Answer:
    return server.post(method, params, revision=revision)


def call(server: Stack, revision: str, tool: str, **arguments: Any) -> Answer:
    return post(server, revision, "tools/call", name=tool, arguments=arguments)


def raw(server: Stack, body: Any, headers: dict[str, str], revision: str = REVISION) -> Answer:
    """A body with these headers, and no others."""
    return server.send(json.dumps(body), headers, method=body.get("method", ""), revision=revision)


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


# Which one it is


def shape(answer: Answer) -> str:
    """The revision whose shape a list of tools has: each one added something."""
    (totals,) = [tool for tool in answer.result["tools"] if tool["name"] == "totals"]
    if "resultType" in answer.result:
        return REVISION
    return HANDSHAKE[0 if "icons" in totals else 1 if "outputSchema" in totals else 2]


MODERN_META: Final = {VERSION_KEY: REVISION, CAPABILITIES_KEY: {}}
MODERN_HEADERS: Final = {"MCP-Protocol-Version": REVISION, "Mcp-Method": "tools/list"}


@pytest.mark.parametrize(
    ("about", "headers", "revision"),
    [
        (MODERN_META, MODERN_HEADERS, REVISION),
        ({}, {"MCP-Protocol-Version": "2025-11-25"}, "2025-11-25"),
        ({}, {"mcp-protocol-version": " 2025-06-18 "}, "2025-06-18"),
        ({}, {"MCP-Protocol-Version": "2025-03-26"}, "2025-03-26"),
        # "SHOULD assume protocol version 2025-03-26" (2025-11-25 basic/transports.mdx).
        ({}, {}, "2025-03-26"),
        ({CAPABILITIES_KEY: {}, "progressToken": 1}, {}, "2025-03-26"),
        # A proxy may add what only the later revision has.
        ({}, {"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "x"}, "2025-11-25"),
    ],
)
def test_a_request_says_itself_of_which_revision_it_is(
    server: Stack, about: dict[str, Any], headers: dict[str, str], revision: str
) -> None:
    answer = raw(server, request("tools/list", _meta=about), headers, revision)
    assert answer.status == 200
    assert shape(answer) == revision


@pytest.mark.parametrize(
    ("about", "headers", "code"),
    [
        # What the body says comes first: the headers only repeat it.
        (MODERN_META, {}, -32020),
        (MODERN_META, {"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "tools/list"}, -32020),
        ({}, MODERN_HEADERS, INVALID_PARAMS),
        ({}, {"MCP-Protocol-Version": REVISION}, INVALID_PARAMS),
        ({}, {"Mcp-Method": "tools/list"}, INVALID_PARAMS),
        ({VERSION_KEY: None}, {"MCP-Protocol-Version": "2025-11-25"}, INVALID_PARAMS),
    ],
)
def test_half_a_request_of_2026_is_refused_as_one(
    server: Stack, about: dict[str, Any], headers: dict[str, str], code: int
) -> None:
    refused = raw(server, request("tools/list", _meta=about), headers)
    assert (refused.status, refused.code) == (400, code)


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-29", "2025-11-25, 2025-06-18", "x", ""])
def test_a_header_that_names_another_version_is_refused(server: Stack, version: str) -> None:
    """2025-11-25 basic/transports.mdx, "Protocol Version Header": "MUST respond with 400"."""
    refused = raw(server, request("tools/list"), {"MCP-Protocol-Version": version})
    assert (refused.status, refused.code) == (400, -32022)
    assert refused.error["data"] == {"supported": [REVISION, *HANDSHAKE], "requested": version}


@every_revision
def test_an_earlier_version_in_meta_is_refused(server: Stack, revision: str) -> None:
    about = {VERSION_KEY: revision, CAPABILITIES_KEY: {}}
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": "tools/list"}
    refused = raw(server, request("tools/list", _meta=about), headers)
    assert (refused.status, refused.code) == (400, -32022)
    assert "initialize" in refused.error["message"]


def test_nothing_is_remembered_of_the_request_before(server: Stack) -> None:
    initialize(server, "2025-11-25")
    for revision in (*HANDSHAKE, REVISION, *reversed(HANDSHAKE)):
        assert shape(server.post("tools/list", revision=revision)) == revision


# initialize


@every_revision
def test_initialize_agrees_on_a_version_that_both_speak(server: Stack, revision: str) -> None:
    """2025-11-25 basic/lifecycle.mdx, "Version Negotiation"."""
    answer = initialize(server, revision)
    assert answer.status == 200
    assert answer.result == {
        "protocolVersion": revision,
        "capabilities": {
            "tools": {"listChanged": True},
            "logging": {},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
            **({} if revision == "2025-03-26" else {"tasks": TASKS_CAPABILITY}),
        },
        "serverInfo": {
            "name": "unit",
            "version": "1.2.3",
            **({} if revision == "2025-03-26" else {"title": "Unit tests"}),
        },
        "instructions": "Call echo.",
    }
    assert answer.headers["Mcp-Session-Id"].startswith("c1-")


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "2030-01-01", ""])
def test_otherwise_it_offers_the_latest_with_a_handshake(server: Stack, version: str) -> None:
    assert initialize(server, version).result["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    ("offered", "declared"),
    [
        ([], set()),
        (["resources"], {"resources", "completions"}),
        (["prompts"], {"prompts", "completions"}),
    ],
)
def test_only_what_there_is_is_declared(aws: Calls, offered: list[str], declared: set[str]) -> None:
    whole = whole_catalogue()
    parts = {name: getattr(whole, name).values() for name in ("tools", *offered)}
    server = Stack(aws, Catalogue(**parts))
    for capabilities in (
        initialize(server, "2025-11-25").result["capabilities"],
        server.post("server/discover").result["capabilities"],
    ):
        assert set(capabilities) - {"extensions", "tasks"} == {"tools", "logging", *declared}


@pytest.mark.parametrize("header", HANDSHAKE)
def test_the_parameters_say_the_version_and_not_the_header(server: Stack, header: str) -> None:
    for revision in HANDSHAKE:
        answer = initialize(server, revision, headers={"MCP-Protocol-Version": header})
        assert answer.result["protocolVersion"] == revision


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"capabilities": {}},
        {"protocolVersion": "2025-11-25"},
        {"protocolVersion": 5, "capabilities": {}},
        {"protocolVersion": "2025-11-25", "capabilities": []},
        {"protocolVersion": ["2025-11-25"], "capabilities": {}},
    ],
    ids=json.dumps,
)
def test_a_malformed_handshake_is_refused(server: Stack, params: dict[str, Any]) -> None:
    refused = server.post("initialize", params, revision=HANDSHAKE[0])
    assert (refused.status, refused.code) == (200, INVALID_PARAMS)


@every_revision
@pytest.mark.parametrize(
    "method", ["initialized", "cancelled", "roots/list_changed", "progress", "whatever"]
)
def test_a_notification_is_accepted_and_not_answered(
    server: Stack, revision: str, method: str
) -> None:
    body = {"jsonrpc": "2.0", "method": f"notifications/{method}"}
    accepted = raw(server, body, {"MCP-Protocol-Version": revision}, revision)
    assert (accepted.status, accepted.message) == (202, {})


@every_revision
def test_an_unknown_session_is_not_found(server: Stack, revision: str) -> None:
    answer = server.post("ping", revision=revision, headers={"Mcp-Session-Id": "abc"})
    assert (answer.status, answer.code) == (404, INVALID_REQUEST)


# The methods


@every_revision
def test_ping_is_answered_with_nothing(server: Stack, revision: str) -> None:
    answer = post(server, revision, "ping")
    assert (answer.status, answer.result) == (200, {})


@every_revision
def test_a_log_level_is_checked(server: Stack, revision: str) -> None:
    assert post(server, revision, "logging/setLevel", level="warning").result == {}
    for level in ("loud", "", None, 5, ["info"], "INFO"):
        refused = post(server, revision, "logging/setLevel", level=level)
        assert (refused.status, refused.code) == (200, INVALID_PARAMS)


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel"])
def test_2026_has_no_such_methods_any_more(server: Stack, method: str) -> None:
    refused = server.post(method, {"protocolVersion": REVISION, "capabilities": {}})
    assert (refused.status, refused.code) == (404, METHOD_NOT_FOUND)


@every_revision
@pytest.mark.parametrize(
    "method",
    [
        "server/discover",
        "tasks/update",
        "tasks/list",
        "subscriptions/listen",
        "no/such",
    ],
)
def test_a_method_that_there_is_not_is_no_lost_session(
    server: Stack, revision: str, method: str
) -> None:
    """A 404 would be one: "the client MUST start a new session" (2025-11-25 basic/transports.mdx,
    "Session Management").
    """
    refused = post(server, revision, method)
    assert (refused.status, refused.code) == (200, METHOD_NOT_FOUND)


METHODS: Final[dict[str, dict[str, Any]]] = {
    "tools/list": {},
    "tools/call": {"name": "totals", "arguments": {"numbers": [1, 2]}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "docs://handbook"},
    "prompts/list": {},
    "prompts/get": {"name": "talk"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "letter"},
        "argument": {"name": "tone", "value": ""},
    },
}


@every_revision
@pytest.mark.parametrize("method", METHODS)
def test_a_result_has_nothing_that_came_later(server: Stack, revision: str, method: str) -> None:
    """No resultType, ttlMs or cacheScope (`tests.wire` looks for them), and no serverInfo."""
    answer = post(server, revision, method, **METHODS[method])
    assert answer.status == 200
    assert "_meta" not in answer.result


# What is listed


@every_revision
def test_a_list_has_the_members_that_the_revision_knows(server: Stack, revision: str) -> None:
    added = {
        "2025-03-26": set[str](),
        "2025-06-18": {"title", "_meta"},
        "2025-11-25": {"title", "_meta", "icons"},
    }[revision]
    newer = {"title", "_meta", "icons"}
    for method, member in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("prompts/list", "prompts"),
    ]:
        found = {name for item in post(server, revision, method).result[member] for name in item}
        assert found & newer == added, method
    templates = post(server, revision, "resources/templates/list").result["resourceTemplates"]
    assert {name for item in templates for name in item} & newer == added - {"_meta"}


def tools(server: Stack, revision: str) -> dict[str, Any]:
    listed = post(server, revision, "tools/list").result["tools"]
    return {tool["name"]: tool for tool in listed}


@pytest.mark.parametrize(
    ("revision", "title", "annotations"),
    [
        ("2025-11-25", "Sum up", {"readOnlyHint": True}),
        ("2025-06-18", "Sum up", {"readOnlyHint": True}),
        ("2025-03-26", None, {"readOnlyHint": True, "title": "Sum up"}),
    ],
)
def test_a_tools_title_was_one_of_its_annotations(
    server: Stack, revision: str, title: str | None, annotations: dict[str, Any]
) -> None:
    totals = tools(server, revision)["totals"]
    assert totals.get("title") == title
    assert totals["annotations"] == annotations


@pytest.mark.parametrize(
    ("revision", "with_output"),
    [
        (REVISION, {"totals", "doubled", "written", "needs", "rest"}),
        ("2025-11-25", {"totals", "rest"}),
        ("2025-06-18", {"totals", "rest"}),
        ("2025-03-26", set()),
    ],
)
def test_an_output_schema_was_one_of_an_object(
    server: Stack, revision: str, with_output: set[str]
) -> None:
    """2025-11-25 schema: an outputSchema has the type "object"."""
    found = {n for n, tool in tools(server, revision).items() if "outputSchema" in tool}
    assert found == with_output


TASKS_CAPABILITY: Final[dict[str, Any]] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
"""Without `list`: the callers of this server cannot be told apart."""
REQUIRED: Final = {"arrive", "travel", "sail"}


@pytest.mark.parametrize(
    ("revision", "says"), [("2025-11-25", True), ("2025-06-18", True), ("2025-03-26", False)]
)
def test_a_tool_that_can_run_as_a_task_says_so(server: Stack, revision: str, says: bool) -> None:
    """2025-11-25 basic/utilities/tasks.mdx, "Tool-Level Negotiation". None says "required"."""
    found = tools(server, revision)
    tasks = REQUIRED | {"depart", "fly", "rest"}
    assert tasks <= set(found)
    assert {n for n, tool in found.items() if "execution" in tool} == (tasks if says else set())
    supported = [tool["execution"] for tool in found.values() if "execution" in tool]
    assert all(execution == {"taskSupport": "optional"} for execution in supported)


def test_arguments_of_prompts_had_no_titles(server: Stack) -> None:
    for revision, title in (
        ("2025-11-25", "Subject"),
        ("2025-06-18", "Subject"),
        ("2025-03-26", None),
    ):
        prompts = post(server, revision, "prompts/list").result["prompts"]
        (letter,) = [prompt for prompt in prompts if prompt["name"] == "letter"]
        assert letter["arguments"][0].get("title") == title
        assert letter["arguments"][0]["description"] == "What about."


@every_revision
@pytest.mark.parametrize("method", [name for name in METHODS if name.endswith("/list")])
def test_an_invalid_cursor_is_refused(server: Stack, revision: str, method: str) -> None:
    refused = post(server, revision, method, cursor="abc")
    assert (refused.status, refused.code) == (200, INVALID_PARAMS)


# What a tool answers


@pytest.mark.parametrize(
    ("revision", "structured"),
    [("2025-11-25", {"total": 3}), ("2025-06-18", {"total": 3}), ("2025-03-26", None)],
)
def test_structured_content_came_with_2025_06_18(
    server: Stack, revision: str, structured: Any
) -> None:
    result = call(server, revision, "totals", numbers=[1, 2]).result
    assert result.get("structuredContent") == structured
    assert result["content"] == [{"type": "text", "text": '{"total": 3}'}]


@every_revision
@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [("doubled", {"numbers": [1, 2]}, "[2, 4]"), ("written", {"a": 5}, "[5]")],
)
def test_structured_content_that_is_no_object_becomes_text(
    server: Stack, revision: str, tool: str, arguments: dict[str, Any], text: str
) -> None:
    """2025-11-25 server/tools.mdx, "Structured Content": a JSON object."""
    result = call(server, revision, tool, **arguments).result
    assert result == {"content": [{"type": "text", "text": text}]}


@every_revision
def test_a_text_that_would_be_a_copy_is_whole_however_long_it_is(
    server: Stack, revision: str
) -> None:
    """For later revisions it is cut: their clients read the structured content."""
    numbers = list(range(20_000))
    (block,) = call(server, revision, "doubled", numbers=numbers).result["content"]
    assert json.loads(block["text"]) == [2 * number for number in numbers]


@every_revision
def test_an_authors_own_contents_all_arrive(server: Stack, revision: str) -> None:
    blocks = call(server, revision, "everything").result["content"]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    assert "Look:" in texts
    assert '["a", "b"]' in texts
    assert {"image", "audio", "resource"} <= {block["type"] for block in blocks}


@pytest.mark.parametrize(
    ("revision", "linked"), [("2025-11-25", True), ("2025-06-18", True), ("2025-03-26", False)]
)
def test_links_to_resources_came_with_2025_06_18(
    server: Stack, revision: str, linked: bool
) -> None:
    contents = call(server, revision, "everything").result["content"]
    messages = post(server, revision, "prompts/get", name="talk").result["messages"]
    for blocks in (contents, [message["content"] for message in messages]):
        assert ("resource_link" in {block["type"] for block in blocks}) is linked
        as_text = {"type": "text", "text": "handbook: docs://handbook"}
        assert (as_text in blocks) is not linked
    assert any("_meta" in block for block in contents) is linked


@pytest.mark.parametrize(
    ("revision", "code"),
    [
        ("2025-11-25", METHOD_NOT_FOUND),
        ("2025-06-18", INVALID_REQUEST),
        ("2025-03-26", INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("tool", sorted(REQUIRED))
def test_a_tool_that_needs_a_task_answers_what_the_revision_prescribes(
    server: Stack, revision: str, tool: str, code: int
) -> None:
    refused = call(server, revision, tool, place="Rome")
    assert (refused.status, refused.code) == (200, code)
    assert "params.task" in refused.error["message"]
    assert server.rows == []


@every_revision
def test_an_optional_task_runs_within_the_request(server: Stack, revision: str) -> None:
    """Even for a client that declares tasks in the words of 2026."""
    about = {CAPABILITIES_KEY: ALL_AND_TASKS}
    params = {"name": "rest", "arguments": {"hours": 8}, "_meta": about}
    result = post(server, revision, "tools/call", **params).result
    assert result["content"] == [{"type": "text", "text": '{"hours": 8}'}]
    assert server.rows == []
    assert "start_execution" not in server.calls.operations


@every_revision
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "trip", "arguments": {"name": "Ada"}}),
        ("tools/call", {"name": "depart", "arguments": {"place": "Rome"}}),
        ("prompts/get", {"name": "plan", "arguments": {"name": "Ada"}}),
        ("resources/read", {"uri": "trips://Ada"}),
    ],
)
def test_nobody_is_asked_without_a_session(
    server: Stack, revision: str, method: str, params: dict[str, Any]
) -> None:
    """Although the request has members that would count in 2026."""
    later = {
        "inputResponses": {"place": accept(place="Rome"), "sure": accept(sure=True)},
        "requestState": "abc",
        "_meta": {CAPABILITIES_KEY: ALL_AND_TASKS},
    }
    for each in (params, {**params, **later}):
        refused = post(server, revision, method, **each)
        assert (refused.status, refused.code) == (200, INVALID_REQUEST)
        assert "session" in refused.error["message"]


@every_revision
def test_arguments_need_no_headers(stack: Stack, revision: str) -> None:
    """`x-mcp-header` came with 2026-07-28."""
    result = call(stack, revision, "routed", region="eu", shard=3).result
    assert result["content"] == [{"type": "text", "text": "eu 3 False"}]


# Errors


@every_revision
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "missing"}, INVALID_PARAMS),
        ("tools/call", {}, INVALID_PARAMS),
        ("tools/call", {"name": "noisy", "arguments": {"fail": "crash"}}, -32603),
        ("tools/call", {"name": "totals", "_meta": []}, INVALID_PARAMS),
        ("tools/call", {"name": "totals", "_meta": {"progressToken": []}}, INVALID_PARAMS),
        ("prompts/get", {"name": "missing"}, INVALID_PARAMS),
        ("resources/read", {}, INVALID_PARAMS),
        ("completion/complete", {}, INVALID_PARAMS),
    ],
)
def test_a_requests_error_travels_with_status_200(
    server: Stack, revision: str, method: str, params: dict[str, Any], code: int
) -> None:
    refused = server.post(method, params, revision=revision, headers={"Accept": "application/json"})
    assert (refused.status, refused.code) == (200, code)


@every_revision
@pytest.mark.parametrize("uri", ["docs://missing", "docs://xx/1"])
def test_a_resource_that_there_is_not_has_a_code_of_its_own(
    server: Stack, revision: str, uri: str
) -> None:
    """2025-11-25 server/resources.mdx, "Error Handling"."""
    refused = post(server, revision, "resources/read", uri=uri)
    assert (refused.status, refused.code) == (200, -32002)
    assert refused.error["data"] == {"uri": uri}


@every_revision
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        5,
        None,
        "ping",
    ],
    ids=json.dumps,
)
def test_a_body_that_is_no_request_is_refused_with_status_400(
    server: Stack, revision: str, body: Any
) -> None:
    headers = {"MCP-Protocol-Version": revision}
    refused = server.send(json.dumps(body), headers, revision=revision)
    assert (refused.status, refused.code) == (400, INVALID_REQUEST)


@every_revision
def test_what_the_transport_refuses_keeps_its_status(server: Stack, revision: str) -> None:
    headers = {"MCP-Protocol-Version": revision}
    assert server.send("{", headers, revision=revision).status == 400
    headers["Origin"] = "https://evil.example.com"
    refused = raw(server, request("ping"), headers, revision)
    assert (refused.status, refused.code) == (403, INVALID_REQUEST)


# Notifications


@every_revision
def test_a_client_gets_log_messages_from_info_on(server: Stack, revision: str) -> None:
    """It said nothing, or it was not remembered (2025-11-25 server/utilities/logging.mdx)."""
    for level, heard in (("debug", 0), ("info", 1), ("error", 1)):
        answer = call(server, revision, "noisy", level=level)
        assert len(answer.notifications) == heard
        assert answer.result["content"] == [{"type": "text", "text": "done"}]


@every_revision
def test_progress_goes_to_clients_that_gave_a_token(server: Stack, revision: str) -> None:
    params = {"name": "noisy", "arguments": {"level": "debug"}, "_meta": {"progressToken": "t"}}
    answer = post(server, revision, "tools/call", **params)
    assert [message["method"] for message in answer.notifications] == ["notifications/progress"] * 2


# Batches


def batch(server: Stack, *messages: Any, version: str | None = None) -> Answer:
    headers = {} if version is None else {"MCP-Protocol-Version": version}
    return server.send(json.dumps(messages), headers, revision="2025-03-26")


PING: Final = {"jsonrpc": "2.0", "method": "ping"}


@pytest.mark.parametrize("version", [None, "2025-03-26"])
def test_2025_03_26_answers_several_messages_with_a_list(
    server: Stack, version: str | None
) -> None:
    answer = batch(
        server,
        {**PING, "id": 1},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {**PING, "id": "two", "method": "no/such"},
        {**request("tools/call", name="doubled", arguments={"numbers": [1]}), "id": 3},
        version=version,
    )
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    ping, unknown, doubled = answer.batch or []
    assert ping == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (unknown["id"], unknown["error"]["code"]) == ("two", METHOD_NOT_FOUND)
    assert doubled["result"]["content"][0]["text"] == "[2]"


def test_one_message_in_a_list_is_answered_with_a_list(server: Stack) -> None:
    assert batch(server, {**PING, "id": 1}).batch == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_what_is_no_message_in_a_batch_is_refused_alone(server: Stack) -> None:
    """JSON-RPC 2.0, section 6."""
    body = json.dumps([5, {**PING, "id": 1}, {"jsonrpc": "2.0", "id": 2}, [PING], None])
    answer = server.server.answer(HttpRequest(Headers({}), body.encode(), Caller(ANYONE)))
    assert answer.status == 200
    messages = json.loads(answer.message or "")
    assert [message.get("id") for message in messages] == [None, 1, 2, None, None]
    codes = [message.get("error", {}).get("code") for message in messages]
    assert codes == [INVALID_REQUEST, None, INVALID_REQUEST, INVALID_REQUEST, INVALID_REQUEST]


def test_a_batch_of_notifications_is_accepted_and_not_answered(server: Stack) -> None:
    accepted = batch(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (accepted.status, accepted.message) == (202, {})


def test_a_batch_is_neither_empty_nor_endless(server: Stack) -> None:
    assert (
        len(batch(server, *[{**PING, "id": i} for i in range(MAX_BATCH_MESSAGES)]).batch or [])
        == MAX_BATCH_MESSAGES
    )
    for messages in ([], [{**PING, "id": i} for i in range(MAX_BATCH_MESSAGES + 1)]):
        refused = batch(server, *messages)
        assert (refused.status, refused.code) == (400, INVALID_REQUEST)


@pytest.mark.parametrize("version", [REVISION, "2025-11-25", "2025-06-18"])
def test_no_other_revision_has_batches(server: Stack, version: str) -> None:
    headers = {"MCP-Protocol-Version": version}
    refused = server.send(json.dumps([{**PING, "id": 1}]), headers, revision=version)
    assert (refused.status, refused.code) == (400, INVALID_REQUEST)
    assert refused.batch is None


def test_a_batch_ends_when_its_answer_is_full(
    server: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda would send nothing at all."""
    monkeypatch.setattr(batches, "MAX_RESPONSE_BYTES", 100)
    answers = batch(server, *[{**PING, "id": i} for i in range(5)]).batch or []
    assert [answer["id"] for answer in answers] == list(range(5))
    assert ["error" in answer for answer in answers] == [False, False, True, True, True]


def test_a_batch_ends_when_its_time_is_up(server: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_SECONDS", 0.0)
    answers = batch(server, {**PING, "id": 1}, {**PING, "id": 2}).batch or []
    assert all("alone" in answer["error"]["message"] for answer in answers)


def test_a_result_that_cannot_be_sent_is_an_error(
    server: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MAX_RESPONSE_BYTES", 100)
    answer = server.post("tools/list")
    assert (answer.status, answer.code) == (500, -32603)
    assert "too large" in answer.error["message"]


def test_the_methods_of_which_an_alarm_watches_the_time_are_methods(server: Stack) -> None:
    """And none of those that wait for a tool, for a change or for an author's code. `tasks/list` is
    there where callers are known."""
    server.environment["AUTH"] = "iam"
    server.serve()
    revisions = server.server._revisions
    tables = [each.method_table for each in (revisions.modern, *revisions._handshake.values())]
    methods = {method for table in tables for method in table}
    assert set(ANSWERED_AT_ONCE) <= methods
    waiting = {"tools/call", "tasks/result", "resources/read", "prompts/get", "completion/complete"}
    assert waiting | {"subscriptions/listen"} <= methods - set(ANSWERED_AT_ONCE)
