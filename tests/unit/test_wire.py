"""The check that all tests of messages rest on rejects what it should."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from tests.wire import (
    InvalidMessage,
    check,
    check_heard,
    check_listen,
    check_notification,
    check_notifications,
)

SERVER_INFO: Final = {
    "io.modelcontextprotocol/serverInfo": {"name": "unit", "version": "1"},
}
TASK: Final[dict[str, Any]] = {
    "taskId": "c1-0",
    "status": "working",
    "createdAt": "2026-11-21T10:00:00.000Z",
    "lastUpdatedAt": "2026-11-21T10:00:00.000Z",
    "ttlMs": 1000,
    "pollIntervalMs": 500,
}
TEXT: Final = {"content": [{"type": "text", "text": "hi"}]}
REQUESTS: Final = {
    "key": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Sure?",
            "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
        },
    }
}


EVERY_REQUEST: Final = {
    **REQUESTS,
    "page": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Go", "url": "https://a.example"},
    },
    "poem": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
            "maxTokens": 9,
        },
    },
    "dirs": {"method": "roots/list"},
}


def result(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **fields}}


def bare(**fields: Any) -> dict[str, Any]:
    """A result as revisions before 2026-07-28 have it."""
    return {"jsonrpc": "2.0", "id": 1, "result": fields}


def error(code: int, **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", **fields}}


GOOD: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "discover": (
        "server/discover",
        result(
            supportedVersions=["2026-07-28"],
            capabilities={"tools": {}},
            ttlMs=1,
            cacheScope="public",
            _meta=SERVER_INFO,
        ),
    ),
    "list": (
        "tools/list",
        result(
            tools=[{"name": "echo", "inputSchema": {"type": "object"}}],
            ttlMs=1,
            cacheScope="public",
        ),
    ),
    "call": ("tools/call", result(**TEXT)),
    "call that asks": (
        "tools/call",
        result(resultType="input_required", inputRequests=REQUESTS, requestState="sealed"),
    ),
    "call that asks for everything": (
        "tools/call",
        result(resultType="input_required", inputRequests=EVERY_REQUEST),
    ),
    "call that only waits": ("tools/call", result(resultType="input_required", requestState="s")),
    "resources": (
        "resources/list",
        result(resources=[{"uri": "a://b", "name": "b"}], ttlMs=1, cacheScope="public"),
    ),
    "templates": (
        "resources/templates/list",
        result(
            resourceTemplates=[{"uriTemplate": "a://{b}", "name": "b"}],
            ttlMs=1,
            cacheScope="public",
        ),
    ),
    "read": (
        "resources/read",
        result(contents=[{"uri": "a://b", "text": "hi"}], ttlMs=0, cacheScope="private"),
    ),
    "read that asks": (
        "resources/read",
        result(resultType="input_required", inputRequests=REQUESTS, requestState="sealed"),
    ),
    "prompts": (
        "prompts/list",
        result(prompts=[{"name": "p"}], ttlMs=1, cacheScope="public"),
    ),
    "prompt": (
        "prompts/get",
        result(messages=[{"role": "user", "content": {"type": "text", "text": "hi"}}]),
    ),
    "prompt that asks": (
        "prompts/get",
        result(resultType="input_required", inputRequests=REQUESTS, requestState="sealed"),
    ),
    "completion": ("completion/complete", result(completion={"values": ["a"], "total": 1})),
    "create": ("tools/call", result(**TASK, **{"resultType": "task"})),
    "working": ("tasks/get", result(**TASK)),
    "asking": (
        "tasks/get",
        result(**{**TASK, "status": "input_required", "inputRequests": REQUESTS}),
    ),
    "completed": (
        "tasks/get",
        result(
            **{**TASK, "status": "completed", "result": {**TEXT, "resultType": "complete"}},
        ),
    ),
    "failed": (
        "tasks/get",
        result(**{**TASK, "status": "failed", "error": {"code": -32603, "message": "no"}}),
    ),
    "cancelled": ("tasks/get", result(**{**TASK, "status": "cancelled"})),
    "listen": (
        "subscriptions/listen",
        result(_meta={"io.modelcontextprotocol/subscriptionId": 1, **SERVER_INFO}),
    ),
    "update": ("tasks/update", result(_meta=SERVER_INFO)),
    "cancel": ("tasks/cancel", result()),
    "parse error": ("", {**error(-32700)}),
    "mismatch": ("tasks/get", error(-32020)),
    "capability": (
        "tools/call",
        error(-32021, data={"requiredCapabilities": {"elicitation": {}}}),
    ),
    "version": (
        "initialize",
        error(-32022, data={"supported": ["2026-07-28"], "requested": "2025-11-25"}),
    ),
}


@pytest.mark.parametrize(("method", "message"), GOOD.values(), ids=GOOD)
def test_a_message_of_the_specification_passes(method: str, message: dict[str, Any]) -> None:
    check(method, message)


def test_an_unreadable_request_is_answered_without_an_id() -> None:
    check("", {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}})


def broken(name: str, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A good message whose result, or error, is changed; None removes a member."""
    method, message = copy.deepcopy(GOOD[name])
    body = message["result" if "result" in message else "error"]
    for member, value in changes.items():
        if value is None:
            del body[member]
        else:
            body[member] = value
    return method, message


