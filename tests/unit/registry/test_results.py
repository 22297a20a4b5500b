"""From a return value, or an execution's output, to a CallToolResult (tools.mdx, "Tool Result")."""

from __future__ import annotations

import json
import warnings
from datetime import date
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter

from mcp_tasks import TaskContext, ToolResult, tool
from mcp_tasks.json_schema import SchemaMismatch
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.results import (
    MAX_TEXT_COPY_CHARACTERS,
    error_result,
    function_result,
    structured_result,
    text_result,
    workflow_result,
)
from mcp_tasks.registry.schema import WrittenSchema
from tests import wire

IMAGE: Final = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


class Person(BaseModel):
    name: str = Field(serialization_alias="fullName", validation_alias="fullName")
    born: date


PERSON: Final = Person.model_validate({"fullName": "Ada", "born": date(1815, 12, 10)})
WRITTEN: Final = {"fullName": "Ada", "born": "1815-12-10"}
WRITTEN_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "fullName": {"type": "string"},
        "born": {"type": "string", "format": "date"},
    },
    "required": ["fullName", "born"],
}
ADAPTER: Final[TypeAdapter[Any]] = TypeAdapter(Person)


def checked(result: dict[str, Any]) -> dict[str, Any]:
    """The result, once the specification's schema has seen it."""
    message = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **result}}
    wire.check("tools/call", message)
    return result


# functions


def test_text_is_one_block_of_text() -> None:
    assert checked(function_result("hi", None)) == {"content": [{"type": "text", "text": "hi"}]}


def test_nothing_is_no_content() -> None:
    assert checked(function_result(None, None)) == {"content": []}


def test_a_typed_value_is_structured_content_with_a_copy_as_text() -> None:
    """tools.mdx, "Structured Content": the copy is for clients that do not read it."""
    result = checked(function_result(PERSON, ADAPTER))
    assert result["structuredContent"] == WRITTEN
    assert json.loads(result["content"][0]["text"]) == WRITTEN


@pytest.mark.parametrize("value", [0, False, [], {}, 0.5, [1, "a"], {"a": None}])
def test_an_untyped_value_is_structured_content(value: Any) -> None:
    result = checked(function_result(value, None))
    assert result["structuredContent"] == value
    assert json.loads(result["content"][0]["text"]) == value


def test_content_of_ones_own_stands_as_it_is() -> None:
    result = checked(function_result(ToolResult([IMAGE], structured_content={"a": 1}), None))
    assert result == {"content": [IMAGE], "structuredContent": {"a": 1}}
    assert function_result(ToolResult([IMAGE]), None) == {"content": [IMAGE]}
    assert checked(function_result(ToolResult([IMAGE], is_error=True), None))["isError"] is True


@pytest.mark.parametrize("declared", [ADAPTER, WrittenSchema(WRITTEN_SCHEMA)])
def test_a_tool_result_has_to_fit_the_output_schema(declared: Any) -> None:
    """tools.mdx, "Output Schema": servers MUST provide structured results that conform to it."""
    good = ToolResult([IMAGE], structured_content=WRITTEN)
    assert function_result(good, declared) == {"content": [IMAGE], "structuredContent": WRITTEN}
    for wrong in (None, {}, {"fullName": "Ada", "born": "yesterday"}):
        with pytest.raises(ValueError):  # noqa: PT011  pydantic's, or this library's
            function_result(ToolResult([IMAGE], structured_content=wrong), declared)


@pytest.mark.parametrize("declared", [ADAPTER, WrittenSchema(WRITTEN_SCHEMA)])
def test_an_error_needs_no_structured_content(declared: Any) -> None:
    result = function_result(ToolResult([IMAGE], is_error=True), declared)
    assert result == {"content": [IMAGE], "isError": True}


@pytest.mark.parametrize("block", [{}, {"type": "text"}, {"type": "image", "data": "aGk="}, "hi"])
def test_content_that_no_client_could_read_is_an_error(block: Any) -> None:
    with pytest.raises(ValueError, match="content block"):
        function_result(ToolResult([block]), None)


