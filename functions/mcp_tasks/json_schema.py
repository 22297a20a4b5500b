"""Validation by JSON Schema (2026-07-28 basic/index.mdx, "JSON Schema Usage").

The dialect is draft 2020-12, unless a schema names another. No `$ref` is fetched from the network.
No message quotes the value that was checked, because it may be private.

The validator is imported on first use, because polling a task does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

VALUE_MASK: Final = "the value"
"""What messages have in place of the value."""

MAX_NAME_CHARACTERS: Final = 64
MAX_PATH_PARTS: Final = 10
MAX_REASON_CHARACTERS: Final = 500
ELLIPSIS: Final = "..."

_ALTERNATIVES: Final = frozenset({"anyOf", "oneOf"})
_NAMED_SCHEMAS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_DATA: Final = frozenset({"const", "default", "enum", "examples"})


class InvalidSchema(ValueError):
    """A value is no JSON Schema, or its dialect is not supported."""


class SchemaMismatch(ValueError):
    """A value does not fit a schema. The message says where and why, without the value."""


class CompiledSchema:
    """A schema that values can be checked with. Raises InvalidSchema for what is no schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        try:
            self._validator = _validator(self._schema)
        except ValueError as error:
            raise InvalidSchema(str(error).partition("\n")[0]) from None

    def check(self, value: Any, name: str) -> None:
        """Raises SchemaMismatch, which locates the first violation within `name`."""
        if self._validator.is_valid(value):
            return
        error = self._first_error(value)
        if error is None:
            raise SchemaMismatch(f"{name}: {VALUE_MASK} does not fit its schema")
        where = location(error.instance_path) or name
        raise SchemaMismatch(f"{where}: {shortened(_reason(error), MAX_REASON_CHARACTERS)}")

    def _first_error(self, value: Any) -> Any:
        """The first violation; None when only the whole schema finds one."""
        try:
            self._locator.validate(value)
        except ValueError as error:
            return error
        return None

    @cached_property
    def _locator(self) -> Any:
        """The validator that finds violations.

        The library reports a violation of `anyOf` or `oneOf` with all violations of all their
        schemas: of a large value those are gigabytes, and of a recursive schema exponentially many.
        Here these keywords only say yes or no.
        """
        try:
            return _validator(_without_context(self._schema))
        except ValueError:  # A `$ref` leads into an `anyOf` or `oneOf`, which stands elsewhere now.
            return _validator({})


def compile_schema(schema: Mapping[str, Any]) -> CompiledSchema:
    """Compile a schema. Raises InvalidSchema."""
    return CompiledSchema(schema)


def check_value(schema: CompiledSchema, value: Any, name: str) -> None:
    """Check a value. Raises SchemaMismatch, which locates the first violation within `name`."""
    schema.check(value, name)


def location(path: Sequence[str | int]) -> str:
    """The path to a part of a value, as messages have it: its names shortened, its middle left out.

    Whoever sends a value chooses its names: one may be a megabyte long.
    """
    parts = [shortened(str(part), MAX_NAME_CHARACTERS) for part in path]
    if len(parts) > MAX_PATH_PARTS:
        half = MAX_PATH_PARTS // 2
        parts = [*parts[:half], ELLIPSIS, *parts[-half:]]
    return ".".join(parts)


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning with an ellipsis when it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - len(ELLIPSIS)] + ELLIPSIS


def _validator(schema: Mapping[str, Any]) -> Any:
    """The library's validator. Raises ValueError for what is no schema."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        dict(schema), mask=VALUE_MASK, validate_formats=True, offline=True
    )


def _reason(error: Any) -> str:
    """What is wrong, without the value."""
    refused = error.kind.schema if error.kind.name == "not" else None
    alternatives = refused.get("not") if isinstance(refused, dict) else None
    if isinstance(alternatives, dict) and alternatives.keys() <= _ALTERNATIVES:
        (keyword,) = alternatives
        which = "exactly one" if keyword == "oneOf" else "any"
        return f'{VALUE_MASK} is not valid under {which} of the schemas of the "{keyword}" keyword'
    return str(error.message)


def _without_context(schema: Any) -> Any:
    """The schema with each `anyOf` and `oneOf` in a double negation, which has no context."""
    if isinstance(schema, list):
        return [_without_context(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for keyword, child in schema.items():
        if keyword in _NAMED_SCHEMAS and isinstance(child, dict):
            made[keyword] = {name: _without_context(each) for name, each in child.items()}
        elif keyword not in _ALTERNATIVES:
            made[keyword] = child if keyword in _DATA else _without_context(child)
    negated = [
        {"not": {"not": {keyword: schema[keyword]}}} for keyword in _ALTERNATIVES & schema.keys()
    ]
    return {**made, "allOf": [*made.get("allOf", []), *negated]} if negated else made
