"""Content blocks (server/tools.mdx, "Tool Result"; server/resources.mdx, "Resource Contents")."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from mcp_tasks import content
from mcp_tasks.registry.content import is_block, is_contents
from tests.wire import CORE, SCHEMAS

BYTES: Final = bytes(range(256))
BASE64: Final = base64.b64encode(BYTES).decode()

BLOCKS: Final = [
    (content.text("hello"), {"type": "text", "text": "hello"}),
    (content.text(""), {"type": "text", "text": ""}),
    (
        content.image(BYTES, "image/png"),
        {"type": "image", "data": BASE64, "mimeType": "image/png"},
    ),
    (
        content.audio(BYTES, "audio/wav"),
        {"type": "audio", "data": BASE64, "mimeType": "audio/wav"},
    ),
    (
        content.resource_link("docs://a", "a"),
        {"type": "resource_link", "uri": "docs://a", "name": "a"},
    ),
    (
        content.resource_link("docs://a", "a", title="A", mimeType="text/plain", size=3),
        {
            "type": "resource_link",
            "uri": "docs://a",
            "name": "a",
            "title": "A",
            "mimeType": "text/plain",
            "size": 3,
        },
    ),
    (
        content.embedded_resource("docs://a", "text", "text/plain"),
        {
            "type": "resource",
            "resource": {"uri": "docs://a", "mimeType": "text/plain", "text": "text"},
        },
    ),
    (
        content.embedded_resource("docs://a", BYTES),
        {"type": "resource", "resource": {"uri": "docs://a", "blob": BASE64}},
    ),
]


@pytest.fixture(scope="module")
def block_schema() -> Draft202012Validator:
    schema = json.loads((SCHEMAS / CORE).read_text(encoding="utf-8"))
    return Draft202012Validator({**schema, "$ref": "#/$defs/ContentBlock"})


@pytest.mark.parametrize(("block", "wire"), BLOCKS)
def test_a_block_is_as_the_specification_writes_it(
    block: dict[str, Any], wire: dict[str, Any], block_schema: Draft202012Validator
) -> None:
    assert block == wire
    block_schema.validate(block)
    assert is_block(block)


@pytest.mark.parametrize(
    "block",
    [
        {**BLOCKS[0][0], "annotations": {"audience": ["user"]}, "_meta": {"a/b": 1}},
        {"type": "resource", "resource": {"uri": "a:b", "text": ""}, "annotations": {}},
    ],
)
def test_a_block_may_say_more(block: dict[str, Any]) -> None:
    assert is_block(block)


@pytest.mark.parametrize(
    "block",
    [
        None,
        "text",
        [],
        {},
        {"text": "no type"},
        {"type": "text"},
        {"type": "text", "text": None},
        {"type": "text", "text": 5},
        {"type": "markdown", "text": "a"},
        {"type": ["text"], "text": "a"},
        {"type": {}, "text": "a"},
        {"type": "image", "data": BASE64},
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": BYTES, "mimeType": "image/png"},
        {"type": "audio", "data": BASE64, "mimeType": None},
        {"type": "resource_link", "uri": "a:b"},
        {"type": "resource_link", "name": "b"},
        {"type": "resource"},
        {"type": "resource", "resource": "a:b"},
        {"type": "resource", "resource": {"text": "no uri"}},
        {"type": "resource", "resource": {"uri": "a:b"}},
        {"type": "resource", "resource": {"uri": "a:b", "text": 5}},
        {"type": "resource", "uri": "a:b", "text": "a"},
    ],
)
def test_anything_else_is_no_block(block: Any) -> None:
    assert not is_block(block)


@pytest.mark.parametrize(
    ("contents", "can_be_read"),
    [
        (content.resource_contents("a:b", "text"), True),
        (content.resource_contents("a:b", BYTES, "image/png"), True),
        (content.resource_contents("a:b", ""), True),
        ({"uri": "a:b"}, False),
        ({"text": "a"}, False),
        ({"uri": 5, "text": "a"}, False),
        ({"uri": "a:b", "blob": BYTES}, False),
        ({"uri": "a:b", "text": None, "blob": BASE64}, False),
        ("a:b", False),
    ],
)
def test_contents_have_a_uri_and_a_text_or_a_blob(contents: Any, can_be_read: bool) -> None:
    assert is_contents(contents) is can_be_read
