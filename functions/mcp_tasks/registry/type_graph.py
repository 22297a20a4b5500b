"""Which types a value is checked by, found from a model's core schema (pydantic, "Core schema").

`check_cost` walks a value through this graph. The value's *types* are those that pydantic tries on
it: several for a union, each as often as there are ways to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from .checked_type import ANYTHING, NO_CONFIG, PART_BYTES, CheckedType, Config, Schema, checked_type
from .default_cost import CALL_BYTES, default_of_field, private_defaults

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
        self._known: dict[tuple[int, Config], Ways] = {}
        self._open: set[tuple[int, Config]] = set()

    def ways(self, schemas: Iterable[Schema], config: Config = NO_CONFIG) -> Ways:
        """The types that check a value which all of these schemas check."""
        types: Counter[CheckedType] = Counter()
        label = 0
        for schema in schemas:
            found, longest = self._of(schema, config)
            types.update(found)
            label = max(label, longest)
        return types, label

    def _of(self, schema: Schema, config: Config) -> Ways:
        config = _config(schema, config)
        key = id(schema), config
        if key in self._open:  # A type that is itself, which no value can have.
            return Counter(), 0
        if key not in self._known:
            self._open.add(key)
            self._known[key] = self._found(schema, config)
            self._open.discard(key)
        return self._known[key]

    def _found(self, schema: Schema, config: Config) -> Ways:
        kind = schema["type"]
        for definition in schema.get("definitions", ()) if kind == "definitions" else ():
            self._definitions[definition["ref"]] = definition
        if kind == "definition-ref":
            definition = self._definitions.get(schema["schema_ref"], {"type": "any"})
            return self._of(definition, config)
        if kind == "union":
            choices = [c[0] if isinstance(c, tuple) else c for c in schema["choices"]]
            types, label = self.ways(choices, config)
            return types, label + PART_BYTES + max(map(_label_bytes, choices))
        if kind == "chain":
            return self.ways(schema["steps"], config)
        if kind not in _INNER or _INNER[kind] not in schema:
            return Counter({checked_type(schema, config): 1}), 0
        types, label = self._of(schema[_INNER[kind]], config)
        if kind.startswith("function-"):
            types = types + Counter({_called(converts=kind != "function-after"): 1})
        if kind == "default" and schema.get("on_error") == "default":
            types = types + Counter({_replaced(schema, config): 1})
        if kind == "model":
            types = _with_private_attributes(types, schema["cls"])
        return types, label


def _called(converts: bool) -> CheckedType:
    """What a function costs that an author, or pydantic, has written in Python."""
    return CheckedType(error_bytes=CALL_BYTES, converts=converts)


def _replaced(schema: Schema, config: Config) -> CheckedType:
    """What the default costs that takes the place of whatever is wrong."""
    default = default_of_field("", frozenset(), schema, config.validates_defaults)
    return CheckedType(ANYTHING, defaults=(default,) if default else ())


def _with_private_attributes(types: Counter[CheckedType], model: type[Any]) -> Counter[CheckedType]:
    """The types of a model that makes its private attributes for each object."""
    private = private_defaults(model)
    if not private:
        return types
    return Counter({replace(t, defaults=t.defaults + private): n for t, n in types.items()})


def _config(schema: Schema, inherited: Config) -> Config:
    config = schema.get("config", {})
    forbids = schema.get("extra_behavior") or config.get("extra_fields_behavior")
    if "config" in schema:
        return Config(forbids == "forbid", bool(config.get("validate_default")))
    return inherited if forbids is None else inherited._replace(forbids=forbids == "forbid")


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
