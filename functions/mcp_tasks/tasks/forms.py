"""Forms: the flat JSON Schemas that a task may ask a person to fill in.

client/elicitation.mdx, "Requested Schema": an object of primitive fields. A form that a client
refuses, or that this server cannot validate, would leave its task waiting until it expires. So it
is refused when it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..json_schema import InvalidSchema, SchemaMismatch, check_value, compile_schema

TEXT: Final = {"type": "string"}
COUNT: Final = {"type": "integer", "minimum": 0}
NUMBER: Final = {"type": "number"}
TEXTS: Final = {"type": "array", "items": TEXT, "minItems": 1}
TITLED: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"const": TEXT, "title": TEXT},
        "required": ["const", "title"],
    },
    "minItems": 1,
}

FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "string": {
        "minLength": COUNT,
        "maxLength": COUNT,
        "format": {"enum": ["email", "uri", "date", "date-time"]},
        "default": TEXT,
        "enum": TEXTS,
        "enumNames": TEXTS,
        "oneOf": TITLED,
    },
    "number": {"minimum": NUMBER, "maximum": NUMBER, "default": NUMBER},
    "integer": {"minimum": NUMBER, "maximum": NUMBER, "default": NUMBER},
    "boolean": {"default": {"type": "boolean"}},
    "array": {
        "minItems": COUNT,
        "maxItems": COUNT,
        "default": {"type": "array", "items": TEXT},
        "items": {
            "anyOf": [
                {"properties": {"type": {"const": "string"}, "enum": TEXTS}, "required": ["enum"]},
                {"properties": {"anyOf": TITLED}, "required": ["anyOf"]},
            ],
            "type": "object",
        },
    },
}
"""Type -> what its keywords must be (the specification's `PrimitiveSchemaDefinition`)."""


ALLOWED: Final = "a form's field is a string, number, boolean, or a choice of strings"


class InvalidQuestion(ValueError):
    """A question that a workflow cannot ask; the message names it and what is wrong."""


class InvalidAnswer(ValueError):
    """An answer that does not match its question; the message names the key and what is wrong."""


def check_form(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is not a flat object of primitive fields.

    Raises InvalidQuestion naming the field.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        raise InvalidQuestion("a form is an object with at least one field")
    if not _is_list_of_text(schema.get("required", [])):
        raise InvalidQuestion("required is a list of fields' names")
    for name, field in properties.items():
        kind = field.get("type") if isinstance(field, Mapping) else None
        if not isinstance(kind, str) or kind not in FIELDS:
            raise InvalidQuestion(f"{name}: {ALLOWED}")
        keywords = {"title": TEXT, "description": TEXT, **FIELDS[kind]}
        required = ["items"] if kind == "array" else []
        rules = {"type": "object", "properties": keywords, "required": required}
        try:
            check_value(compile_schema(rules), field, name)
        except SchemaMismatch as error:
            raise InvalidQuestion(f"{name}: {ALLOWED} ({error})") from None
        try:
            compile_schema({"type": "object", "properties": {name: field}})
        except InvalidSchema:
            raise InvalidQuestion(f"{name}: not a JSON Schema") from None


def check_content(schema: Mapping[str, Any], content: object) -> None:
    """Refuse a filled-in form that breaks its schema.

    Raises InvalidAnswer naming the field and the rule, and not the value, which stays private.
    """
    try:
        check_value(compile_schema(schema), content, "content")
    except SchemaMismatch as error:
        raise InvalidAnswer(str(error)) from None


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
