"""Requests to fuzz with, all of them correct: every method, in every revision that has it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.unit.support.stack import NAMED
from tests.wire import MODERN, SCHEMA_OF

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
EVERYTHING: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
    "extensions": {EXTENSION: {}},
}
HANDSHAKE: Final = tuple(version for version in SCHEMA_OF if version != MODERN)
HOST: Final = "mcp.example.com"
SHOWN: Final = 400
"""Characters of a body in a failure's message."""

Json = Any
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Post:
    """An HTTP request; headers may come twice. Bytes travel in Base64."""

    body: str | bytes
    headers: Pairs
    caller: str | None = None
    binary: bool = False
    """Whether the body is said to be Base64."""

    def __repr__(self) -> str:
        body = self.body if len(self.body) <= SHOWN else self.body[:SHOWN]
        more = f"{self.caller!r}, {self.binary}"
        return f"Post({body!r} of {len(self.body)}, {list(self.headers)!r}, {more})"

    @property
    def event(self) -> dict[str, Any]:
        """API Gateway's proxy event."""
        headers: dict[str, list[str]] = {}
        for name, value in self.headers:
            headers.setdefault(name, []).append(value)
        if "host" not in map(str.lower, headers):
            headers["Host"] = [HOST]
        return {
            "httpMethod": "POST",
            "path": "/mcp",
            "multiValueHeaders": headers,
            "requestContext": {"identity": {"userArn": self.caller}},
            "body": base64.b64encode(self.body).decode()
            if isinstance(self.body, bytes)
            else self.body,
            "isBase64Encoded": self.binary or isinstance(self.body, bytes),
        }


# correct requests

CALLS: Final[Sequence[tuple[str, dict[str, Any]]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("tools/call", {"name": "echo", "arguments": {"value": {"a": [1, 2.5, None, "x"], "b": {}}}}),
    ("tools/call", {"name": "echo"}),
    (
        "tools/call",
        {
            "name": "measure",
            "arguments": {
                "on": "2026-07-28",
                "points": [{"x": 1, "near": [{"x": 2.5, "label": None}]}],
                "scale": 0.5,
                "exact": True,
            },
        },
    ),
    ("tools/call", {"name": "routed", "arguments": {"region": "eu", "shard": 7, "dry": True}}),
    (
        "tools/call",
        {
            "name": "checked",
            "arguments": {
                "children": [{"children": [], "size": 9}, {"word": "abc", "either": 4.5}],
                "when": "2026-07-28T10:00:00Z",
            },
        },
    ),
    ("tools/call", {"name": "show", "arguments": {"steps": 2}, "_meta": {"progressToken": "p"}}),
    ("tools/call", {"name": "refuse", "arguments": {"why": "not today"}}),
    ("resources/read", {"uri": "notes://all"}),
    ("resources/read", {"uri": "notes://one"}),
    ("resources/read", {"uri": "files://a/b%20c"}),
    ("resources/read", {"uri": "days://2026-07-28/12"}),
    ("prompts/get", {"name": "review", "arguments": {"text": "abc", "lines": "3"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "text", "value": "a"},
            "context": {"arguments": {"style": "kind"}},
        },
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "notes://{name}"},
            "argument": {"name": "name", "value": ""},
        },
    ),
]
"""What every revision answers with a result."""

TRACED: Final = {
    "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    "baggage": "k=v",
    "progressToken": 3,
    LEVEL_KEY: "debug",
}
WHO: Final = {"action": "accept", "content": {"name": "Ada", "age": 36}}
MODEL: Final = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "42"}}

NEW_CALLS: Final[Sequence[tuple[str, dict[str, Any]]]] = [
    ("server/discover", {}),
    ("tools/call", {"name": "show", "_meta": TRACED}),
    ("tools/call", {"name": "ask_everything", "arguments": {"topic": "rain"}}),
    ("tools/call", {"name": "ask_everything", "inputResponses": {"who": WHO}}),
    ("tools/call", {"name": "later", "arguments": {"text": "abc"}, "_meta": TRACED}),
    ("tools/call", {"name": "always", "arguments": {"text": "abc"}}),
    ("tools/call", {"name": "confirmed", "arguments": {"text": "abc"}}),
    (
        "tools/call",
        {"name": "confirmed", "arguments": {"text": "abc"}, "inputResponses": {"sure": WHO}},
    ),
    ("tools/call", {"name": "flow", "arguments": {"text": "abc", "n": 2}, "_meta": TRACED}),
    ("tools/call", {"name": "asking_flow", "arguments": {"text": "abc"}}),
    ("tools/call", {"name": "legacy", "arguments": {"text": "abc"}}),
    ("prompts/get", {"name": "introduce", "arguments": {"topic": "rain"}}),
    (
        "prompts/get",
        {
            "name": "introduce",
            "arguments": {"topic": "rain"},
            "inputResponses": {"who": {"action": "accept", "content": {"name": "Ada"}}},
        },
    ),
    ("resources/read", {"uri": "secrets://one"}),
]
"""What only 2026-07-28 answers with a result; the extension's own methods come to this."""

OLD_CALLS: Final[Sequence[tuple[str, dict[str, Any]]]] = [
    (
        "initialize",
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        },
    ),
    ("ping", {}),
    ("logging/setLevel", {"level": "warning"}),
]
"""What only the revisions with a handshake answer with a result."""


def request(method: str, params: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """A correct request's body."""
    members = dict(params)
    if revision == MODERN:
        about = {VERSION_KEY: MODERN, CAPABILITIES_KEY: EVERYTHING}
        members["_meta"] = {**about, **params.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": members}


def mirrored(body: Json, revision: str) -> list[tuple[str, str]]:
    """The headers that a correct client of the revision sends with a body, as far as it is one."""
    found = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ]
    if revision != MODERN:
        started = not isinstance(body, dict) or body.get("method") != "initialize"
        return [*found, ("MCP-Protocol-Version", revision)] if started else found
    found.append(("MCP-Protocol-Version", revision))
    method = body.get("method") if isinstance(body, dict) else None
    if not isinstance(method, str):
        return found
    found.append(("Mcp-Method", method))
    params = body.get("params")
    if not isinstance(params, dict):
        return found
    name = params.get(NAMED.get(method, ""))
    if isinstance(name, str):
        found.append(("Mcp-Name", encoded(name)))
    arguments = params.get("arguments")
    if name == "routed" and isinstance(arguments, dict):
        for header, argument in (("Region", "region"), ("Shard", "shard"), ("Dry-Run", "dry")):
            value = arguments.get(argument)
            if isinstance(value, (str, int)):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                found.append((f"Mcp-Param-{header}", encoded(text)))
    return found


def encoded(value: str) -> str:
    """A header's value (streamable-http.mdx, "Value Encoding")."""
    plain = value.isascii() and value.isprintable() and value.strip() == value
    return value if plain and not value.startswith("=?base64?") else sentinel(value)


def sentinel(value: str) -> str:
    """The Base64 form, which is allowed for every value."""
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


def correct(method: str, params: Mapping[str, Any], caller: str | None = None) -> Post:
    """A correct request of the newest revision."""
    body = request(method, params, MODERN)
    return Post(json.dumps(body), mirrored(body, MODERN), caller)
