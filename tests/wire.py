"""Validate what the server sends against the specification's own JSON Schemas.

`tests/schema/` holds the schemas as released: `mcp-2026-07-28.json` and `mcp-2025-11-25.json` are
protocol revisions, `ext-tasks.json` is the tasks extension of the first. They leave every object
open, so a few rules of the text that they cannot express are checked beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

SCHEMAS: Final = Path(__file__).with_name("schema")
CORE: Final = "mcp-2026-07-28.json"
TASKS: Final = "ext-tasks.json"
HANDSHAKE: Final = "mcp-2025-11-25.json"

MODERN: Final = "2026-07-28"
SCHEMA_OF: Final[Mapping[str, str]] = {
    MODERN: CORE,
    "2025-11-25": HANDSHAKE,
    # Their schemas are not kept here. Revisions only added to their results, so what an older one
    # sends has to be valid in 2025-11-25.
    "2025-06-18": HANDSHAKE,
    "2025-03-26": HANDSHAKE,
}

CORE_RESULTS: Final[Mapping[str, str]] = {
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
}
"""Method -> the definition of its result, by the same name in all revisions."""

LISTEN: Final = "subscriptions/listen"

MODERN_RESULTS: Final = {
    **CORE_RESULTS,
    "server/discover": "DiscoverResult",
    LISTEN: "SubscriptionsListenResult",
}

HANDSHAKE_RESULTS: Final = {
    **CORE_RESULTS,
    "tasks/get": "GetTaskResult",
    "tasks/result": "GetTaskPayloadResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
}

TASKS_RESULTS: Final[Mapping[str, str]] = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}
"""Method -> the definition of its result, in the extension's schema."""

MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods that may answer with questions (mrtr.mdx, "Supported Requests")."""

NEW_MEMBERS: Final = frozenset(
    {"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"}
)
"""Members of results that only 2026-07-28 has."""

NOTIFICATIONS: Final[Mapping[str, str]] = {
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
}
"""Method -> the definition of the notifications that a request's own stream may carry."""

REQUESTS: Final[Mapping[str, str]] = {
    "elicitation/create": "ElicitRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "roots/list": "ListRootsRequest",
}
"""Method -> the definition of a request from the server, in the revisions with sessions."""

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
CHANGED: Final = "notifications/tasks"
ANNOUNCEMENTS: Final[Mapping[str, str]] = {
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
}
"""Method of a notification of a change of resources or lists -> its definition."""

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

TASK_MEMBERS: Final = frozenset(
    {
        *("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs"),
        *("pollIntervalMs", "inputRequests", "result", "error"),
        *("parentTaskId", "childTaskIds"),
    }
)
"""Members of a DetailedTask (tasks.md, "Task Status"), and those of SEP-2268."""

TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})

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

RESOURCE_NOT_FOUND: Final = -32002
"""The code of `resources/read` before 2026-07-28 (resources.mdx, "Error Handling")."""

ANSWERABLE_WITHOUT_ID: Final = frozenset({-32700, -32600})
"""The codes of a request whose id may not have been readable (basic/index.mdx, "Responses")."""

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class InvalidMessage(AssertionError):
    """A message that the specification does not allow; the text says where and why."""


def check(method: str, message: dict[str, Any], revision: str = MODERN) -> None:
    """Check the server's response to a request of `method`.

    Raises InvalidMessage.
    """
    _json(method, message)
    if "error" in message:
        _members(method, message, {"jsonrpc", "id", "error"})
        if revision == MODERN:
            _check_error(method, message)
        else:
            _check_handshake_error(method, message, SCHEMA_OF[revision])
    else:
        _members(method, message, {"jsonrpc", "id", "result"})
        _validate(method, SCHEMA_OF[revision], "JSONRPCResultResponse", message)
        if revision == MODERN:
            _check_result(method, message["result"])
            if method == LISTEN:
                _members(method, message["result"], {"resultType", "_meta"})
                about = message["result"]["_meta"]
                _members(f"{method}'s _meta", about, {SUBSCRIPTION_ID, SERVER_INFO})
                _check_tag("its result", about, message["id"])
        else:
            _check_handshake_result(method, message["result"], SCHEMA_OF[revision])


def check_notification(message: dict[str, Any], revision: str = MODERN) -> None:
    """Check one message of a request's own stream, before its response.

    Raises InvalidMessage.
    """
    method = str(message.get("method"))
    _json(method, message)
    _members(method, message, {"jsonrpc", "method", "params"})
    if method not in NOTIFICATIONS:
        raise InvalidMessage(f"{method}: does not belong on a request's own stream")
    _validate(method, SCHEMA_OF[revision], NOTIFICATIONS[method], message)


