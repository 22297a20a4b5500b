"""The check that all tests of messages rest on rejects what it should."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from tests.wire import InvalidMessage, check

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


def result(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **fields}}


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
