"""Validation by JSON Schema (basic/index.mdx, "JSON Schema Usage")."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.json_schema import InvalidSchema, SchemaMismatch, check_value, compile_schema

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFT_07: Final = "http://json-schema.org/draft-07/schema#"


def complaint(schema: dict[str, Any], value: Any) -> str | None:
    """What is wrong with a value, if anything is."""
    try:
        check_value(compile_schema(schema), value, "value")
    except SchemaMismatch as error:
        return str(error)
    return None


def fits(schema: dict[str, Any], value: Any) -> bool:
    return complaint(schema, value) is None


ADDRESS: Final = {
    "$defs": {"street": {"$anchor": "street", "type": "string", "minLength": 2}},
    "properties": {"street": {"$ref": "#street"}},
}
COUNTRY: Final = {
    "properties": {"country": {"enum": ["US", "DE"]}},
    "if": {"properties": {"country": {"const": "US"}}, "required": ["country"]},
    "then": {"required": ["zip"]},
    "else": {"required": ["plz"]},
}
CLOSED: Final = {
    "allOf": [{"properties": {"a": {}}}],
    "properties": {"b": {}},
    "unevaluatedProperties": False,
}
TREE: Final = {
    "$id": "https://example.com/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
}

KEYWORDS: Final[dict[str, tuple[dict[str, Any], Any, Any]]] = {
    "$anchor": (ADDRESS, {"street": "Elm"}, {"street": "E"}),
    "$defs": (
        {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}},
        [1, 2],
        [1, "2"],
    ),
    "$id": (
        {
            "$id": "https://example.com/a",
            "$ref": "https://example.com/b",
            "$defs": {"b": {"$id": "b", "type": "integer"}},
        },
        1,
        "1",
    ),
    "$dynamicRef": (TREE, {"children": [{"children": []}]}, {"children": [{"children": [1]}]}),
    "if-then": (COUNTRY, {"country": "US", "zip": "1"}, {"country": "US", "plz": "1"}),
    "if-else": (COUNTRY, {"country": "DE", "plz": "1"}, {"country": "DE", "zip": "1"}),
    "unevaluatedProperties": (CLOSED, {"a": 1, "b": 2}, {"a": 1, "c": 2}),
    "unevaluatedItems": (
        {"prefixItems": [{"type": "string"}], "unevaluatedItems": False},
        ["a"],
        ["a", 1],
    ),
    "prefixItems": ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [1, "a"]),
    "contains": ({"contains": {"const": 1}, "maxContains": 1}, [1, 2], [1, 1]),
    "dependentRequired": (
        {"dependentRequired": {"card": ["address"]}},
        {"card": 1, "address": 2},
        {"card": 1},
    ),
    "dependentSchemas": (
        {"dependentSchemas": {"card": {"required": ["address"]}}},
        {"address": 1},
        {"card": 1},
    ),
    "propertyNames": ({"propertyNames": {"pattern": "^[a-z]+$"}}, {"ab": 1}, {"a1": 1}),
    "patternProperties": ({"patternProperties": {"^n": {"type": "integer"}}}, {"n": 1}, {"n": ""}),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1, 3),
    "not": ({"not": {"type": "null"}}, 1, None),
    "multipleOf": ({"multipleOf": 0.01}, 19.99, 19.999),
    "uniqueItems": ({"uniqueItems": True}, [1, "1", True], [{"a": 1}, {"a": 1.0}]),
    "integer": ({"type": "integer"}, 42.0, 42.5),
    "boolean": ({"type": "integer"}, 1, True),
    "const": ({"const": None}, None, 0),
    "format": ({"format": "date"}, "2026-02-28", "2026-02-30"),
    "false": ({"properties": {"a": False}}, {"b": 1}, {"a": 1}),
}


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("dialect", [{}, {"$schema": DRAFT}], ids=["unnamed", "named"])
def test_2020_12_is_the_dialect_unless_another_is_named(
    keyword: str, dialect: dict[str, Any]
) -> None:
    schema, right, wrong = KEYWORDS[keyword]
    assert fits({**dialect, **schema}, right)
    assert not fits({**dialect, **schema}, wrong)


@pytest.mark.parametrize(
    ("dialect", "schema", "right", "wrong"),
    [
        # In draft-07 a list of `items` is what `prefixItems` is now, and `$anchor` is nothing.
        (DRAFT_07, {"items": [{"type": "string"}]}, ["a", 1], [1]),
        (DRAFT_07, {"dependencies": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
        (
            "http://json-schema.org/draft-04/schema#",
            {"maximum": 3, "exclusiveMaximum": True},
            2,
            3,
        ),
        ("http://json-schema.org/draft-06/schema#", {"const": 1}, 1, 2),
        (
            "https://json-schema.org/draft/2019-09/schema",
            {"items": [{"type": "string"}], "additionalItems": False},
            ["a"],
            ["a", 1],
        ),
    ],
)
def test_a_schema_is_checked_by_the_dialect_that_it_names(
    dialect: str, schema: dict[str, Any], right: Any, wrong: Any
) -> None:
    assert fits({"$schema": dialect, **schema}, right)
    assert not fits({"$schema": dialect, **schema}, wrong)


def test_a_keyword_of_another_dialect_means_nothing() -> None:
    assert fits({"$schema": DRAFT_07, "prefixItems": [{"type": "string"}]}, [1])


@pytest.mark.parametrize(
    "dialect",
    ["https://example.com/schema", "https://json-schema.org/draft/2099-01/schema", "x", 5],
)
def test_a_dialect_that_is_not_known_is_refused(dialect: Any) -> None:
    """ "Implementations MUST ... return an appropriate error indicating the dialect is not
    supported"."""
    with pytest.raises(InvalidSchema):
        compile_schema({"$schema": dialect, "type": "object"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"type": 5},
        {"properties": []},
        {"required": "name"},
        {"minLength": -1},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#missing"},
        {"enum": 5},
    ],
)
def test_an_invalid_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema):
        compile_schema(schema)


