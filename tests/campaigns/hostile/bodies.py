"""Bodies that are wrong: in their bytes, in their JSON, in what the JSON says."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.campaigns.fuzz.requests import HANDSHAKE, VERSION_KEY, Json, mirrored
from tests.campaigns.fuzz.spoiling import LONG, NASTY, RAW, RAW_VALUES, VOCABULARY, text
from tests.campaigns.hostile.attempts import Attempt, Draft, Way
from tests.wire import MODERN

LIMIT: Final = 1024 * 1024
"""Bytes of the largest body (`max_body`)."""
BATCHES: Final = HANDSHAKE[-1]
"""The one revision that has batches."""

SCALARS: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 2**31, 2**53 + 1, -(2**63), 2**64, 10**40, [], {}, [[]]),
    *(float("nan"), float("inf"), -float("inf"), "", " ", {"": {}}, {"__proto__": {"x": 1}}),
)
NAMES: Final = (
    *("__proto__", "constructor", "prototype", "toString", "__class__", "__init__", "__dict__"),
    *("id", "_meta", "$ref", "$where", "jsonrpc", "method", "params", "taskId", "principal", ""),
    *("aws:states", "States.Format", "input.$", "$.principal", "mcp-tasks", "requestState"),
)
INJECTIONS: Final = (
    *("' OR '1'='1", '"; DROP TABLE tasks; --', "$(id)", "`id`", "{{7*7}}", "${7*7}", "{% 1 %}"),
    *("<script>alert(1)</script>", "../../../../etc/passwd", "%2e%2e%2f", "\r\nX-Injected: 1"),
    *("attribute_exists(taskId)", "#s = :s", "arn:aws:states:us-east-1:1:execution:a:b", "*"),
)

Path = tuple[str | int, ...]


class _Twice(dict[str, Any]):
    """An object with a member that comes twice, which only a text can hold."""

    def __init__(self, members: dict[str, Any], name: str, value: Any) -> None:
        super().__init__(members)
        self._again = name, value

    def items(self) -> Any:
        """What `json.dumps` writes."""
        return [*super().items(), self._again]


def _paths(value: Json, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    steps: Any = ()
    if isinstance(value, dict):
        steps = dict.items(value)
    elif isinstance(value, list):
        steps = enumerate(value)
    for step, child in steps:
        yield from _paths(child, (*path, step))


def _change(value: Json, path: Path, change: Callable[[Any, Any], Any]) -> Json:
    """A copy in which the container of what is at `path` was changed by `change(copy, step)`."""
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        changed = change(copy, path[0])
        return copy if changed is None else changed
    copy[path[0]] = _change(copy[path[0]], path[1:], change)
    return copy


def _member(draft: Draft, body: Json) -> tuple[str, Json]:
    """One thing wrong with a member; RAW stands for what `json.dumps` would not write."""
    rng = draft.rng
    paths = list(_paths(body))
    # Most of a correct request is its _meta, which matters no more than the rest.
    path = rng.choice(paths + 3 * [path for path in paths if "_meta" not in path[:-1]])
    name = path[-1]
    ways: dict[str, Callable[[Any], Any]] = {
        "another type": lambda old: rng.choice(SCALARS),
        "nasty text": lambda old: rng.choice(NASTY),
        "injection": lambda old: rng.choice(INJECTIONS),
        "long": lambda old: rng.choice(LONG[:-2]),
        "raw": lambda old: RAW,
        "wrapped": lambda old: {"value": old},
        "listed": lambda old: [old, old],
        "known": lambda old: rng.choice(VOCABULARY.get(name, [None])),
        "strange member": lambda old: (
            {**old, rng.choice(NAMES): rng.choice(SCALARS)} if isinstance(old, dict) else old
        ),
    }
    how = rng.choice([*ways, "known", "known", "missing", "twice", "renamed"])
    if how in ways:

        def replaced(parent: Any, step: Any) -> None:
            parent[step] = ways[how](parent[step])

        return how, _change(body, path, replaced)
    if how == "twice" and isinstance(name, str):
        value = rng.choice(SCALARS)
        return how, _change(body, path, lambda parent, step: _Twice(parent, step, value))
    if how == "renamed" and isinstance(name, str):
        new = rng.choice(NAMES)
        return how, _change(body, path, lambda p, step: p.update({new: p.pop(step)}))
    return "missing", _change(body, path, lambda parent, step: parent.__delitem__(step))


def members(draft: Draft) -> Attempt:
    """Correct JSON, mostly, that says something wrong; the headers fit it as often as not."""
    rng, body = draft.rng, draft.body
    said = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if isinstance(body, (dict, list)) and body:
            how, body = _member(draft, body)
            said.append(how)
    sent = text(body, rng.choice(RAW_VALUES)).encode("utf-8", "surrogatepass")
    headers = mirrored(body if rng.random() < 0.5 else draft.body, draft.revision)
    return _attempt(draft, ", ".join(said), sent, headers)


def flipped(draft: Draft) -> Attempt:
    """Bits."""
    data = bytearray(draft.post().body)
    for _ in range(draft.rng.choice([1, 1, 2, 8])):
        data[draft.rng.randrange(len(data))] ^= 1 << draft.rng.randrange(8)
    return _attempt(draft, "bits flipped", bytes(data))


def cut(draft: Draft) -> Attempt:
    """Less than all of it, or more."""
    data, rng = draft.post().body, draft.rng
    where = rng.randrange(len(data))
    how, made = rng.choice(
        [
            ("cut", data[:where]),
            ("its end", data[where:]),
            ("doubled", data + data),
            ("two lines", data + b"\n" + data),
            ("more", data + rng.choice([b"\x00", b"]", b"}", b",", b"null", b"\xff"])),
            ("reversed", data[::-1]),
            ("empty", b""),
            ("only space", b" \r\n\t" * rng.choice([1, 500])),
            ("inserted", data[:where] + rng.choice([b"\x00", b"\xff", b'"', b"\\"]) + data[where:]),
        ]
    )
    return _attempt(draft, how, made)


def encoded(draft: Draft) -> Attempt:
    """The right characters in wrong bytes."""
    written = json.dumps(draft.body)
    how, made = draft.rng.choice(
        [
            ("UTF-16", written.encode("utf-16")),
            ("UTF-32", written.encode("utf-32-le")),
            ("byte order mark", written.encode("utf-8-sig")),
            ("UTF-7", written.encode("utf-7")),
            ("gzip", gzip.compress(written.encode(), mtime=0)),
            ("overlong", written.encode().replace(b'"', b"\xc0\xa2", 1)),
            ("surrogates", written.encode().replace(b"hello", b"\xed\xa0\x80")),
            ("lone surrogate", written.encode().replace(b"hello", b"\\ud83d")),
            ("Latin-1", written.encode().replace(b"hello", b"h\xe9llo")),
            ("NUL", written.encode().replace(b"hello", b"\\u0000")),
            ("a form", b"jsonrpc=2.0&method=tools%2Flist&id=1"),
            ("Base64", base64.b64encode(written.encode())),
            ("XML", b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'),
            ("pickle", b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."),
        ]
    )
    return _attempt(draft, how, made)


def large(draft: Draft) -> Attempt:
    """As large as a body may be, and larger; deep; of many members."""
    rng, written = draft.rng, json.dumps(draft.body)
    depth = rng.choice([90, 101, 1_000, 50_000])
    digits = rng.choice([400, 4_300, 4_301, 100_000])
    exponent = rng.choice([308, 309, 99_999_999_999])

    def more(value: str) -> str:
        return written[:-1] + ', "x": ' + value + "}"

    how, made = rng.choice(
        [
            ("as large as may be", written.ljust(LIMIT)),
            ("a byte too large", written.ljust(LIMIT + 1)),
            ("two megabytes", written.ljust(2 * LIMIT)),
            ("long", more(f'"{rng.choice(LONG[-3:])}"')),
            ("deep arrays", more("[" * depth + "]" * depth)),
            ("deep objects", more('{"a":' * depth + "1" + "}" * depth)),
            ("unclosed", more("[" * depth)),
            ("many members", more("1" + "".join(f', "k{n}": {n}' for n in range(20_000)))),
            ("same members", more("1" + ', "a": 1' * 20_000)),
            ("many digits", more("9" * digits)),
            ("large exponent", more(f"1e{exponent}")),
            ("escapes", more('"' + "\\u0041" * 50_000 + '"')),
        ]
    )
    return _attempt(draft, how, made.encode())


def rpc(draft: Draft) -> Attempt:
    """JSON-RPC that is none, or none of MCP's."""
    rng, body = draft.rng, dict(draft.body)
    hello = {"text": "hello"}
    how, made = rng.choice(
        [
            ("no object", rng.choice(SCALARS)),
            ("a string of JSON", json.dumps(body)),
            ("strange id", {**body, "id": rng.choice(SCALARS)}),
            ("long id", {**body, "id": rng.choice(["i" * 10_000, 10**300, "\u2028", "\ud800"])}),
            ("no id", {name: value for name, value in body.items() if name != "id"}),
            ("other version", {**body, "jsonrpc": rng.choice(["1.0", "2", 2, None, "2.0 "])}),
            ("a response", {"jsonrpc": "2.0", "id": 1, "result": {"taskId": "c"}}),
            ("an error", {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "m"}}),
            ("both", {**body, "result": {}, "error": {}}),
            ("params listed", {**body, "params": [body["params"]]}),
            ("method", {**body, "method": rng.choice([*NASTY, *INJECTIONS, "tasks/list", 1])}),
            ("method in other case", {**body, "method": body["method"].upper()}),
            ("version", _versioned(body, rng)),
            ("arguments", _with_params(body, arguments=rng.choice([*SCALARS, [hello]]))),
            ("tool", _with_params(body, name=rng.choice([*NAMES, *INJECTIONS, "administer"]))),
            ("tool and arguments", _with_params(body, name=rng.choice(NAMES), arguments=hello)),
        ]
    )
    sent = json.dumps(made).encode()
    headers = mirrored(made if rng.random() < 0.7 else draft.body, draft.revision)
    return _attempt(draft, how, sent, headers)


