"""Ways to spoil requests: wrong JSON, wrong members, wrong headers, changed characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from mcp_tasks.protocol.notifications import LOG_LEVELS
from tests.campaigns.fuzz.requests import (
    CALLS,
    HANDSHAKE,
    LEVEL_KEY,
    NEW_CALLS,
    OLD_CALLS,
    VERSION_KEY,
    Json,
    Pairs,
    Post,
    mirrored,
    request,
    sentinel,
)
from tests.wire import MODERN

RAW: Final = "@raw@"
"""A string that `text` replaces with what `json.dumps` would not write."""

DEPTHS: Final = (3, 60, 130, 260, 600, 900, 3_000, 100_000)
LONG: Final = (
    *(letter * length for letter in "aé\x00" for length in (49, 65, 2_049, 8_193)),
    *("a" * length for length in (70_001, 100_001, 270_000, 1_050_000)),
)
RAW_VALUES: Final = (
    *(f"{'[' * depth}{']' * depth}" for depth in DEPTHS),
    *('{"a":' * depth + "1" + "}" * depth for depth in DEPTHS),
    *("1e999", "-1e999", "-0", "1.0", "1E2", "1e-400", "01", "0x1", "+1", ".5", "1.", "NaN"),
    *("9" * 4_300, "9" * 4_301, "9007199254740993", "1e308", "5e-324", f"0.{'1' * 5_000}"),
    *(
        "'a'",
        "undefined",
        "//",
        "[1,]",
        '{"a":1,}',
        '"\t"',
        '"\\x"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
    ),
    '{"a":1,"a":2}',
)
NASTY: Final = (
    *("", " ", "\x00", "\x1f", "\x7f", "\x85", "\u2028", "\ufeff", "\uffff", "é", "日本", "😀"),
    *("\ud800", "a\udc00", "\udbff\udfff"),
    *(
        "__proto__",
        "_meta",
        "taskId",
        "null",
        "true",
        "-1",
        "1e5",
        "0",
        "{}",
        "[]",
        "*",
        "%",
        "%00",
    ),
    *(
        "../../etc/passwd",
        "${worker}",
        "{% $states %}",
        "{name}",
        "=?base64?4pyT?=",
        "=?base64?!?=",
    ),
    *("echo", "notes://one", "notes://{name}", "pages://001", "secrets://x", "days://x/y", "x:"),
    *("files://%00/%ff", "files:///../..", "days://2026-07-28/99999999999999999999", "notes://no"),
    *("tools/list", "tasks/get", "initialize", "ping", "notifications/initialized", "debug", "who"),
    *(MODERN, *HANDSHAKE, "2024-11-05", "2026-07-29", "DRAFT-2026-v1", "accept", "decline"),
)

texts: Final = st.one_of(st.sampled_from(NASTY), st.text(max_size=12))
numbers: Final = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**31, 2**53 + 1, -(2**63), 2**64, 10**25]),
    st.floats(),
)
scalars: Final = st.one_of(st.none(), st.booleans(), numbers, texts)
values: Final[st.SearchStrategy[Json]] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
"""JSON values, and a few that only Python takes for some: NaN, halves of surrogate pairs."""


class _Twice(dict[str, Any]):
    """An object with one member that comes twice."""

    def __init__(self, members: Mapping[str, Any], name: str, value: Any) -> None:
        super().__init__(members)
        self._again = (name, value)

    def items(self) -> Any:
        """What `json.dumps` writes."""
        return [*super().items(), self._again]


def text(body: Json, raw: str = "null") -> str:
    """A body as JSON, or as nearly that; `raw` stands where RAW is in it."""
    return json.dumps(body).replace(f'"{RAW}"', raw)


def _places(value: Json, path: tuple[str | int, ...] = ()) -> Iterable[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for name, item in dict.items(value):
            yield from _places(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _changed(value: Json, path: Sequence[str | int], change: Callable[[Json], Json]) -> Json:
    """A copy of `value` with what is at `path` changed."""
    if not path:
        return change(value)
    step, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = _changed(copy[step], rest, change)
    return copy


def _without(value: Json, path: Sequence[str | int]) -> Json:
    *parents, last = path

    def drop(parent: Json) -> Json:
        copy: Any = dict(parent) if isinstance(parent, dict) else list(parent)
        del copy[last]
        return copy

    return _changed(value, parents, drop)


WAYS: Final = (
    *("drop", "value", "text", "long", "raw", "twice", "more", "wrap", "listed"),
    *("other", "other", "other", "other"),
)


def _vocabulary() -> dict[str | int, list[Json]]:
    found: dict[str | int, list[Json]] = {
        "uri": [
            "notes://no",
            "secrets://x",
            "days://2026-07-28/x",
            "files://",
            "trees://a" + "/leaf/" * 300,
        ],
        "name": ["nobody", "who", "text", "style"],
        "level": [*LOG_LEVELS, "loud", "INFO"],
        LEVEL_KEY: [*LOG_LEVELS, "loud", "INFO"],
        "elicitation": [{"url": {}}, {"form": {}}],
        "action": ["accept", "decline", "cancel", "reject"],
        "traceparent": ["00-0-0-00", f"ff-{'a' * 32}-{'b' * 16}-01"],
        "jsonrpc": ["1.0", 2.0],
        "type": ["ref/tool", "text", "image"],
    }
    versions = [MODERN, *HANDSHAKE, "2024-11-05", "2026-07-29"]
    bodies = [
        request(method, params, MODERN) for method, params in (*CALLS, *NEW_CALLS, *OLD_CALLS)
    ]
    for body in [*bodies, *({VERSION_KEY: v, "protocolVersion": v} for v in versions)]:
        for path in _places(body):
            name = path[-1] if path else None
            value: Json = body
            for step in path:
                value = value[step]
            if isinstance(name, str) and value not in found.setdefault(name, []):
                found[name].append(value)
    return found


VOCABULARY: Final = _vocabulary()
"""Member -> what it is in other requests, or might be: deeper in than nonsense gets."""


@st.composite
def spoiled_json(draw: st.DrawFn, body: Json) -> Json:
    """`body` with one thing wrong with it, or perhaps not."""
    places = [place for place in _places(body) if place]
    # Most of a correct request is its _meta, which matters no more than the rest.
    path = draw(st.sampled_from(places + 3 * [p for p in places if "_meta" not in p[:-1]]))
    match draw(st.sampled_from(WAYS)):
        case "other" if path[-1] in VOCABULARY:
            new = draw(st.sampled_from(VOCABULARY[path[-1]]))
            return _changed(body, path, lambda old: new)
        case "drop":
            return _without(body, path)
        case "value":
            new = draw(values)
            return _changed(body, path, lambda old: new)
        case "text":
            new = draw(texts)
            return _changed(body, path, lambda old: new)
        case "long":
            new = draw(st.sampled_from(LONG))
            return _changed(body, path, lambda old: new)
        case "raw":
            return _changed(body, path, lambda old: RAW)
        case "twice":
            *parents, last = path
            new = draw(values)
            return _changed(
                body,
                parents,
                lambda old: _Twice(old, str(last), new) if isinstance(old, dict) else [*old, new],
            )
        case "more":
            name, new = draw(texts), draw(values)
            return _changed(
                body, path, lambda old: {**old, name: new} if isinstance(old, dict) else new
            )
        case "wrap":
            return _changed(body, path, lambda old: {"value": old})
    return _changed(body, path, lambda old: [old])


@st.composite
def spoiled_text(draw: st.DrawFn, good: str) -> str:
    """`good` with a character or two wrong, cut, or longer."""
    where = draw(st.integers(0, max(0, len(good) - 1)))
    new = draw(st.sampled_from("aA0-_=+/ \n.é\x00"))
    return draw(
        st.sampled_from(
            [
                good[:where] + new + good[where + 1 :],
                good[:where] + new + good[where:],
                good[:where] + good[where + 1 :],
                good[:where],
                good[where:],
                good + new,
                good + good,
                good[::-1],
                good.swapcase(),
                good.rstrip("="),
                f"{good}====",
            ]
        )
    )


# headers

header_names: Final = st.one_of(
    st.sampled_from(
        [
            *("Mcp-Method", "mcp-name", "MCP-PROTOCOL-VERSION", "Mcp-Param-Region", "mcp-param-"),
            *("Mcp-Session-Id", "Last-Event-ID", "Origin", "Host", "Accept", "Content-Type", ""),
        ]
    ),
    st.text(max_size=8),
)
header_values: Final = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=12),
    st.sampled_from(["*/*", "text/event-stream", "https://evil.example", "a" * 9_000]),
    st.builds(sentinel, texts),
)
arbitrary_headers: Final = st.lists(st.tuples(header_names, header_values), max_size=6)


@st.composite
def spoiled_headers(draw: st.DrawFn, headers: Pairs) -> Pairs:
    """Headers of which one is dropped, changed, repeated, or encoded otherwise."""
    index = draw(st.integers(0, len(headers) - 1))
    name, value = headers[index]
    before, after = headers[:index], headers[index + 1 :]
    new = draw(header_values)
    changed = draw(
        st.sampled_from(
            [
                [],
                [(name, new)],
                [(name, value), (name, value)],
                [(name, value), (name.lower(), new)],
                [(name.upper(), value)],
                [(name, sentinel(value))],
                [(name, sentinel(new))],
                [(name, sentinel(sentinel(value)))],
                [(name, sentinel(value).replace("==?=", "?="))],
                [(name, f" {value}\t")],
                [(name, value.swapcase())],
                [(name, f"{value}, {value}")],
                [(name, "")],
            ]
        )
    )
    return [*before, *changed, *after]


@st.composite
def spoiled_posts(
    draw: st.DrawFn, bodies: Sequence[dict[str, Any]], revision: str, callers: Sequence[str | None]
) -> Post:
    """Requests of a revision with up to three things wrong; the headers fit the body, mostly."""
    body: Json = draw(st.sampled_from(bodies))
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        if isinstance(body, (dict, list)) and len(body):
            body = draw(spoiled_json(body))
    sent = text(body, draw(st.sampled_from(RAW_VALUES)))
    headers: Pairs = mirrored(body, revision)
    if draw(st.integers(0, 5)) == 0:
        headers = draw(spoiled_headers(headers))
    return Post(sent, headers, draw(st.sampled_from(callers)))
