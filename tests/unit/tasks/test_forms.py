"""Forms that a task may ask a person to fill in (client/elicitation.mdx, "Requested Schema").

How answers are checked against them is in test_inputs.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_tasks.tasks.forms import InvalidAnswer, InvalidQuestion, check_form
from mcp_tasks.tasks.questions import FormQuestion
from tests.wire import CORE, SCHEMAS

KEYWORDS: Final = {
    "type": st.sampled_from(
        ["string", "number", "integer", "boolean", "array", "object", "null", ["string", "null"], 5]
    ),
    "title": st.sampled_from(["Title", 5]),
    "minLength": st.sampled_from([1, "1", 0.5]),
    "minimum": st.sampled_from([1, "1", None]),
    "format": st.sampled_from(["date", "email", "uuid", "password", 5]),
    "enum": st.sampled_from([["a"], [1], "a", []]),
    "items": st.sampled_from(
        [
            {"type": "string", "enum": ["a"]},
            {"type": "integer", "enum": [1]},
            {"enum": ["a"]},
            {"type": "string"},
            {"anyOf": [{"const": "a", "title": "A"}]},
            {"anyOf": [{"type": "object"}]},
            [],
        ]
    ),
    "default": st.sampled_from([True, 1, "a", ["a"], None]),
    "oneOf": st.sampled_from([[{"const": "a", "title": "A"}], [{"type": "object"}], 5]),
    "properties": st.just({"nested": {"type": "string"}}),
    "pattern": st.sampled_from(["^a+$", "("]),
}
FIELDS: Final = st.fixed_dictionaries({}, optional=KEYWORDS)
ELICITATION: Final = Draft202012Validator(
    {**json.loads((SCHEMAS / CORE).read_text()), "$ref": "#/$defs/ElicitRequestFormParams"}
)


@settings(max_examples=300)
@given(FIELDS, st.sampled_from([None, ["field"], "field", [1]]))
def test_a_form_that_may_be_asked_can_be_shown_and_answered(
    field: dict[str, Any], required: Any
) -> None:
    """What a client refuses, or the server cannot check, would keep the task waiting for ever."""
    schema: dict[str, Any] = {"type": "object", "properties": {"field": field}}
    if required is not None:
        schema["required"] = required
    try:
        check_form(schema)
    except InvalidQuestion:
        return
    ELICITATION.validate({"mode": "form", "message": "?", "requestedSchema": schema})
    for value in ("a", 1, True, ["a"]):
        with suppress(InvalidAnswer):
            FormQuestion("?", schema).check(
                "key", {"action": "accept", "content": {"field": value}}
            )


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 5, "default": "a", "title": "T"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
        {"type": "number", "minimum": 0.5, "default": 1},
        {"type": "integer", "maximum": 5},
        {"type": "boolean", "default": False, "description": "Really"},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1},
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    ],
)
def test_every_kind_of_field_may_be_asked(field: dict[str, Any]) -> None:
    """client/elicitation.mdx, "Requested Schema"."""
    check_form({"type": "object", "properties": {"field": field}})


@pytest.mark.parametrize(
    "field",
    [
        {"type": "object"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"$ref": "#/$defs/Color"},
        {"enum": ["a", "b"]},
        {"type": "string", "format": "uuid"},
        {"type": "string", "pattern": "("},
        {"type": "string", "enum": [1]},
        {"type": "number", "minimum": "1"},
        {"type": "array"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "integer", "enum": [1]}},
        {},
        True,
        "string",
    ],
)
def test_a_field_that_a_client_refuses_is_named(field: Any) -> None:
    with pytest.raises(InvalidQuestion, match="my field"):
        check_form({"type": "object", "properties": {"my field": field}})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": []},
        {"type": "array", "properties": {"a": {"type": "string"}}},
        {"properties": {"a": {"type": "string"}}},
    ],
)
def test_a_form_is_an_object_with_a_field(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuestion, match="at least one field"):
        check_form(schema)