def batch(draft: Draft) -> Attempt:
    """Several messages in one body, in the revision that has batches, and in others."""
    rng, one = draft.rng, {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    size = rng.choice([0, 1, 2, 7, 50, 51, 1_000])
    items = rng.choice([one, draft.body, [one], rng.choice(SCALARS), {**one, "id": None}])
    revision = rng.choice([BATCHES, BATCHES, draft.revision])
    sent = json.dumps([items] * size).encode()
    return _attempt(draft, f"batch of {size}, {revision}", sent, mirrored(one, revision))


def _versioned(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    version = rng.choice([MODERN, *HANDSHAKE, "2024-11-05", "2099-01-01", "", "latest", 1, None])
    return _with_params(body, _meta={VERSION_KEY: version}, protocolVersion=version)


def _with_params(body: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {**body, "params": {**body["params"], **changed}}


def _attempt(draft: Draft, how: str, body: bytes, headers: Any = None) -> Attempt:
    sent = draft.post(body, headers)
    return Attempt("bodies", how, draft.door, draft.caller, sent)


WAYS: Final[dict[Way, int]] = {
    members: 8,
    flipped: 3,
    cut: 3,
    encoded: 3,
    large: 1,
    rpc: 4,
    batch: 1,
}
"""How to spoil a body, and how often."""