def test_a_value_is_checked_against_a_written_schema() -> None:
    written = WrittenSchema(WRITTEN_SCHEMA)
    assert checked(function_result(WRITTEN, written))["structuredContent"] == WRITTEN
    with pytest.raises(SchemaMismatch, match=r"^the result: .*born"):
        function_result({"fullName": "Ada"}, written)


def test_an_error_is_a_result_that_says_so() -> None:
    assert checked(error_result("no")) == {**text_result("no"), "isError": True}


@pytest.mark.parametrize("size", [MAX_TEXT_COPY_CHARACTERS - 2, MAX_TEXT_COPY_CHARACTERS - 1])
def test_a_large_copy_is_left_out_and_said_so(size: int) -> None:
    """A task's row has to hold both."""
    value = "x" * size
    result = checked(structured_result(value))
    assert result["structuredContent"] == value
    text = result["content"][0]["text"]
    if size + 2 <= MAX_TEXT_COPY_CHARACTERS:
        assert json.loads(text) == value
    else:
        assert "structuredContent" in text
        assert len(text) < 200


def test_a_copy_is_readable_in_every_language() -> None:
    assert structured_result("ключ")["content"][0]["text"] == '"ключ"'


@pytest.mark.parametrize("wrong", ["five", None, {"a": 1}])
def test_a_value_of_another_type_than_promised_is_an_error(wrong: Any) -> None:
    """tools.mdx: structured content MUST conform to the output schema.

    pydantic only warns when it writes such a value, and in a function nobody hears that.
    """

    @tool
    def number() -> int:
        """Promise a number."""
        result: int = wrong
        return result

    declaration = getattr(number, DECLARATION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"."):
            declaration.run({}, TaskContext())


def test_a_written_value_conforms_to_the_schema_that_was_shown() -> None:
    @tool
    def person() -> Person:
        """Find a person."""
        return PERSON

    declaration = getattr(person, DECLARATION)
    result = checked(declaration.run({}, TaskContext()))
    Draft202012Validator(declaration.definition()["outputSchema"]).validate(
        result["structuredContent"]
    )


# workflows


def test_an_output_of_the_declared_type_is_structured_content() -> None:
    result = checked(workflow_result(WRITTEN, ADAPTER))
    assert result["structuredContent"] == WRITTEN


@pytest.mark.parametrize("output", [None, {}, "Ada", {"fullName": "Ada"}, {**WRITTEN, "born": "?"}])
def test_an_output_of_another_type_is_refused_without_its_values(output: Any) -> None:
    with pytest.raises(ValueError, match="fields differ") as caught:
        workflow_result(output, ADAPTER)
    assert "Ada" not in str(caught.value)


def test_an_untyped_output_that_is_a_result_stands_as_it_is() -> None:
    result = {"content": [IMAGE], "isError": True}
    assert checked(workflow_result(result, None)) == result


@pytest.mark.parametrize("output", [0, False, [], {"a": 1}, {"content": "text"}])
def test_any_other_untyped_output_is_structured_content(output: Any) -> None:
    assert checked(workflow_result(output, None))["structuredContent"] == output


def test_an_untyped_text_is_text_and_nothing_is_nothing() -> None:
    assert checked(workflow_result("done", None)) == text_result("done")
    assert checked(workflow_result(None, None)) == {"content": []}


@pytest.mark.parametrize(
    "output",
    [
        {"content": [{"type": "paragraph", "body": "a page of somebody's CMS"}]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "image", "url": "https://example.com/a.png"}]},
        {"content": [{"type": "text", "text": "a"}], "isError": "no"},
        {"content": [{"type": "text", "text": "a"}], "resultType": "task"},
    ],
    ids=["another type", "no text", "no data", "isError as text", "a resultType of its own"],
)
def test_an_output_that_only_looks_like_a_result_is_sent_as_a_valid_one(output: Any) -> None:
    """A workflow's output may have any shape; clients have to be able to read the result."""
    checked(workflow_result(output, None))


@pytest.mark.parametrize(
    "value", [float("nan"), {"at": object()}, [{1, 2}]], ids=["nan", "an object", "a set"]
)
def test_content_of_ones_own_is_json(value: Any) -> None:
    """The error is the tool's, instead of one in the client's parser."""
    with pytest.raises((ValueError, TypeError)):
        ToolResult([{"type": "text", "text": "a"}], value).as_result()
