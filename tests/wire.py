"""Validate what the server sends against the specification's own JSON Schemas.

`tests/schema/` holds the schemas as released: `mcp-2026-07-28.json` is the protocol revision,
`ext-tasks.json` the tasks extension. They leave every object open, so a few rules of the text that
they cannot express are checked beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

SCHEMAS: Final = Path(__file__).with_name("schema")
CORE: Final = "mcp-2026-07-28.json"
TASKS: Final = "ext-tasks.json"

RESPONSES: Final[Mapping[str, str]] = {
    "server/discover": "DiscoverResultResponse",
    "tools/list": "ListToolsResultResponse",
}
"""Method -> the definition of its whole response, in the core's schema."""

RESULTS: Final[Mapping[str, str]] = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}
"""Method -> the definition of its result, in the extension's schema."""

ERRORS: Final[Mapping[int, str]] = {
    -32700: "ParseError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
}
"""Code -> the definition of the `error` member, in the core's schema."""

ERROR_RESPONSES: Final[Mapping[int, str]] = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
"""Code -> the definition of the whole response, in the core's schema."""

ANSWERABLE_WITHOUT_ID: Final = frozenset({-32700, -32600})
"""The codes of a request whose id may not have been readable (basic/index.mdx, "Responses")."""

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class InvalidMessage(AssertionError):
    """A message that the specification does not allow; the text says where and why."""


def check(method: str, message: dict[str, Any]) -> None:
    """Check the server's response to a request of `method`.

    Raises InvalidMessage.
    """
    try:
        json.dumps(message, allow_nan=False)
    except ValueError as error:
        raise InvalidMessage(f"{method}: not JSON: {error}") from None
    if "error" in message:
        _members(method, message, {"jsonrpc", "id", "error"})
        _check_error(method, message)
    else:
        _members(method, message, {"jsonrpc", "id", "result"})
        _check_result(method, message)


def _check_result(method: str, message: dict[str, Any]) -> None:
    _validate(method, CORE, "JSONRPCResultResponse", message)
    result = message["result"]
    kind = result["resultType"]
    if method == "tools/call" and kind == "task":
        _validate(method, TASKS, "CreateTaskResult", result)
        _check_times(method, result)
        return
    if kind != "complete":
        raise InvalidMessage(f"{method}: the resultType {kind!r} is not one of this method's")
    if method == "tools/call":
        _validate(method, CORE, "CallToolResult", result)
    elif method in RESPONSES:
        _validate(method, CORE, RESPONSES[method], message)
    elif method in RESULTS:
        _validate(method, TASKS, RESULTS[method], result)
        if method == "tasks/get":
            _check_times(method, result)
            _check_payload(method, result)
        else:
            # tasks.md: "acknowledge the request with an empty result".
            _members(method, result, {"resultType", "_meta"})
    else:
        raise InvalidMessage(f"{method}: this server has no such method, and yet a result")


def _check_payload(method: str, task: dict[str, Any]) -> None:
    """What a status adds, and that no other status adds it (tasks.md, "Task Status")."""
    payloads = {"input_required": "inputRequests", "completed": "result", "failed": "error"}
    for status, member in payloads.items():
        if (task["status"] == status) != (member in task):
            raise InvalidMessage(
                f"{method}: a task that is {task['status']} has {member!r}, or not"
            )
    if task["status"] == "completed":
        # "The structure matches the result type of the original request": a tools/call.
        _validate(f"{method} result", CORE, "CallToolResult", task["result"])
        if task["result"]["resultType"] != "complete":
            raise InvalidMessage(f"{method}: the task's result is not complete")
    if task["status"] == "failed":
        _validate(f"{method} error", CORE, "Error", task["error"])
        _check_code(method, task["error"])


def _check_error(method: str, message: dict[str, Any]) -> None:
    _validate(method, CORE, "JSONRPCErrorResponse", message)
    code = _check_code(method, message["error"])
    if code in ERROR_RESPONSES:
        _validate(method, CORE, ERROR_RESPONSES[code], message)
    else:
        _validate(method, CORE, ERRORS[code], message["error"])
    if "id" not in message and code not in ANSWERABLE_WITHOUT_ID:
        raise InvalidMessage(f"{method}: the error {code} answers no request, it has no id")


def _check_code(method: str, error: dict[str, Any]) -> int:
    code: int = error["code"]
    if code not in ERRORS and code not in ERROR_RESPONSES:
        raise InvalidMessage(f"{method}: the error code {code} is not defined")
    return code


def _check_times(method: str, task: dict[str, Any]) -> None:
    for member in ("createdAt", "lastUpdatedAt"):
        if not _TIMESTAMP.fullmatch(task[member]):
            raise InvalidMessage(f"{method}: {member} is not ISO 8601 in UTC: {task[member]!r}")


def _members(method: str, value: dict[str, Any], allowed: set[str]) -> None:
    extra = set(value) - allowed
    if extra:
        raise InvalidMessage(f"{method}: unexpected members {sorted(extra)}")


def _validate(what: str, file: str, definition: str, value: Any) -> None:
    error = best_match(_validator(file, definition).iter_errors(value))
    if error is not None:
        raise InvalidMessage(f"{what}: not a {definition}: {error.json_path}: {error.message}")


@cache
def _validator(file: str, definition: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / file).read_text(encoding="utf-8"))
    if definition not in schema["$defs"]:
        raise LookupError(f"{file} has no definition {definition}")
    return Draft202012Validator({**schema, "$ref": f"#/$defs/{definition}"})
