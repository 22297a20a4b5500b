"""JSON Schemas from Python types, and the checks that go with them."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from pydantic import AnyUrl, BaseModel, Field, create_model

from mcp_tasks.registry.schema import (
    InvalidArguments,
    forbid_extra,
    object_schema,
    parameters_model,
    requested_schema,
    result_adapter,
    result_schema,
    validate_arguments,
)
from tests.wire import CORE, SCHEMAS


class Context:
    """What parameters_model leaves out."""


class Color(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Inner(BaseModel):
    title: str


def everything(
    context: Context,
    text: str,
    number: float,
    whole: int,
    flag: bool,
    day: date,
    color: Color,
    inner: Inner,
    several: list[int],
    pair: tuple[int, str],
    maybe: str | None = None,
    choice: Literal["a", "b"] = "a",
    described: Annotated[int, Field(description="How many", ge=1)] = 1,
) -> str:
    """Take everything."""
    return ""


MODEL: Final = parameters_model(everything, (Context,))
GOOD: Final[dict[str, Any]] = {
    "text": "a",
    "number": 0.5,
    "whole": 2,
    "flag": True,
    "day": "2026-11-21",
    "color": "red",
    "inner": {"title": "x"},
    "several": [1, 2],
    "pair": [1, "a"],
}


# parameters


def test_a_schema_is_a_closed_object_of_the_parameters() -> None:
    schema = object_schema(MODEL)
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(GOOD)
    assert "context" not in schema["properties"]
    assert schema["properties"]["described"] == {
        "description": "How many",
        "minimum": 1,
        "type": "integer",
        "default": 1,
    }


def test_generated_titles_are_left_out_and_properties_of_that_name_are_not() -> None:
    """They repeat the names, and cost a model's tokens."""
    schema = object_schema(MODEL)
    assert "title" not in schema
    assert "title" not in schema["properties"]["text"]
    assert schema["$defs"]["Inner"]["properties"]["title"] == {"type": "string"}
    assert "title" in schema["$defs"]["Inner"]["required"]


@pytest.mark.parametrize("name", ["title", "default", "examples", "properties", "enum", "const"])
def test_a_parameter_called_like_a_keyword_is_a_parameter(name: str) -> None:
    model = create_model("Arguments", **{name: (int, ...)})  # type: ignore[call-overload]
    assert object_schema(model)["properties"] == {name: {"type": "integer"}}


def test_a_default_that_looks_like_a_schema_is_kept() -> None:
    def function(options: dict[str, str] = {"title": "kept"}) -> None:  # noqa: B006
        """Take options."""

    schema = object_schema(parameters_model(function, (Context,)))
    assert schema["properties"]["options"]["default"] == {"title": "kept"}


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def function() -> None:
        """Take nothing."""

    model = parameters_model(function, (Context,))
    assert object_schema(model)["properties"] == {}
    assert validate_arguments(model, {}) == {}
    with pytest.raises(InvalidArguments, match="more:"):
        validate_arguments(model, {"more": 1})


def test_arguments_become_the_functions_types() -> None:
    values = validate_arguments(MODEL, GOOD)
    assert values["day"] == date(2026, 11, 21)
    assert values["color"] is Color.RED
    assert values["inner"] == Inner(title="x")
    assert values["pair"] == (1, "a")
    assert values["maybe"] is None
    assert values["choice"] == "a"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", 5),
        ("text", None),
        ("number", "0.5"),
        ("number", True),
        ("whole", "5"),
        ("whole", 5.5),
        ("whole", True),
        ("flag", 1),
        ("flag", "true"),
        ("day", "yesterday"),
        ("day", 5),
        ("color", "green"),
        ("inner", "x"),
        ("several", "1,2"),
        ("several", ["1"]),
        ("pair", [1]),
        ("maybe", 5),
        ("choice", "c"),
        ("described", 0),
    ],
)
def test_checks_are_as_strict_as_the_schema(field: str, value: Any) -> None:
    """ "5" is no integer. The JSON Schema refuses the same arguments."""
    arguments = {**GOOD, field: value}
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(MODEL, arguments)
    assert f"{field}" in str(caught.value)
    if field != "day":  # `format` is an annotation in 2020-12
        assert not Draft202012Validator(object_schema(MODEL)).is_valid(arguments)


def test_arguments_that_fit_the_schema_are_accepted() -> None:
    arguments = {**GOOD, "number": 1}
    Draft202012Validator(object_schema(MODEL)).validate(arguments)
    assert validate_arguments(MODEL, arguments)["number"] == 1


def test_every_wrong_field_is_named_and_no_value() -> None:
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(
            MODEL, {**GOOD, "text": ["hunter2"], "whole": "hunter2", "more": "hunter2"}
        )
    assert all(f"{field}:" in str(caught.value) for field in ("text", "whole", "more"))
    assert "hunter2" not in str(caught.value)


def test_a_nested_field_is_named_by_its_path() -> None:
    with pytest.raises(InvalidArguments, match=r"inner\.title:"):
        validate_arguments(MODEL, {**GOOD, "inner": {}})
    with pytest.raises(InvalidArguments, match=r"several\.1:"):
        validate_arguments(MODEL, {**GOOD, "several": [1, "2"]})