def check_definition(file: str, definition: str, value: Any) -> None:
    """Check a value by one definition of a schema. Raises InvalidMessage."""
    _validate(definition, file, definition, value)


def check_request(message: dict[str, Any], revision: str) -> None:
    """Check a request from the server. Raises InvalidMessage."""
    method = str(message.get("method"))
    _json(method, message)
    _members(method, message, {"jsonrpc", "id", "method", "params"})
    if method not in REQUESTS:
        raise InvalidMessage(f"{method}: no request that servers send")
    _validate(method, SCHEMA_OF[revision], REQUESTS[method], message)


def check_notifications(messages: Iterable[dict[str, Any]], revision: str = MODERN) -> None:
    """Check all messages of a stream before its response, in their order.

    Raises InvalidMessage.
    """
    last: dict[Any, float] = {}
    for message in messages:
        check_notification(message, revision)
        if message["method"] == "notifications/progress":
            # progress.mdx, "Progress Flow": it MUST increase with each notification.
            token, progress = message["params"]["progressToken"], message["params"]["progress"]
            if token in last and progress <= last[token]:
                raise InvalidMessage(f"progress of {token!r} from {last[token]} to {progress}")
            last[token] = progress


def check_listen(
    request_id: Any, messages: Sequence[dict[str, Any]], wanted_ids: Collection[str] | None
) -> None:
    """Check everything that a `subscriptions/listen` was answered with, from first to last.

    `wanted_ids` are the tasks that it asked for; None when it asked for none, not even for an empty
    list. The stream has to end gracefully. Raises InvalidMessage.
    """
    check_heard(request_id, messages[:-1], wanted_ids)
    answer = messages[-1]
    if "result" not in answer:
        raise InvalidMessage(f"{LISTEN}: the stream ends without a result: {answer}")
    check(LISTEN, answer)
    _check_same_id("the result", answer["id"], request_id)


def check_heard(
    request_id: Any, messages: Sequence[dict[str, Any]], wanted_ids: Collection[str] | None
) -> None:
    """Check what a `subscriptions/listen` was sent before its end, in its order.

    Raises InvalidMessage.
    """
    if not messages:
        raise InvalidMessage(f"{LISTEN}: nothing was acknowledged")
    accepted = _check_acknowledged(messages[0], request_id, wanted_ids)
    known: dict[str, dict[str, Any]] = {}
    for message in messages[1:]:
        if (method := str(message.get("method"))) in ANNOUNCEMENTS:
            _check_notification_of_listen(message, request_id, method)
            _validate(method, CORE, ANNOUNCEMENTS[method], message)
            continue
        params = _check_change(message, request_id)
        task_id = params["taskId"]
        if task_id not in accepted:
            raise InvalidMessage(f"{CHANGED}: {task_id} was not acknowledged")
        if task_id in known:
            _check_forward(known[task_id], params)
        known[task_id] = params


def _check_acknowledged(
    message: dict[str, Any], request_id: Any, wanted_ids: Collection[str] | None
) -> Collection[str]:
    """subscriptions.mdx, "Acknowledgment"; the ids are the extension's."""
    params = _check_notification_of_listen(message, request_id, ACKNOWLEDGED)
    _validate(ACKNOWLEDGED, CORE, "SubscriptionsAcknowledgedNotification", message)
    _members(ACKNOWLEDGED, params, {"_meta", "notifications"})
    lists = {f"{name}ListChanged" for name in ("tools", "prompts", "resources")}
    _members(ACKNOWLEDGED, params["notifications"], {"taskIds", "resourceSubscriptions", *lists})
    _validate(
        ACKNOWLEDGED, TASKS, "TaskSubscriptionAcknowledgedNotifications", params["notifications"]
    )
    if ("taskIds" in params["notifications"]) != (wanted_ids is not None):
        raise InvalidMessage(f"{ACKNOWLEDGED}: taskIds, or none, other than asked for")
    accepted: list[str] = params["notifications"].get("taskIds", [])
    if len(set(accepted)) < len(accepted) or not set(accepted) <= set(wanted_ids or ()):
        raise InvalidMessage(f"{ACKNOWLEDGED}: {accepted} are not of the wanted {wanted_ids}")
    return accepted


def _check_change(message: dict[str, Any], request_id: Any) -> dict[str, Any]:
    """tasks.md, "Task Status Notifications": a DetailedTask and the tag, nothing else."""
    params = _check_notification_of_listen(message, request_id, CHANGED)
    _validate(CHANGED, TASKS, "TaskStatusNotification", message)
    _members(CHANGED, params, {*TASK_MEMBERS, "_meta"})
    _check_times(CHANGED, params)
    _check_payload(CHANGED, params)
    return params