@pytest.fixture
def web() -> Iterator[tuple[str, list[str]]]:
    """An address on this machine where there is a schema, and the requests that came for it."""
    asked: list[str] = []

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "integer", "$defs": {"a": {}}}')

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Serving) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/schema.json", "/schema.json#/$defs/a"])
@pytest.mark.parametrize(
    "around",
    [
        lambda reference: {"type": "object", "properties": {"a": {"$ref": reference}}},
        lambda reference: {"$ref": reference},
        lambda reference: {"$dynamicRef": reference},
        lambda reference: {"$schema": reference},
        lambda reference: {"$defs": {"unused": {"$ref": reference}}, "type": "string"},
        lambda reference: {"$id": reference, "$ref": "other.json"},
    ],
    ids=["property", "root", "dynamic", "dialect", "unused", "relative"],
)
def test_nothing_is_fetched(
    web: tuple[str, list[str]], around: Callable[[str], dict[str, Any]], path: str
) -> None:
    """ "MUST NOT automatically dereference $ref ... values that resolve to network URIs"."""
    address, asked = web
    with pytest.raises(InvalidSchema):
        compile_schema(around(f"{address}{path}"))
    assert asked == []


def test_no_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "integer"}', encoding="utf-8")
    with pytest.raises(InvalidSchema):
        compile_schema({"$ref": file.as_uri()})


SECRET: Final = "hunter2"

QUOTING: Final[dict[str, dict[str, Any]]] = {
    "type": {"type": "integer"},
    "enum": {"enum": ["a", "b"]},
    "const": {"const": "a"},
    "pattern": {"pattern": "^[0-9]+$"},
    "format": {"format": "email"},
    "minLength": {"minLength": 100},
    "maxLength": {"maxLength": 1},
    "not": {"not": {"type": "string"}},
    "oneOf": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
    "anyOf": {"anyOf": [{"type": "integer"}, {"const": "a"}]},
    "if": {"if": True, "then": {"maxLength": 1}},
    "false": {"not": {}},
}
AROUND: Final[dict[str, tuple[dict[str, Any], Any]]] = {
    "additionalProperties": ({"additionalProperties": False}, {"a": SECRET}),
    "unevaluatedProperties": ({"unevaluatedProperties": False}, {"a": SECRET}),
    "unevaluatedItems": ({"unevaluatedItems": False}, [SECRET]),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, {"long": SECRET}),
    "contains": ({"contains": {"const": 1}}, [SECRET]),
    "uniqueItems": ({"uniqueItems": True}, [SECRET, SECRET]),
    "maxItems": ({"maxItems": 1}, [SECRET, SECRET]),
    "required": ({"required": ["a"]}, {"b": SECRET}),
    "dependentRequired": ({"dependentRequired": {"b": ["a"]}}, {"b": SECRET}),
    "object": ({"type": "string"}, {"b": SECRET}),
    "array": ({"type": "string"}, [SECRET]),
    "const object": ({"const": {"b": 1}}, {"b": SECRET}),
}


