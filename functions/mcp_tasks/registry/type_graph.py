"""Which types a value is checked by, found from a model's core schema (pydantic, "Core schema").

`check_cost` walks a value through this graph. The value's *types* are those that pydantic tries on
it: several for a union, each as often as there are ways to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from .checked_type import CALL_BYTES, PART_BYTES, CheckedType, Schema, checked_type

_INNER: Final = {
    "call": "arguments_schema",
    "json-or-python": "json_schema",
    "lax-or-strict": "strict_schema",
    **dict.fromkeys(
        (
            *("custom-error", "dataclass", "dataclass-field", "default", "definitions"),
            *("function-after", "function-before", "function-wrap", "model", "model-field"),
            *("named-tuple-field", "nullable", "typed-dict-field"),
        ),
        "schema",
    ),
}
"""Type -> the member with the schema that checks the same value."""

Ways = tuple["Counter[CheckedType]", int]
"""How often each type checks a value, and the bytes that unions add to the paths of its errors."""


class TypeGraph:
    """The types of a core schema, made when a value first needs them."""

    def __init__(self, schema: Schema) -> None:
        self.root = schema
        self._definitions: dict[str, Schema] = {}
        self._known: dict[tuple[int, bool], Ways] = {}
        self._open: set[tuple[int, bool]] = set()

    def ways(self, schemas: Iterable[Schema], forbids: bool = False) -> Ways:
        """The types that check a value which all of these schemas check."""
        types: Counter[CheckedType] = Counter()
        label = 0
        for schema in schemas:
            found, longest = self._of(schema, forbids)
            types.update(found)
            label = max(label, longest)
        return types, label

    def _of(self, schema: Schema, forbids: bool) -> Ways:
        forbids = _forbids(schema, forbids)
        key = id(schema), forbids
        if key in self._open:  # A type that is itself, which no value can have.
            return Counter(), 0
        if key not in self._known:
            self._open.add(key)
            self._known[key] = self._found(schema, forbids)
            self._open.discard(key)
        return self._known[key]

    def _found(self, schema: Schema, forbids: bool) -> Ways:
        kind = schema["type"]
        for definition in schema.get("definitions", ()) if kind == "definitions" else ():
            self._definitions[definition["ref"]] = definition
        if kind == "definition-ref":
            definition = self._definitions.get(schema["schema_ref"], {"type": "any"})
            return self._of(definition, forbids)
        if kind == "union":
            choices = [c[0] if isinstance(c, tuple) else c for c in schema["choices"]]
            types, label = self.ways(choices, forbids)
            return types, label + PART_BYTES + max(map(_label_bytes, choices))
        if kind == "chain":
            return self.ways(schema["steps"], forbids)
        if kind not in _INNER or _INNER[kind] not in schema:
            return Counter({checked_type(schema, forbids): 1}), 0
        types, label = self._of(schema[_INNER[kind]], forbids)
        if kind.startswith("function-"):
            types = types + Counter({_called(converts=kind != "function-after"): 1})
        return types, label


def _called(converts: bool) -> CheckedType:
    """What a function costs that an author, or pydantic, has written in Python."""
    return CheckedType(error_bytes=CALL_BYTES, converts=converts)


def _forbids(schema: Schema, inherited: bool) -> bool:
    """Whether members that are not declared are refused."""
    said = schema.get("extra_behavior") or schema.get("config", {}).get("extra_fields_behavior")
    return inherited if said is None and "config" not in schema else said == "forbid"


def _label_bytes(schema: Schema) -> int:
    """Bytes of a union's choice in an error's path: its type's name, with those within."""
    kind = schema["type"]
    if kind in ("model", "dataclass", "enum"):
        return len(schema["cls"].__name__)
    inner = schema.get("choices", schema.get("items_schema", schema.get("steps", ())))
    within = list(inner.values()) if isinstance(inner, Mapping) and "type" not in inner else inner
    parts = [within] if isinstance(within, Mapping) else [*within]
    parts += [schema[name] for name in ("keys_schema", "values_schema") if name in schema]
    parts += [schema[_INNER[kind]]] if kind in _INNER else []
    return 64 + sum(_label_bytes(p[0] if isinstance(p, tuple) else p) for p in parts)