BAD: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "not JSON-RPC": ("tasks/cancel", {"id": 1, "result": {"resultType": "complete"}}),
    "no id": ("tasks/cancel", {"jsonrpc": "2.0", "result": {"resultType": "complete"}}),
    "null id": ("tasks/cancel", {**result(), "id": None}),
    "result and error": ("tasks/cancel", {**result(), **error(-32603)}),
    "extra member": ("tasks/cancel", {**result(), "method": "tasks/cancel"}),
    "NaN": ("tools/call", result(**TEXT, structuredContent=float("nan"))),
    "no resultType": broken("call", resultType=None),
    "unknown resultType": broken("call", resultType="later"),
    "a task elsewhere": broken("working", resultType="task"),
    "discover without versions": broken("discover", supportedVersions=None),
    "discover without ttlMs": broken("discover", ttlMs=None),
    "discover with a bad scope": broken("discover", cacheScope="mine"),
    "list without a schema": broken("list", tools=[{"name": "echo"}]),
    "list with a bad schema": broken(
        "list", tools=[{"name": "e", "inputSchema": {"type": "array"}}]
    ),
    "call without content": broken("call", content=None),
    "call with a bad block": broken("call", content=[{"type": "text"}]),
    "call with a bad flag": broken("call", isError="yes"),
    "asking for nothing and waiting for nothing": broken(
        "call that asks", inputRequests=None, requestState=None
    ),
    "asking nonsense in a call": broken(
        "call that asks", inputRequests={"key": {"method": "ping"}}
    ),
    "a page without a url": broken(
        "call that asks",
        inputRequests={
            "page": {"method": "elicitation/create", "params": {"mode": "url", "message": "Go"}}
        },
    ),
    "a state that is no text": broken("call that asks", requestState={}),
    "questions beside content": broken("call that asks", content=[]),
    "questions in a list": ("tools/list", GOOD["call that asks"][1]),
    "questions in a completion": ("completion/complete", GOOD["call that asks"][1]),
    "questions of a task": ("tasks/get", GOOD["call that asks"][1]),
    "a task of a prompt": ("prompts/get", GOOD["create"][1]),
    "resources without a uri": broken("resources", resources=[{"name": "b"}]),
    "resources without ttlMs": broken("resources", ttlMs=None),
    "templates as resources": ("resources/templates/list", GOOD["resources"][1]),
    "read without contents": broken("read", contents=None),
    "read of neither text nor bytes": broken("read", contents=[{"uri": "a://b"}]),
    "read without a scope": broken("read", cacheScope=None),
    "prompts without a name": broken("prompts", prompts=[{"title": "P"}]),
    "prompts with a bad scope": broken("prompts", cacheScope="mine"),
    "prompt without messages": broken("prompt", messages=None),
    "prompt of nobody's": broken(
        "prompt", messages=[{"role": "system", "content": {"type": "text", "text": "hi"}}]
    ),
    "prompt of plain text": broken("prompt", messages=[{"role": "user", "content": "hi"}]),
    "completion of numbers": broken("completion", completion={"values": [1]}),
    "completion of 101 values": broken("completion", completion={"values": ["a"] * 101}),
    "a missing resource by its old code": ("resources/read", error(-32002)),
    "a handshake": ("initialize", result(protocolVersion="2026-07-28")),
    "create without taskId": broken("create", taskId=None),
    "create without ttlMs": broken("create", ttlMs=None),
    "create with a bad status": broken("create", status="submitted"),
    "create with local time": broken("create", createdAt="2026-11-21T10:00:00"),
    "create with a date": broken("create", createdAt="21 November"),
    "a float interval": broken("working", pollIntervalMs=0.5),
    "asking without questions": broken("asking", inputRequests=None),
    "asking nonsense": broken("asking", inputRequests={"key": {"method": "ping"}}),
    "asking in a nested form": broken(
        "asking",
        inputRequests={
            "key": {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "Sure?",
                    "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}},
                },
            }
        },
    ),
    "questions while working": broken("working", inputRequests=REQUESTS),
    "completed without result": broken("completed", result=None),
    "completed with another result": broken("completed", result={"resultType": "complete"}),
    "completed with an open result": broken("completed", result={**TEXT, "resultType": "task"}),
    "failed without error": broken("failed", error=None),
    "failed with a bad error": broken("failed", error={"message": "no"}),
    "failed with an undefined code": broken("failed", error={"code": -32099, "message": "no"}),
    "a listen without a tag": broken("listen", _meta=SERVER_INFO),
    "a listen without _meta": broken("listen", _meta=None),
    "a listen of another": broken("listen", _meta={"io.modelcontextprotocol/subscriptionId": 2}),
    "a listen of a text": broken("listen", _meta={"io.modelcontextprotocol/subscriptionId": "1"}),
    "a listen of true": broken("listen", _meta={"io.modelcontextprotocol/subscriptionId": True}),
    "a listen of 1.0": broken("listen", _meta={"io.modelcontextprotocol/subscriptionId": 1.0}),
    "a listen with more": broken("listen", notifications={}),
    "a listen with a secret": broken(
        "listen", _meta={"io.modelcontextprotocol/subscriptionId": 1, "mcp-tasks/revision": 1}
    ),
    "an acknowledgement with a payload": broken("update", status="working"),
    "an undefined error code": ("tools/call", error(-32042)),
    "an old error code": ("tools/call", error(-32002)),
    "an error without message": ("tools/call", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}),
    "an error without id": ("tools/call", {"jsonrpc": "2.0", "error": error(-32602)["error"]}),
    "a capability error that names none": broken("capability", data=None),
    "a version error that names none": broken("version", data={"supported": ["2026-07-28"]}),
    "a result of an unknown method": ("ping", result()),
}


