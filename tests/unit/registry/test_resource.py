"""Resources as their authors declare them (server/resources.mdx)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Literal, Protocol, cast

import pytest
from pydantic import BaseModel

from mcp_tasks import NotFound, TaskContext, content, resource
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.resource import JSON, Resource


class Declares(Protocol):
    def __call__(self, function: Callable[..., Any]) -> Resource: ...


def declared(uri: str, **options: Any) -> Declares:
    """The declaration that the decorator leaves."""

    def declare(function: Callable[..., Any]) -> Resource:
        return cast(Resource, getattr(resource(uri, **options)(function), DECLARATION))

    return declare


def fixed(value: Any, **options: Any) -> Resource:
    """A resource that reads as `value`."""

    @declared("docs://handbook", **options)
    def handbook() -> Any:
        return value

    return handbook


def read(found: Resource, uri: str = "docs://handbook", **variables: str) -> list[dict[str, Any]]:
    return found.read(uri, variables, TaskContext())


def test_the_decorator_returns_the_function() -> None:
    @resource("docs://{number}")
    def chapter(number: int) -> str:
        return f"Chapter {number}"

    assert chapter(3) == "Chapter 3"


def test_a_plain_declaration_says_no_more_than_it_has_to() -> None:
    assert fixed("text").definition() == {"uri": "docs://handbook", "name": "handbook"}


def test_a_definition_shows_all_that_was_declared() -> None:
    @declared(
        "docs://chapters/{number}",
        name="chapter-text",
        title="A chapter",
        mime_type="text/plain",
        annotations={"audience": ["user"], "priority": 0.5},
        icons=[{"src": "https://example.com/a.png"}],
        meta={"example.com/kind": "text"},
        fresh_for=timedelta(minutes=1),
        cache_scope="public",
    )
    def chapter(number: int) -> str:
        """A chapter of the handbook.

        By its number.
        """
        return str(number)

    assert chapter.definition() == {
        "uriTemplate": "docs://chapters/{number}",
        "name": "chapter-text",
        "title": "A chapter",
        "description": "A chapter of the handbook.\n\nBy its number.",
        "mimeType": "text/plain",
        "annotations": {"audience": ["user"], "priority": 0.5},
        "icons": [{"src": "https://example.com/a.png"}],
        "_meta": {"example.com/kind": "text"},
    }
    assert (chapter.fresh_for, chapter.cache_scope) == (timedelta(minutes=1), "public")


def test_nothing_is_cached_unless_its_author_says_so() -> None:
    """caching.mdx: "public" only when all callers read the same."""
    found = fixed("text")
    assert (found.fresh_for, found.cache_scope) == (timedelta(0), "private")


class Person(BaseModel):
    """A row."""

    name: str
    born: date


@pytest.mark.parametrize(
    ("value", "options", "contents"),
    [
        ("text", {}, {"text": "text"}),
        ("<p>", {"mime_type": "text/html"}, {"mimeType": "text/html", "text": "<p>"}),
        (
            b"\x00\xff",
            {"mime_type": "image/png"},
            {"mimeType": "image/png", "blob": base64.b64encode(b"\x00\xff").decode()},
        ),
        (b"", {}, {"blob": ""}),
        ({"a": [1, "ä"]}, {}, {"mimeType": JSON, "text": '{"a": [1, "ä"]}'}),
        ([1, 2], {"mime_type": "text/x-list"}, {"mimeType": "text/x-list", "text": "[1, 2]"}),
        ([], {}, {"mimeType": JSON, "text": "[]"}),
        ([{"uri": "a:b"}], {}, {"mimeType": JSON, "text": '[{"uri": "a:b"}]'}),
        (
            Person(name="Ada", born=date(1815, 12, 10)),
            {},
            {"mimeType": JSON, "text": '{"name": "Ada", "born": "1815-12-10"}'},
        ),
        (None, {}, {"mimeType": JSON, "text": "null"}),
    ],
)
def test_return_values_become_contents(
    value: Any, options: dict[str, Any], contents: dict[str, Any]
) -> None:
    assert read(fixed(value, **options)) == [{"uri": "docs://handbook", **contents}]


def test_a_function_may_return_several_contents_of_its_own() -> None:
    several = [
        content.resource_contents("docs://a", "text", "text/plain"),
        content.resource_contents("docs://b", b"bytes"),
    ]
    assert read(fixed(several)) == several


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}])
def test_a_value_that_is_not_json_is_an_error(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        read(fixed(value))


def test_variables_become_the_parameters_types() -> None:
    @declared("docs://{number}/{day}/{kind}")
    def page(number: int, day: date, kind: Literal["a", "b"], task: TaskContext) -> str:
        return repr((number, day, kind, type(task)))

    uri = "docs://7/2026-01-02/a"
    (contents,) = read(page, uri, number="7", day="2026-01-02", kind="a")
    assert contents["uri"] == uri
    assert contents["text"] == repr((7, date(2026, 1, 2), "a", TaskContext))


@pytest.mark.parametrize(("number", "kind"), [("seven", "a"), ("7.5", "a"), ("", "a"), ("7", "c")])
def test_a_uri_whose_variables_have_other_types_is_of_no_resource(number: str, kind: str) -> None:
    @declared("docs://{number}/{kind}")
    def page(number: int, kind: Literal["a", "b"]) -> str:
        raise AssertionError("called with what it does not take")

    with pytest.raises(NotFound):
        read(page, number=number, kind=kind)


def test_a_function_may_say_that_there_is_nothing() -> None:
    @declared("docs://{name}")
    def page(name: str) -> str:
        raise NotFound(name)

    with pytest.raises(NotFound):
        read(page, name="a")


@pytest.mark.parametrize("uri", ["docs://handbook", "docs://{number}", "docs://{a}/{b}/{c}"])
def test_the_parameters_are_the_variables(uri: str) -> None:
    with pytest.raises(TypeError, match="variables"):

        @resource(uri)
        def page(a: str, b: str) -> str:
            return a + b


def test_a_context_is_no_variable() -> None:
    with pytest.raises(TypeError, match="variables"):

        @resource("docs://{task}")
        def page(task: TaskContext) -> str:
            return "text"


@pytest.mark.parametrize("uri", ["handbook", "docs://{a b}", "docs://{name"])
def test_a_uri_that_is_none_is_refused_when_it_is_declared(uri: str) -> None:
    with pytest.raises(ValueError, match=re.escape(uri)):
        resource(uri)(lambda: "text")


def test_a_completion_for_no_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="language"):

        @resource("docs://{number}", complete={"language": ["en"]})
        def page(number: int) -> str:
            return "text"
