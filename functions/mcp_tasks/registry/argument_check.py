"""The check of arguments by pydantic, at a cost that is bounded whatever they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from .check_cost import TooCostly, all_errors_fit
from .checked_type import STOPPING
from .refusal import invalid_arguments, too_costly, too_large
from .type_graph import TypeGraph

_NO_SCHEMAS: Final = frozenset(
    {"cls", "config", "default", "discriminator", "expected", "members", "metadata"}
    | {"serialization"}
)
"""Members of a core schema that hold values, or what has no part in the check."""
_NAMED_SCHEMAS: Final = frozenset({"fields", "choices"})
"""Members that hold schemas by names of the author's."""


def checked(model: type[BaseModel], arguments: Any) -> BaseModel:
    """The arguments as a model. Raises InvalidArguments."""
    validator = _validator(model, arguments)
    try:
        # Strict, because the JSON Schema is: "5" is no integer. In JSON mode, because there a
        # string still becomes a date, and an array a tuple, as the schema says.
        found = validator.validate_json(json.dumps(_with_integers(arguments)), strict=True)
    except ValidationError as error:
        raise invalid_arguments(error) from None
    except (OverflowError, RecursionError):  # `re.compile` raises both: "a{9999999999}", "((((...".
        raise too_large() from None
    return _model(found)


def checked_texts(model: type[BaseModel], arguments: Mapping[str, str]) -> BaseModel:
    """Arguments that are all text, converted to the types of a model. Raises InvalidArguments."""
    texts: dict[str, Any] = dict(arguments)
    validator = _validator(model, texts)
    try:
        return _model(validator.validate_strings(texts))
    except ValidationError as error:
        raise invalid_arguments(error) from None
    except (OverflowError, RecursionError):  # `re.compile` raises both: "a{9999999999}", "((((...".
        raise too_large() from None


def _model(found: Any) -> BaseModel:
    model: BaseModel = found
    return model


def _validator(model: type[BaseModel], arguments: Any) -> SchemaValidator:
    """What to check the arguments with. Raises InvalidArguments when that would cost too much."""
    try:
        if all_errors_fit(_graph(model), arguments):
            return cast(SchemaValidator, model.__pydantic_validator__)
    except (TooCostly, RecursionError):
        raise too_costly() from None
    return _stopping_validator(model)


@lru_cache(maxsize=1000)
def _graph(model: type[BaseModel]) -> TypeGraph:
    return TypeGraph(model.__pydantic_core_schema__)


@lru_cache(maxsize=1000)
def _stopping_validator(model: type[BaseModel]) -> SchemaValidator:
    """The model's validator, but that it ends at an array's or mapping's first wrong item.

    The models within it are built anew, too: those that exist already do not end there.
    """
    return SchemaValidator(_stopping(model.__pydantic_core_schema__), _use_prebuilt=False)


def _stopping(schema: Any) -> Any:
    if isinstance(schema, (list, tuple)):
        return type(schema)(map(_stopping, schema))
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for name, child in schema.items():
        if name in _NAMED_SCHEMAS and isinstance(child, dict):
            copy[name] = {each: _stopping(within) for each, within in child.items()}
        else:
            copy[name] = child if name in _NO_SCHEMAS else _stopping(child)
    return {**copy, "fail_fast": True} if schema.get("type") in STOPPING else copy


def _with_integers(value: Any) -> Any:
    """The value with 42.0 as 42: an integer in JSON Schema, but not in pydantic's strict mode."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case list():
            return [_with_integers(item) for item in value]
        case dict():
            return {key: _with_integers(item) for key, item in value.items()}
    return value