@pytest.mark.parametrize(("method", "message"), BAD.values(), ids=BAD)
def test_a_message_outside_the_specification_is_rejected(
    method: str, message: dict[str, Any]
) -> None:
    with pytest.raises(InvalidMessage):
        check(method, message)


# revisions with a handshake

OLD_TOOL: Final = {"name": "echo", "inputSchema": {"type": "object"}}
OLD: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "initialize": (
        "initialize",
        bare(
            protocolVersion="2025-11-25",
            capabilities={"tools": {}},
            serverInfo={"name": "unit", "version": "1"},
        ),
    ),
    "ping": ("ping", bare()),
    "level": ("logging/setLevel", bare()),
    "list": ("tools/list", bare(tools=[OLD_TOOL])),
    "call": ("tools/call", bare(**TEXT, structuredContent={"a": 1})),
    "resources": ("resources/list", bare(resources=[{"uri": "a://b", "name": "b"}])),
    "templates": (
        "resources/templates/list",
        bare(resourceTemplates=[{"uriTemplate": "a://{b}", "name": "b"}]),
    ),
    "read": ("resources/read", bare(contents=[{"uri": "a://b", "blob": "aGk="}])),
    "prompts": ("prompts/list", bare(prompts=[{"name": "p"}])),
    "prompt": (
        "prompts/get",
        bare(messages=[{"role": "user", "content": {"type": "text", "text": "hi"}}]),
    ),
    "completion": ("completion/complete", bare(completion={"values": []})),
    "not found": ("resources/read", error(-32002, data={"uri": "a://b"})),
    "bad parameters": ("tools/call", error(-32602)),
}
each_handshake = pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26"])


