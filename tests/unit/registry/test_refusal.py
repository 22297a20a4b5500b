"""What a client is told about wrong arguments."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, Json

from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.function_tool import tool
from mcp_tasks.registry.refusal import InvalidArguments
from mcp_tasks.registry.schema import (
    WrittenSchema,
    parameters_model,
    text_arguments,
    validate_arguments,
)
from mcp_tasks.registry.tool import Tool

SECRET: Final = "hunter2"
MAX_BYTES: Final = 8 * 1024
MANY: Final = 90_000


class Context:
    """What parameters_model leaves out."""


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    count: int
    within: Item | None = None


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def function(
    items: list[Item] | None = None,
    numbers: list[int] | None = None,
    pet: Pet | None = None,
    counts: dict[str, int] | None = None,
    within: Json[list[int]] | None = None,
) -> None:
    """Take anything."""


MODEL: Final = parameters_model(function, (Context,))


def refusal(arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(MODEL, arguments)
    return str(caught.value)


def nested(levels: int, bottom: Any) -> Any:
    for _ in range(levels):
        bottom = {"name": "n", "count": 1, "within": bottom}
    return bottom


def test_all_of_a_few_errors_are_told() -> None:
    said = refusal({"items": [{}, {"name": 5, "count": "5"}], "numbers": [1, "2", "3"]})
    wrong = ["items.0.name", "items.0.count", "items.1.name", "items.1.count"]
    assert [part.partition(":")[0] for part in said.split("; ")] == [
        *wrong,
        *("numbers.1", "numbers.2"),
    ]


def test_of_many_errors_the_first_are_told_and_how_many_more_there_are() -> None:
    said = refusal({"numbers": [""] * 500}).split("; ")
    assert said[0].startswith("numbers.0: ")
    assert said[-1] == f"and {500 - (len(said) - 1)} more"
    assert 20 < len(said) < 200


def test_more_errors_than_are_made_objects_are_told_in_the_same_way() -> None:
    few, many = refusal({"numbers": [""] * 999}), refusal({"numbers": [""] * 2000})
    assert few.split("; ")[:-1] == many.split("; ")[:-1]
    assert many.endswith(f"and {2000 - many.count('; ')} more")


def test_of_very_many_errors_in_an_array_the_first_is_told() -> None:
    assert refusal({"numbers": [""] * MANY}) == "numbers.0: Input should be a valid integer"
    said = refusal({"items": [{}] * MANY, "more": 1})
    assert [part.partition(":")[0] for part in said.split("; ")] == [
        *("items.0.name", "items.0.count", "more")
    ]


LARGE: Final[dict[str, dict[str, Any]]] = {
    "unknown members": {f"name {n}": n for n in range(MANY)},
    "a long unknown member": {"n" * 1_000_000: 1},
    "emoji": {"🦊" * 250_000: 1, "counts": {"🦊" * 1000 + str(n): "" for n in range(100)}},
    "wrong numbers": {"numbers": ["x"] * MANY},
    "wrong items": {"items": [{SECRET: SECRET}] * MANY},
    "a long name of wrong values": {"counts": {"k" * 900_000: ""}},
    "much nesting": {"items": [nested(90, {})]},
    "a long tag": {"pet": {"kind": SECRET * 100_000}},
    "quotes": {'"\\\n\x00' * 100_000: 1},
    "JSON in a text": {"within": json.dumps([SECRET] * MANY)},
}


@pytest.mark.parametrize("arguments", LARGE.values(), ids=LARGE)
def test_a_refusal_is_small_and_quotes_no_value(arguments: dict[str, Any]) -> None:
    said = refusal(arguments)
    assert len(json.dumps(said)) < MAX_BYTES
    assert f"'{SECRET}" not in said
    assert SECRET * 2 not in said


@pytest.mark.parametrize("arguments", LARGE.values(), ids=LARGE)
def test_a_refusal_by_a_written_schema_is_small(arguments: dict[str, Any]) -> None:
    schema = MODEL.model_json_schema()

    @tool(input_schema={"type": "object", **schema})
    def written(arguments: dict[str, Any]) -> None:
        """Take anything."""

    declared: Tool = getattr(written, DECLARATION)
    assert isinstance(declared.arguments, WrittenSchema)
    if "within" in arguments:  # To a JSON Schema it is a text, which it may be.
        arguments = {"within": 5}
    with pytest.raises(InvalidArguments) as caught:
        declared.check_arguments(arguments)
    assert len(json.dumps(str(caught.value))) < MAX_BYTES


def test_a_refusal_of_texts_is_small() -> None:
    def prompt(count: int, within: Json[list[int]]) -> str:
        """Take texts."""
        return ""

    model = parameters_model(prompt, (Context,))
    for texts in (
        {f"name {n}": "" for n in range(MANY)},
        {"count": "9" * 1_000_000},
        {"count": "1", "within": json.dumps([""] * MANY)},
        {"n" * 1_000_000: ""},
    ):
        with pytest.raises(InvalidArguments) as caught:
            text_arguments(model, texts)
        assert len(json.dumps(str(caught.value))) < MAX_BYTES


def test_a_wrong_tag_is_not_quoted() -> None:
    assert refusal({"pet": {"kind": SECRET}}) == "pet: The tag is none of 'cat', 'dog'"


def test_what_would_take_too_long_is_refused_with_what_to_do() -> None:
    class Either(BaseModel):
        child: Either | Other | None = None

    class Other(BaseModel):
        child: Either | Other | None = None

    Either.model_rebuild(_types_namespace={"Either": Either, "Other": Other})
    value: Any = {}
    for _ in range(60):
        value = {"child": value}
    with pytest.raises(InvalidArguments, match="too long; send fewer, shorter or less nested"):
        validate_arguments(Either, value)