def test_a_context_is_never_an_argument() -> None:
    with pytest.raises(InvalidArguments, match="context:"):
        validate_arguments(MODEL, {**GOOD, "context": {}})


def unannotated(a) -> None:  # type: ignore[no-untyped-def]
    """Not typed."""


def positional(a: int, /) -> None:
    """By position."""


def variable(*a: int) -> None:
    """Any number."""


def keywords(**a: int) -> None:
    """Any name."""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (unannotated, "annotation"),
        (positional, "named parameter"),
        (variable, "named parameter"),
        (keywords, "named parameter"),
    ],
)
def test_a_parameter_that_json_cannot_carry_is_named(function: Any, says: str) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}: parameter 'a'.*{says}"):
        parameters_model(function, (Context,))


def test_forbid_extra_refuses_fields_that_the_model_does_not_define() -> None:
    model = forbid_extra(Inner)
    assert model.__name__ == "Inner"
    assert model(title="x").model_dump() == {"title": "x"}
    with pytest.raises(InvalidArguments, match="more:"):
        validate_arguments(model, {"title": "x", "more": 1})
    assert object_schema(model)["additionalProperties"] is False


# results


@pytest.mark.parametrize("annotation", [str, None, type(None), Any])
def test_text_and_untyped_results_have_no_schema(annotation: Any) -> None:
    assert result_adapter(annotation) is None


@pytest.mark.parametrize("annotation", [int, list[Inner], Inner, Inner | None, dict[str, float]])
def test_a_typed_result_has_a_schema(annotation: Any) -> None:
    """tools.mdx: structured content may be any JSON value, and conforms to the schema."""
    adapter = result_adapter(annotation)
    assert adapter is not None
    Draft202012Validator.check_schema(result_schema(adapter))


# forms

PRIMITIVE: Final = Draft202012Validator(
    {
        **json.loads((SCHEMAS / CORE).read_text()),
        "$ref": "#/$defs/PrimitiveSchemaDefinition",
    }
)


class Form(BaseModel):
    """All that a form can show."""

    name: str
    age: Annotated[int, Field(ge=0, title="Your age", description="In years")]
    share: float = 0.5
    sure: bool = False
    born: date
    at: datetime
    color: Color
    favourite: Color = Color.BLUE
    word: Literal["yes", "no"]
    sizes: list[Literal["s", "m"]] = ["m"]


def test_a_form_is_a_flat_object_of_primitives() -> None:
    schema = requested_schema(Form)
    assert set(schema) == {"type", "properties", "required"}
    assert schema["type"] == "object"
    assert set(schema["required"]) == {"name", "age", "born", "at", "color", "word"}
    for name, field in schema["properties"].items():
        assert PRIMITIVE.is_valid(field), name
        assert "$ref" not in field


def test_a_form_keeps_the_words_that_a_person_reads() -> None:
    age = requested_schema(Form)["properties"]["age"]
    assert (age["title"], age["description"], age["minimum"]) == ("Your age", "In years", 0)


def test_an_enum_class_is_written_into_the_form() -> None:
    """Forms have no definitions."""
    fields = requested_schema(Form)["properties"]
    assert fields["color"]["enum"] == ["red", "blue"]
    assert fields["favourite"]["enum"] == ["red", "blue"]
    assert fields["favourite"]["default"] == "blue"


def form_of(annotation: Any) -> type[BaseModel]:
    return type("Odd", (BaseModel,), {"__annotations__": {"field": annotation}, "__module__": "m"})


@pytest.mark.parametrize(
    "annotation",
    [
        str | None,
        Inner,
        list[str],
        list[int],
        dict[str, str],
        str | int,
        Any,
        Decimal,
        None,
    ],
    ids=str,
)
def test_a_field_that_a_form_cannot_show_is_named(annotation: Any) -> None:
    """client/elicitation.mdx, "Requested Schema"."""
    with pytest.raises(ValueError, match=r"Odd\.field: a form's field is"):
        requested_schema(form_of(annotation))


@pytest.mark.parametrize("annotation", [UUID, time, timedelta, Path, bytes], ids=str)
def test_a_format_that_clients_do_not_know_is_refused_or_left_out(annotation: Any) -> None:
    """StringSchema knows email, uri, date and date-time. A client refuses other formats."""
    try:
        schema = requested_schema(form_of(annotation))
    except ValueError as error:
        assert "Odd.field" in str(error)  # noqa: PT017  either is right
    else:
        assert PRIMITIVE.is_valid(schema["properties"]["field"])


def test_a_format_that_clients_know_is_shown() -> None:
    assert requested_schema(form_of(AnyUrl))["properties"]["field"]["format"] == "uri"


def test_a_form_without_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one field"):
        requested_schema(type("Empty", (BaseModel,), {"__module__": "m"}))


def test_a_title_that_its_author_wrote_stays() -> None:
    class Arguments(BaseModel):
        to: Annotated[str, Field(title="Recipient")]
        first_name: str

    properties = object_schema(Arguments)["properties"]
    assert properties["to"]["title"] == "Recipient"
    assert "title" not in properties["first_name"]
