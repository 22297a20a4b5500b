"""HTTP headers that mirror the body (streamable-http.mdx, "Request Metadata"; SEP-2243).

Intermediaries route by these headers without reading the body. A request whose headers and body
disagree is refused: otherwise two parties would act on two different requests.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .errors import ErrorCode, ProtocolError
from .jsonrpc import Request
from .meta import RequestMeta

MIRRORED_NAME: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Method -> the parameter that `Mcp-Name` mirrors (for tasks/*: tasks.md, "Routing Headers")."""

NAME_MAY_BE_MISSING: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""Where a widely used client omits Mcp-Name. Within a cell, a missing header misroutes nothing, so
it is tolerated; a header that differs from the body is refused."""

_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
_DATA = frozenset({"const", "default", "enum", "examples"})
_SENTINEL = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_FIELD_VALUE = re.compile(r"[\x20-\x7e\t]*")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Headers:
    """Request headers, by case-insensitive name (RFC 9110, section 5.1)."""

    def __init__(self, headers: Mapping[str, Sequence[str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, values in headers.items():
            self._values.setdefault(name.lower(), []).extend(values)

    def get(self, name: str) -> str | None:
        """The value, stripped of surrounding whitespace; None when the header is absent.

        Raises ProtocolError (-32020) for a mirrored header that was sent twice: an intermediary may
        have routed by the other value.
        """
        values = self._values.get(name.lower())
        if not values:
            return None
        if len(values) > 1 and name.lower().startswith("mcp-"):
            raise _mismatch(f"the {name} header was sent {len(values)} times")
        return values[0].strip(" \t")

    def all(self, name: str) -> list[str]:
        """All values of a header, stripped of surrounding whitespace."""
        return [value.strip(" \t") for value in self._values.get(name.lower(), ())]


@dataclass(frozen=True, slots=True)
class MirroredParameter:
    """A tool parameter that its schema annotates with `x-mcp-header`."""

    header: str
    path: tuple[str, ...]
    type: str


def mirrored_parameters(input_schema: Mapping[str, Any]) -> list[MirroredParameter]:
    """The parameters that `x-mcp-header` annotates, as far as `properties` lead to them.

    Raises ValueError for an annotation that the specification does not allow (tools.mdx,
    "x-mcp-header"). Clients must drop such a tool, so its declaration is refused.
    """
    found = list(_annotations(input_schema, ()))
    if _count_annotations(input_schema) > len(found):
        raise ValueError(
            "x-mcp-header is allowed on properties of the root, or of their properties"
        )
    names = [parameter.header.lower() for parameter in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"x-mcp-header {name!r} is used twice")
    return found


def check_mirrored_headers(request: Request, meta: RequestMeta, headers: Headers) -> None:
    """Refuse a request whose standard headers are missing or differ from its body.

    Raises ProtocolError (-32020, HTTP 400).
    """
    _compare("MCP-Protocol-Version", headers.get("mcp-protocol-version"), meta.protocol_version)
    _compare("Mcp-Method", headers.get("mcp-method"), request.method)
    parameter = MIRRORED_NAME.get(request.method)
    if parameter is None:
        return
    value = request.params.get(parameter)
    header = headers.get("mcp-name")
    if header is None and request.method in NAME_MAY_BE_MISSING:
        return
    if isinstance(value, str):  # anything else is malformed params, which the method reports
        _compare("Mcp-Name", None if header is None else decode_header(header, "Mcp-Name"), value)


def check_mirrored_arguments(
    mirrored: Sequence[MirroredParameter], arguments: Mapping[str, Any], headers: Headers
) -> None:
    """Refuse a `tools/call` whose `Mcp-Param-*` headers differ from its arguments.

    An absent or null argument has no header; every other mirrored argument must have one. Integers
    compare numerically ("42.0" equals 42). Raises ProtocolError (-32020).
    """
    for parameter in mirrored:
        name = f"Mcp-Param-{parameter.header}"
        header = headers.get(name)
        value = _at(arguments, parameter.path)
        if value is None:
            if header is not None:
                raise _mismatch(f"{name} is present but the argument is not")
            continue
        if header is None:
            raise _mismatch(f"{name} is missing but the argument is present")
        decoded = decode_header(header, name)
        if parameter.type == "integer" and _equal_integers(decoded, value):
            continue
        if decoded != _rendered(value):
            raise _mismatch(f"{name} does not match the argument {'.'.join(parameter.path)}")


def decode_header(value: str, name: str) -> str:
    """Decode the Base64 sentinel `=?base64?...?=` ("Value Encoding"); other values are unchanged.

    Raises ProtocolError (-32020) for characters that no header can carry, and for invalid Base64.
    """
    if not _FIELD_VALUE.fullmatch(value):
        raise _mismatch(f"{name} contains characters that a header value cannot carry")
    sentinel = _SENTINEL.fullmatch(value)
    if sentinel is None:
        return value
    try:
        return base64.b64decode(sentinel[1], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _mismatch(f"{name} is not valid Base64 of UTF-8") from None


def _annotations(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[MirroredParameter]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, child in properties.items():
        if not isinstance(child, Mapping):
            continue
        header = child.get("x-mcp-header")
        if header is not None:
            if not isinstance(header, str) or not re.fullmatch(
                r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", header
            ):
                raise ValueError(f"x-mcp-header of {name!r} must be an HTTP token, not {header!r}")
            if child.get("type") not in ("string", "integer", "boolean"):
                raise ValueError(f"x-mcp-header of {name!r} needs a string, integer or boolean")
            yield MirroredParameter(header, (*path, name), child["type"])
        yield from _annotations(child, (*path, name))


def _count_annotations(schema: object) -> int:
    """Count the annotations anywhere in a schema; values of its data keywords are no schemas."""
    if isinstance(schema, Mapping):
        own = int("x-mcp-header" in schema)
        return own + sum(
            sum(map(_count_annotations, child.values()))
            if key in _NAMED_SCHEMAS and isinstance(child, Mapping)
            else _count_annotations(child)
            for key, child in schema.items()
            if key not in _DATA
        )
    if isinstance(schema, list):
        return sum(map(_count_annotations, schema))
    return 0


def _compare(name: str, header: str | None, value: str) -> None:
    if header is None:
        raise _mismatch(f"the {name} header is missing")
    if header != value:
        raise _mismatch(f"the {name} header does not match the body")


def _equal_integers(header: str, value: object) -> bool:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not _DECIMAL.fullmatch(header)
    ):
        return False
    whole, _, fraction = header.partition(".")
    return fraction.strip("0") == "" and len(whole) <= 20 and int(whole) == value


def _rendered(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    return None


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _mismatch(reason: str) -> ProtocolError:
    return ProtocolError(ErrorCode.HEADER_MISMATCH, f"Header mismatch: {reason}")
