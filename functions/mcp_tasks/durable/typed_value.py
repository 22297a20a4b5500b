"""What a step returns, as JSON and back: a tool gets from the journal what it got at first."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, Final

from ..payloads.offloading import json_text
from ..registry import schema
from .identity import function_name


class TypedValue:
    """The type that a function declares to return."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function_name(function)
        while isinstance(function, functools.partial):
            function = function.func
        self._adapter = schema.result_adapter(_returns(function))

    def to_json(self, value: Any) -> Any:
        """The value as JSON values.

        Raises TypeError for a value that JSON would change and whose type is not declared, and
        ValueError for a value of another type than the declared one, and for NaN and infinity.
        """
        if self._adapter is not None:
            checked = self._adapter.validate_python(value)
            kept = self._adapter.dump_python(checked, mode="json", by_alias=True)
            json_text(kept)
            return kept
        try:
            same = json.loads(json.dumps(value, allow_nan=False)) == value
        except (TypeError, ValueError):
            same = False
        if not same:
            raise TypeError(
                f"{self._name} returned a {type(value).__name__}, which JSON does not keep; "
                "declare the type that it returns: def ... -> Type"
            )
        return value

    def from_json(self, value: Any) -> Any:
        """The value as the tool gets it."""
        return value if self._adapter is None else self._adapter.validate_python(value)


def _returns(function: Callable[..., Any]) -> Any:
    """The return annotation, evaluated; None without one."""
    try:
        return schema.hints(function).get("return")
    except TypeError:  # a callable that has no annotations: a built-in function, an object
        return None


class _NoValue(TypedValue):
    """Of a function whose result nobody needs."""

    def __init__(self) -> None:
        self._adapter = None

    def to_json(self, value: Any) -> Any:
        return None


NO_VALUE: Final = _NoValue()
