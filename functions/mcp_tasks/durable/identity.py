"""What tells operations apart: the name of a function, a hash of its arguments, a step's token."""

from __future__ import annotations

import functools
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

_TOKENS: Final = uuid.UUID("5c0d4a4e-9d0e-5f0a-8a51-0d4f6f6f7c11")
"""The namespace of the tokens: any constant."""


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function, a method, or what a `functools.partial` calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def arguments_hash(*arguments: Any) -> str:
    """A hash that is the same for the same arguments, in every process.

    An object that is no value (a client, a connection) counts by its type only.
    """
    text = json.dumps(_plain(arguments), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def unique_id(task_id: str, operation_id: str) -> uuid.UUID:
    """A UUID (version 5) that is the same each time, and another one for each operation."""
    return uuid.uuid5(_TOKENS, f"{task_id}/{operation_id}")


def fraction(task_id: str, operation_id: str) -> float:
    """A number from 0 to 1 (1 excluded) that is the same each time."""
    return (unique_id(task_id, operation_id).int >> 75) / 2**53


def _plain(value: Any) -> Any:
    """A value as JSON values. The order of a set differs from process to process: it is sorted."""
    match value:
        case functools.partial():
            return [function_name(value), _plain(value.args), _plain(value.keywords)]
        case Mapping():
            return sorted(([_plain(k), _plain(v)] for k, v in value.items()), key=json.dumps)
        case list() | tuple():
            return [_plain(each) for each in value]
        case set() | frozenset():
            return sorted((_plain(each) for each in value), key=json.dumps)
        case BaseModel():
            return _plain(dict(value))
    if is_dataclass(value) and not isinstance(value, type):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if callable(value):
        return function_name(value)
    return to_jsonable_python(value, fallback=lambda unknown: type(unknown).__qualname__)
