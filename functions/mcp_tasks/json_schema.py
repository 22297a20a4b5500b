"""JSON Schema, as the protocol wants it checked (2026-07-28 basic/index.mdx, "JSON Schema Usage").

Draft 2020-12 unless a schema names another dialect; nothing is ever fetched from the network; and
no message quotes the value that was checked, because it may be private.

The validator is imported on first use: polling a task does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

HIDDEN: Final = "the value"


class InvalidSchema(ValueError):
    """This is not a JSON Schema, or one of a dialect that is not known here."""


class Mismatch(ValueError):
    """A value breaks a schema; the message says where and how, without the value."""


class Schema(Protocol):
    """A compiled schema."""

    def iter_errors(self, instance: Any) -> Any:
        """Every error, in no particular order."""


def compiled(schema: Mapping[str, Any]) -> Schema:
    """Compile a schema. Raises InvalidSchema."""
    import jsonschema_rs

    try:
        validator: Schema = jsonschema_rs.validator_for(
            dict(schema), mask=HIDDEN, validate_formats=True, offline=True
        )
    except ValueError as error:
        raise InvalidSchema(str(error).partition("\n")[0]) from None
    return validator


def check(schema: Schema, value: Any, name: str) -> None:
    """Check a value. Raises Mismatch for the first thing that is wrong, as a part of `name`."""
    error = next(iter(schema.iter_errors(value)), None)
    if error is not None:
        where = ".".join(str(part) for part in error.instance_path)
        raise Mismatch(f"{where or name}: {error.message}")
