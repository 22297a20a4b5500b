"""Validation by JSON Schema (2026-07-28 basic/index.mdx, "JSON Schema Usage").

The dialect is draft 2020-12, unless a schema names another. No `$ref` is fetched from the network.
No message quotes the value that was checked, because it may be private.

The validator is imported on first use, because polling a task does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

VALUE_MASK: Final = "the value"
"""What messages have in place of the value."""


class InvalidSchema(ValueError):
    """A value is no JSON Schema, or its dialect is not supported."""


class SchemaMismatch(ValueError):
    """A value does not fit a schema. The message says where and why, without the value."""


class CompiledSchema(Protocol):
    """A schema that values can be checked with."""

    def iter_errors(self, instance: Any) -> Any:
        """Every error, in no particular order."""


def compile_schema(schema: Mapping[str, Any]) -> CompiledSchema:
    """Compile a schema. Raises InvalidSchema."""
    import jsonschema_rs

    try:
        validator: CompiledSchema = jsonschema_rs.validator_for(
            dict(schema), mask=VALUE_MASK, validate_formats=True, offline=True
        )
    except ValueError as error:
        raise InvalidSchema(str(error).partition("\n")[0]) from None
    return validator


def check_value(schema: CompiledSchema, value: Any, name: str) -> None:
    """Check a value. Raises SchemaMismatch, which locates the first violation within `name`."""
    error = next(iter(schema.iter_errors(value)), None)
    if error is not None:
        where = ".".join(str(part) for part in error.instance_path)
        raise SchemaMismatch(f"{where or name}: {error.message}")
