"""JSON-RPC 2.0 messages as MCP restricts them (2026-07-28 basic/index.mdx, "Messages").

A POST body is one message. Batches are for 2025-03-26 alone, and responses for the revisions in
which servers send requests. A request id is a string or an integer, never null.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeGuard

from .errors import ErrorCode, ProtocolError

RequestId = str | int

MAX_DEPTH: Final = 100
"""Levels of arrays and objects that every recursive reader and writer of JSON can handle."""

MAX_ID_CHARACTERS: Final = 1000
"""Of a request id or a progress token, which responses repeat."""
ID_TYPES: Final = f"a string of at most {MAX_ID_CHARACTERS} characters or an integer"

_TEXT: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""A JSON string. What may be wrong in it is for the parser to say."""
_EMPTY: Final = re.compile(r"[\[{]\s*[\]}]")


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with `params` an empty object when the body has none."""

    id: RequestId
    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A one-way message; it is never answered."""

    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """A client's response to a request of the server's (2025-11-25 and earlier)."""

    id: RequestId
    result: dict[str, Any] | None
    """None for an error."""


def decode(body: bytes, max_depth: int = MAX_DEPTH, max_values: int | None = None) -> Any:
    """Decode a JSON body with at most `max_depth` levels of arrays and objects, and `max_values`
    values.

    Raises ProtocolError (-32700) when the bytes are not UTF-8, not JSON, nested deeper, or more.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolError(
            ErrorCode.PARSE_ERROR, f"The body is not UTF-8 (byte {error.start})"
        ) from None
    if max_values is not None and _has_more_values(text, max_values):
        raise ProtocolError(
            ErrorCode.PARSE_ERROR, f"The body has more than {max_values} JSON values"
        )
    try:
        message = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\ud" in text or "\\uD" in text:
            # Python's parser accepts a lone surrogate; DynamoDB and S3 cannot store it.
            json.dumps(message, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ProtocolError(
            ErrorCode.PARSE_ERROR, "The body contains half of a surrogate pair"
        ) from None
    except json.JSONDecodeError as error:
        raise ProtocolError(
            ErrorCode.PARSE_ERROR,
            f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
        ) from None
    except RecursionError:
        raise _too_deep(max_depth) from None
    except ValueError:  # NaN, Infinity, and integers beyond the interpreter's digit limit
        raise ProtocolError(
            ErrorCode.PARSE_ERROR, "The body contains a number that JSON does not have"
        ) from None
    if text.count("[") + text.count("{") > max_depth and _depth(message) > max_depth:
        raise _too_deep(max_depth)
    return message


def read(message: Any) -> Request | Notification | Response:
    """Read one decoded message. Raises ProtocolError (-32600) for what is no JSON-RPC 2.0."""
    if isinstance(message, list):
        raise malformed("Batches are not part of MCP: send one message per POST")
    if not isinstance(message, dict):
        raise malformed("The body must be a JSON object: one JSON-RPC request or notification")
    request_id = id_of(message)
    if message.get("jsonrpc") != "2.0":
        raise malformed('"jsonrpc" must be "2.0"')
    method = message.get("method")
    if method is None and ("result" in message or "error" in message):
        return _response(message, request_id)
    if not isinstance(method, str) or not method:
        raise malformed('"method" must be a non-empty string')
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise malformed('"params" must be an object')
    if "id" not in message:
        return Notification(method, params)
    if request_id is None:
        raise malformed(f'"id" must be {ID_TYPES}, and not null')
    return Request(request_id, method, params)


def _response(message: dict[str, Any], request_id: RequestId | None) -> Response:
    if request_id is None:
        raise malformed(f'"id" of a response must be that of the request, {ID_TYPES}')
    if "result" in message and "error" in message:
        raise malformed('A response has a "result" or an "error", and not both')
    answer = message.get("result", message.get("error"))
    if not isinstance(answer, dict):
        raise malformed('"result" or "error" must be an object')
    return Response(request_id, answer if "result" in message else None)


def result_response(request_id: RequestId, result: dict[str, Any]) -> dict[str, Any]:
    """A result response."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: RequestId | None, error: ProtocolError) -> dict[str, Any]:
    """An error response, without an id when the id of the request could not be read."""
    response: dict[str, Any] = {"jsonrpc": "2.0"}
    if request_id is not None:
        response["id"] = request_id
    response["error"] = error.as_error()
    return response


def malformed(message: str) -> ProtocolError:
    """-32600: the message is not valid JSON-RPC."""
    return ProtocolError(ErrorCode.INVALID_REQUEST, message)


def is_id(value: object) -> TypeGuard[RequestId]:
    """Whether a value may be a request id or a progress token: a string or an integer, and short
    enough to be repeated in responses.
    """
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARACTERS
    return isinstance(value, int) and not isinstance(value, bool)


def id_of(message: Any) -> RequestId | None:
    """The id of a decoded message, which may be any JSON value; None without a valid id."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if is_id(found) else None


def _depth(message: Any) -> int:
    """How deep arrays and objects are nested; found without recursion."""
    depth, level = 0, [message]
    while level:
        containers = [value for value in level if isinstance(value, (list, dict))]
        depth += bool(containers)
        level = [
            child
            for value in containers
            for child in (value.values() if isinstance(value, dict) else value)
        ]
    return depth


def _has_more_values(text: str, limit: int) -> bool:
    """Whether a JSON text holds more values than `limit`; found without making any of them.

    A value is the first of all, the first within an array or object, or comes after a comma. What
    strings hold counts only until there seem to be too many.
    """

    def count(written: str) -> int:
        return 1 + sum(map(written.count, ",[{"))

    if count(text) <= limit:
        return False
    bare = _TEXT.sub("0", text)
    return count(bare) > limit and count(_EMPTY.sub("0", bare)) > limit


def _too_deep(max_depth: int) -> ProtocolError:
    return ProtocolError(
        ErrorCode.PARSE_ERROR, f"The body is nested deeper than {max_depth} levels"
    )


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999 is infinite, which JSON cannot express
        raise ValueError(text)
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