def refusal(schema: dict[str, Any], value: Any) -> str:
    message = complaint(schema, value)
    assert message is not None
    return message


@pytest.mark.parametrize("keyword", QUOTING)
def test_a_message_has_the_location_and_not_the_value(keyword: str) -> None:
    schema = {"properties": {"list": {"items": QUOTING[keyword]}}}
    message = refusal(schema, {"list": [SECRET]})
    assert message.startswith("list.0: ")
    assert SECRET not in message


@pytest.mark.parametrize("keyword", AROUND)
def test_a_message_quotes_nothing_of_a_container(keyword: str) -> None:
    schema, value = AROUND[keyword]
    assert SECRET not in refusal(schema, value)
    assert SECRET not in refusal({"items": schema}, [value])


def test_a_message_names_a_property_that_is_too_much() -> None:
    """The name of a misspelt argument is no secret."""
    assert "colour" in refusal(
        {"properties": {}, "additionalProperties": False}, {"colour": SECRET}
    )


MARK: Final = "zzqx"


@given(
    st.recursive(
        st.just(MARK) | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("a"), inner),
        max_leaves=5,
    ),
    st.sampled_from([*QUOTING.values(), *[schema for schema, _ in AROUND.values()]]),
)
def test_no_message_ever_quotes_the_value(value: Any, schema: dict[str, Any]) -> None:
    everywhere = {"properties": {"a": schema}, "items": schema, **schema}
    assert MARK not in (complaint(everywhere, value) or "")


def test_a_violation_of_the_whole_value_goes_by_its_name() -> None:
    with pytest.raises(SchemaMismatch, match=r"^arguments: "):
        check_value(compile_schema({"type": "object"}), SECRET, "arguments")


@pytest.mark.parametrize("value", [{}, [], "text", 5, 0.5, True, None])
def test_an_empty_schema_fits_everything(value: Any) -> None:
    assert fits({}, value)


MODEL: Final = {"type": "object", "required": ["a", "b", "c"]}
LISTS: Final = [{"type": "array", "items": MODEL}, {"type": "array", "items": {"type": "integer"}}]
RECURSIVE: Final = {
    "$defs": {
        name: {"properties": {"child": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}}
        for name in ("a", "b")
    },
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/a"}, "child": {"$ref": "#/$defs/a"}},
}


def deep(levels: int) -> Any:
    value: Any = {"child": 1, "count": 0}
    for _ in range(levels):
        value = {"child": value}
    return value


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ({"anyOf": LISTS}, [{}] * 100_000, 'value: the value is not valid under any .*"anyOf"'),
        ({"items": {"oneOf": LISTS}}, [[{}] * 90_000], '0: the value .* exactly one .*"oneOf"'),
        ({"oneOf": [{}, {}]}, 1, 'value: the value is not valid under exactly one .*"oneOf"'),
        ({**RECURSIVE, "not": {"required": ["child"]}}, deep(90), "value: .* is not allowed"),
        ({"$ref": "#/anyOf/0", "anyOf": [{"type": "null"}]}, 1, "value: .* does not fit"),
        ({"items": MODEL}, [{}] * 100_000, '0: "a" is a required property'),
    ],
)
def test_alternatives_are_not_gone_through_for_a_message(
    schema: dict[str, Any], value: Any, says: str
) -> None:
    """The library would make every error of every alternative: gigabytes, in minutes."""
    assert re.match(says, refusal(schema, value))


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_property_may_be_called_like_a_keyword(keyword: str) -> None:
    schema = {"properties": {keyword: {"type": "integer"}}, "enum": [{keyword: [1]}, {keyword: 1}]}
    assert fits(schema, {keyword: 1})
    assert refusal(schema, {keyword: [1]}).startswith(f"{keyword}: ")


def test_names_and_reasons_are_shortened() -> None:
    long, many = "n" * 100_000, {f"name {n}": 1 for n in range(50_000)}
    assert len(refusal({"additionalProperties": {"type": "null"}}, {long: 1})) < 200
    assert len(refusal({"additionalProperties": False}, {long: 1})) < 600
    assert len(refusal({"unevaluatedProperties": False}, many)) < 600
    path = "".join('{"properties": {"a": ' for _ in range(40)) + "false" + "}}" * 40
    value = json.loads('{"a": ' * 40 + "1" + "}" * 40)
    assert refusal(json.loads(path), value).startswith("a.a.a.a.a.....a.a.a.a.a: ")