@each_handshake
@pytest.mark.parametrize(("method", "message"), OLD.values(), ids=OLD)
def test_a_message_of_an_older_revision_passes_in_it_only(
    method: str, message: dict[str, Any], revision: str
) -> None:
    check(method, message, revision)
    if "result" in message or message["error"]["code"] == -32002:
        with pytest.raises(InvalidMessage):
            check(method, message)


def old(name: str, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A good message of an older revision, with another result or error."""
    method, message = copy.deepcopy(OLD[name])
    message["result" if "result" in message else "error"].update(changes)
    return method, message


WRONG_IN_OLD: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a resultType": old("call", resultType="complete"),
    "questions": old("call", inputRequests=REQUESTS),
    "a state": old("call", requestState="sealed"),
    "a time to live": old("list", ttlMs=1),
    "a cache's scope": old("read", cacheScope="public"),
    "an answer to a ping": old("ping", pong=True),
    "a version that is no text": old("initialize", protocolVersion=1),
    "a server without a name": old("initialize", serverInfo={}),
    "a list of no tools": old("list", tools={}),
    "an output schema of no object": old(
        "list", tools=[{**OLD_TOOL, "outputSchema": {"type": "array"}}]
    ),
    "structured content that is no object": old("call", structuredContent=[1]),
    "a prompt of nobody's": old("prompt", messages=[{"role": "system", "content": {}}]),
    "contents without a uri": old("read", contents=[{"text": "hi"}]),
    "a task's result": ("tasks/get", bare(**TASK)),
    "a discovery": ("server/discover", bare(supportedVersions=[])),
    "not found, of a tool": ("tools/call", error(-32002)),
    "a code of the next revision": ("tools/call", GOOD["capability"][1]),
    "a code of nobody's": ("tools/call", error(-1)),
    "an error without an id": ("tools/call", {"jsonrpc": "2.0", "error": error(-32602)["error"]}),
    "not JSON-RPC": ("ping", {"id": 1, "result": {}}),
    "an extra member": ("ping", {**bare(), "method": "ping"}),
}


@pytest.mark.parametrize(("method", "message"), WRONG_IN_OLD.values(), ids=WRONG_IN_OLD)
def test_a_message_outside_an_older_revision_is_rejected(
    method: str, message: dict[str, Any]
) -> None:
    with pytest.raises(InvalidMessage):
        check(method, message, "2025-11-25")


def test_a_revision_that_nobody_knows_is_not_taken_for_another() -> None:
    with pytest.raises(LookupError):
        check("ping", bare(), "2024-11-05")


# notifications on a request's own stream


def note(name: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}


NOTES: Final[dict[str, dict[str, Any]]] = {
    "progress": note("progress", progressToken="t", progress=1),
    "progress of a whole": note(
        "progress", progressToken=0, progress=0.5, total=1, message="half-way"
    ),
    "log": note("message", level="info", data={"a": [1]}),
    "log of a logger": note("message", level="emergency", data="out", logger="power"),
}


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@pytest.mark.parametrize("message", NOTES.values(), ids=NOTES)
def test_a_notification_of_the_specification_passes(message: dict[str, Any], revision: str) -> None:
    check_notification(message, revision)


WRONG_NOTES: Final[dict[str, dict[str, Any]]] = {
    "an id": {**NOTES["log"], "id": 1},
    "no version": {k: v for k, v in NOTES["log"].items() if k != "jsonrpc"},
    "no method": {"jsonrpc": "2.0", "params": {}},
    "no parameters": {"jsonrpc": "2.0", "method": "notifications/progress"},
    "a response": result(),
    "another notification": note("tools/list_changed"),
    "a request of the server's": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    "progress without a token": note("progress", progress=1),
    "progress under a fraction": note("progress", progressToken=1.5, progress=1),
    "progress as text": note("progress", progressToken="t", progress="1"),
    "progress that JSON does not have": note("progress", progressToken="t", progress=float("inf")),
    "a log without data": note("message", level="info"),
    "a log of another level": note("message", level="trace", data=1),
}


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize("message", WRONG_NOTES.values(), ids=WRONG_NOTES)
def test_a_notification_outside_the_specification_is_rejected(
    message: dict[str, Any], revision: str
) -> None:
    with pytest.raises(InvalidMessage):
        check_notification(message, revision)


def progress(*values: float, token: str = "t") -> list[dict[str, Any]]:
    return [note("progress", progressToken=token, progress=value) for value in values]


def test_progress_increases_for_each_token() -> None:
    """progress.mdx, "Progress Flow"."""
    check_notifications([*progress(1, 2, 2.5), NOTES["log"], *progress(1, token="other")])
    for wrong in (progress(1, 1), progress(1, 0.5), [*progress(2), NOTES["log"], *progress(1)]):
        with pytest.raises(InvalidMessage, match="progress"):
            check_notifications(wrong)


def test_every_notification_of_a_stream_is_checked() -> None:
    with pytest.raises(InvalidMessage):
        check_notifications([NOTES["log"], WRONG_NOTES["a log without data"]])


# what answers a listen

TAG: Final = "io.modelcontextprotocol/subscriptionId"
BEFORE, LATER = "2026-11-21T10:00:00.000Z", "2026-11-21T10:00:01Z"
COMPLETED: Final[dict[str, Any]] = {
    "status": "completed",
    "result": {**TEXT, "resultType": "complete"},
}


def acknowledged(*task_ids: str, tag: Any = 7, **filters: Any) -> dict[str, Any]:
    notifications = {"taskIds": list(task_ids), **filters}
    return note("subscriptions/acknowledged", notifications=notifications, _meta={TAG: tag})


def change(task_id: str = "c1-0", tag: Any = 7, **fields: Any) -> dict[str, Any]:
    return note("tasks", **{**TASK, "taskId": task_id, "_meta": {TAG: tag}, **fields})


def ended(tag: Any = 7, request_id: Any = 7) -> dict[str, Any]:
    return {**result(_meta={TAG: tag, **SERVER_INFO}), "id": request_id}


TWO: Final = ["c1-0", "c1-1"]
ACK: Final = acknowledged(*TWO)
LISTENS: Final[dict[str, list[dict[str, Any]]]] = {
    "nothing of interest": [acknowledged(), ended()],
    "nothing yet": [ACK, ended()],
    "a state of each": [ACK, change("c1-1"), change("c1-0", **COMPLETED), ended()],
    "to and fro": [
        ACK,
        change(),
        change(status="input_required", inputRequests=REQUESTS, lastUpdatedAt=LATER),
        change(lastUpdatedAt=LATER, statusMessage="on"),
        change(status="failed", error={"code": -32603, "message": "no"}, lastUpdatedAt=LATER),
        ended(),
    ],
}


@pytest.mark.parametrize("messages", LISTENS.values(), ids=LISTENS)
def test_a_listen_of_the_specification_passes(messages: list[dict[str, Any]]) -> None:
    check_listen(7, messages, ["c1-0", "c1-1", "c1-2"])


def test_a_listen_to_no_tasks_is_told_of_none() -> None:
    ack = note("subscriptions/acknowledged", notifications={}, _meta={TAG: 7})
    check_listen(7, [ack, ended()], None)
    for wanted, messages in ((None, [acknowledged()]), ([], [ack]), (None, [ack, change()])):
        with pytest.raises(InvalidMessage):
            check_listen(7, [*messages, ended()], wanted)


@pytest.mark.parametrize("request_id", [7, 0, -1, "7", ""])
def test_the_tag_of_a_listen_keeps_its_type(request_id: Any) -> None:
    """subscriptions.mdx, "Receiving Notifications": the value is the id of the request."""
    ack, told = acknowledged("c1-0", tag=request_id), change(tag=request_id)
    end = ended(request_id, request_id)
    check_listen(request_id, [ack, told, end], ["c1-0"])
    for other in ("7" if request_id == 7 else 7, None, True, False, 7.0, 0.0):
        for wrong in (
            [acknowledged("c1-0", tag=other), told, end],
            [ack, change(tag=other), end],
            [ack, told, ended(other, request_id)],
            [ack, told, ended(request_id, other)],
            [ack, told, ended(other, other)],
        ):
            with pytest.raises(InvalidMessage):
                check_listen(request_id, wrong, ["c1-0"])


WRONG_LISTENS: Final[dict[str, list[dict[str, Any]]]] = {
    "nothing": [],
    "the end alone": [ended()],
    "no end": [ACK, change()],
    "an error at the end": [ACK, {**error(-32603), "id": 7}],
    "something after the end": [ACK, ended(), change()],
    "two ends": [ACK, ended(), ended()],
    "no acknowledgement": [change(), ended()],
    "the acknowledgement later": [change(), ACK, ended()],
    "two acknowledgements": [ACK, ACK, ended()],
    "an id that was not asked for": [acknowledged("c1-9"), ended()],
    "an id twice": [acknowledged("c1-0", "c1-0"), ended()],
    "an id that is none": [acknowledged("c1-0", 1), ended()],  # type: ignore[arg-type]
    "what no filter has": [acknowledged(somethingChanged=True), ended()],
    "a task that was not acknowledged": [acknowledged("c1-0"), change("c1-1"), ended()],
    "progress": [ACK, note("progress", progressToken=1, progress=1, _meta={TAG: 7}), ended()],
    "a log": [ACK, note("message", level="info", data=1, _meta={TAG: 7}), ended()],
    "a list without a tag": [ACK, note("tools/list_changed", _meta={}), ended()],
    "a resource without a uri": [ACK, note("resources/updated", _meta={TAG: 7}), ended()],
    "a change without a tag": [ACK, change(_meta={}), ended()],
    "an acknowledgement without a tag": [
        note("subscriptions/acknowledged", notifications={"taskIds": []}),
        ended(),
    ],
    "a change with a secret": [ACK, change(_meta={TAG: 7, "mcp-tasks/revision": 1}), ended()],
    "a change with a member more": [ACK, change(principal="anonymous"), ended()],
    "a change with a resultType": [ACK, change(resultType="complete"), ended()],
    "a change without a time": [ACK, change(lastUpdatedAt="now"), ended()],
    "a completed task without a result": [ACK, change(status="completed"), ended()],
    "a working task with a result": [
        ACK,
        change(**{**COMPLETED, "status": "working"}),
        ended(),
    ],
    "a result that is none": [ACK, change(**{**COMPLETED, "result": {}}), ended()],
    "a time that goes back": [ACK, change(lastUpdatedAt=LATER), change(), ended()],
    "an end that does not last": [
        ACK,
        change(**COMPLETED),
        change(lastUpdatedAt=LATER),
        ended(),
    ],
    "an end twice": [ACK, change(**COMPLETED), change(**COMPLETED), ended()],
    "another birthday": [ACK, change(), change(createdAt=LATER), ended()],
    "another lifetime": [ACK, change(), change(ttlMs=2), ended()],
    "an id": [ACK, {**change(), "id": 7}, ended()],
}


@pytest.mark.parametrize("messages", WRONG_LISTENS.values(), ids=WRONG_LISTENS)
def test_a_listen_outside_the_specification_is_rejected(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidMessage):
        check_listen(7, messages, ["c1-0", "c1-1", "c1-2"])


def test_times_are_compared_as_times() -> None:
    """`10:00:01Z` is after `10:00:00.000Z`, and as a text before `10:00:01.000Z`."""
    late = change(lastUpdatedAt="2026-11-21T10:00:01.000Z")
    check_heard(7, [ACK, change(lastUpdatedAt=BEFORE), change(lastUpdatedAt=LATER), late], TWO)
    with pytest.raises(InvalidMessage, match="goes back"):
        check_heard(7, [ACK, late, change(lastUpdatedAt=BEFORE)], TWO)


def test_what_was_heard_so_far_is_checked_without_its_end() -> None:
    check_heard(7, [ACK, change()], TWO)
    for wrong in ([], [change()], [ACK, ended()], [ACK, change("c1-2")]):
        with pytest.raises(InvalidMessage):
            check_heard(7, wrong, TWO)
