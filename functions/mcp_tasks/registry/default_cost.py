"""What a default costs for each object that is made without it (pydantic, "Fields").

Pydantic calls a `default_factory` for each object, and copies each default that has no hash: a
list, but also a tuple with a list, or a frozen model with one. So a factory is called here twice,
and such a default is copied once, to see what is made. What both results share is made only once.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Container, Mapping
from copy import deepcopy
from dataclasses import dataclass, is_dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

CALL_BYTES: Final = 40_000
"""Of a Python function: more for its time than for its memory, even if it raises an exception."""
_UNKNOWN_BYTES: Final = 32_000
"""Memory of what a factory gives that cannot be called without the values of other fields."""
_OBJECT_BYTES: Final = 500
"""Time to make or copy an object, in bytes of errors that would take as long."""
_INSTANCE_BYTES: Final = 12_000
"""The same of an object of a class that is not built in, measured with pydantic's models."""
_COPY_BYTES: Final = 2000
"""The same of a call of `deepcopy`, besides."""
_MAX_OBJECTS: Final = 100_000
"""More are not counted."""
_SHARED: Final = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)
"""What is never made or copied with a value."""
NOT_VALIDATED: Final = object()
_UNKNOWN: Final = object()


@dataclass(frozen=True, slots=True)
class Default:
    """What an object costs when none of the names is there."""

    field: str
    names: frozenset[str]
    """Without any, the default is always made."""
    kept_bytes: int
    """Memory of what each object gets."""
    made_bytes: int
    """Its time, in bytes of errors that would take as long."""
    validated: Any = NOT_VALIDATED
    """The default as if it were sent, where pydantic validates it (`validate_default`)."""


def default_of_field(
    field: str, names: frozenset[str], schema: Mapping[str, Any], validates: bool
) -> Default | None:
    """What the default of a core schema costs; None for nothing.

    `validates` says what the model's configuration does, where the schema does not.
    """
    if schema.get("on_error") == "default":
        names = frozenset()
    if "default_factory" in schema:
        takes_data = bool(schema.get("default_factory_takes_data"))
        kept, made, value = _of_factory(schema["default_factory"], takes_data)
    else:
        value = schema.get("default", _UNKNOWN)
        kept, made = (0, 0) if _has_hash(value) else _of_copy(value)
    validated = NOT_VALIDATED
    if schema.get("validate_default", validates) and value is not _UNKNOWN:
        validated = _as_sent(value)
    if not made and validated is NOT_VALIDATED:
        return None
    return Default(field, names, kept, made, validated)


def private_defaults(model: type[Any]) -> tuple[Default, ...]:
    """What the private attributes of a model cost for each object."""
    found = []
    for name, attribute in getattr(model, "__private_attributes__", {}).items():
        if attribute.default_factory is not None:
            kept, made, _ = _of_factory(attribute.default_factory, takes_data=False)
        else:
            kept, made = _of_copy(attribute.default)
        found.append(Default(name, frozenset(), kept, made))
    return tuple(found)


def _of_factory(factory: Callable[..., Any], takes_data: bool) -> tuple[int, int, Any]:
    """Memory and time of what a factory gives, and an example of it."""
    call = 0 if isinstance(factory, type) else CALL_BYTES
    unknown = _UNKNOWN_BYTES, CALL_BYTES + _UNKNOWN_BYTES, _UNKNOWN
    if takes_data:
        return unknown
    try:
        first, value = factory(), factory()
    except Exception:  # The author's function may raise what it likes.
        return unknown
    made = _objects(value, _objects(first, ()))
    kept = _memory_bytes(made)
    return kept, call + kept + _time_bytes(made), value


def _of_copy(value: Any) -> tuple[int, int]:
    """Memory and time of a copy."""
    original = _objects(value, ())
    try:
        copy = deepcopy(value)
    except Exception:
        return _UNKNOWN_BYTES, CALL_BYTES + _UNKNOWN_BYTES
    made = _objects(copy, original)
    return _memory_bytes(made), _COPY_BYTES + _memory_bytes(made) + _time_bytes(original)


def _has_hash(value: Any) -> bool:
    """Whether pydantic takes a default as it is, for every object the same."""
    try:
        hash(value)
    except Exception:
        return False
    return True


def _objects(value: Any, known: Container[int]) -> dict[int, Any]:
    """All objects that a value consists of, by their identity, without those that are known."""
    found: dict[int, Any] = {}
    left = [value]
    while left and len(found) < _MAX_OBJECTS:
        each = left.pop()
        if id(each) in found or id(each) in known or isinstance(each, _SHARED):
            continue
        found[id(each)] = each
        left += gc.get_referents(each)
    return found


def _memory_bytes(objects: Mapping[int, Any]) -> int:
    return sum(sys.getsizeof(each, _OBJECT_BYTES) for each in objects.values())


def _time_bytes(objects: Mapping[int, Any]) -> int:
    made_by_classes = sum(not _is_built_in(each) for each in objects.values())
    return _OBJECT_BYTES * len(objects) + _INSTANCE_BYTES * made_by_classes


def _is_built_in(value: Any) -> bool:
    return type(value).__module__ in ("builtins", "collections")


def _as_sent(value: Any) -> Any:
    """The value with arrays and objects for all that consists of others."""
    if hasattr(type(value), "__pydantic_fields__") or is_dataclass(type(value)):
        return _as_sent(vars(value))
    if isinstance(value, Mapping):
        return {str(name): _as_sent(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_as_sent(each) for each in value]
    return value