def _check_notification_of_listen(
    message: dict[str, Any], request_id: Any, method: str
) -> dict[str, Any]:
    """What holds for all notifications of a listen ("Receiving Notifications")."""
    if message.get("method") != method:
        raise InvalidMessage(f"{LISTEN}: {method} was due, and not {message}")
    _json(method, message)
    _members(method, message, {"jsonrpc", "method", "params"})
    params: dict[str, Any] = message.get("params", {})
    about = params.get("_meta", {})
    _check_tag(method, about, request_id)
    _members(f"{method}'s _meta", about, {SUBSCRIPTION_ID})
    return params


def _check_tag(what: str, about: dict[str, Any], request_id: Any) -> None:
    if SUBSCRIPTION_ID not in about:
        raise InvalidMessage(f"{what}: has no {SUBSCRIPTION_ID}")
    _check_same_id(what, about[SUBSCRIPTION_ID], request_id)


def _check_same_id(what: str, found: Any, request_id: Any) -> None:
    """Of the same type, too: to Python, 1 is True and 1.0."""
    if type(found) is not type(request_id) or found != request_id:
        raise InvalidMessage(f"{what}: is of {found!r}, and the listen is {request_id!r}")


def _check_forward(before: dict[str, Any], now: dict[str, Any]) -> None:
    """tasks.md, "Task Status": a task does not go backwards, and its end is final."""
    task_id = now["taskId"]
    if before["status"] in TERMINAL:
        raise InvalidMessage(f"{CHANGED}: {task_id} was {before['status']}, and that is final")
    times = [datetime.fromisoformat(task["lastUpdatedAt"]) for task in (before, now)]
    if times != sorted(times):
        raise InvalidMessage(f"{CHANGED}: {task_id} goes back from {times[0]} to {times[1]}")
    for member in ("createdAt", "ttlMs"):
        if before[member] != now[member]:
            raise InvalidMessage(f"{CHANGED}: the {member} of {task_id} has changed")


def _check_result(method: str, result: dict[str, Any]) -> None:
    kind = result["resultType"]
    if kind == "task" and method == "tools/call":
        _validate(method, TASKS, "CreateTaskResult", result)
        _check_times(method, result)
        return
    if kind == "input_required" and method in MAY_ASK:
        _members(method, result, {"resultType", "inputRequests", "requestState", "_meta"})
        _validate(method, CORE, "InputRequiredResult", result)
        if "inputRequests" not in result and "requestState" not in result:
            raise InvalidMessage(f"{method}: neither inputRequests nor requestState")
        return
    if kind != "complete":
        raise InvalidMessage(f"{method}: the resultType {kind!r} is not one of this method's")
    if method in MODERN_RESULTS:
        _validate(method, CORE, MODERN_RESULTS[method], result)
    elif method in TASKS_RESULTS:
        _validate(method, TASKS, TASKS_RESULTS[method], result)
        if method == "tasks/get":
            _check_times(method, result)
            _check_payload(method, result)
        else:
            # tasks.md: "acknowledge the request with an empty result".
            _members(method, result, {"resultType", "_meta"})
    else:
        raise InvalidMessage(f"{method}: this server has no such method, and yet a result")


def _check_handshake_result(method: str, result: dict[str, Any], schema: str) -> None:
    if method not in HANDSHAKE_RESULTS:
        raise InvalidMessage(f"{method}: the revision has no such method, and yet a result")
    _validate(method, schema, HANDSHAKE_RESULTS[method], result)
    if HANDSHAKE_RESULTS[method] == "EmptyResult":
        _members(method, result, {"_meta"})
    new = NEW_MEMBERS & set(result)
    if new:
        raise InvalidMessage(f"{method}: members of a later revision: {sorted(new)}")


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
    _check_id(method, message)


def _check_handshake_error(method: str, message: dict[str, Any], schema: str) -> None:
    _validate(method, schema, "JSONRPCErrorResponse", message)
    code = message["error"]["code"]
    of_resource = method.startswith("resources/") and code == RESOURCE_NOT_FOUND
    if code not in ERRORS and not of_resource:
        raise InvalidMessage(f"{method}: the error code {code} is not one of the revision's")
    _check_id(method, message)


def _check_id(method: str, message: dict[str, Any]) -> None:
    code = message["error"]["code"]
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


def _json(method: str, message: dict[str, Any]) -> None:
    try:
        json.dumps(message, allow_nan=False)
    except ValueError as error:
        raise InvalidMessage(f"{method}: not JSON: {error}") from None


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
