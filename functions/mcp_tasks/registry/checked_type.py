"""What one type of a core schema may cost for one value (pydantic, "Core schema")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from .default_cost import CALL_BYTES, Default, default_of_field

Schema = Mapping[str, Any]

ERROR_BYTES: Final = 500
"""Memory of one error, measured: 370 to 480 with its text."""
PART_BYTES: Final = 80
"""Memory of one part of an error's path, besides its name."""

_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "float": (float, int),
    "int": (int,),
    "none": (type(None),),
    "str": (str,),
}
_NOTHING: Final[frozenset[type]] = frozenset()
ANYTHING: Final[frozenset[type]] = frozenset({str, int, float, bool, type(None), list, dict})
"""The classes of all that JSON holds."""
_ARRAYS: Final = frozenset({"deque", "frozenset", "generator", "list", "set", "tuple"})
_MAPPINGS: Final = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
STOPPING: Final = (_ARRAYS | _MAPPINGS) - {"generator"}
"""Types whose check can be told to end at the first error: `fail_fast` of a core schema."""
_OBJECTS: Final = frozenset(
    {"arguments", "arguments-v3", "dataclass-args", "model-fields", "named-tuple", "typed-dict"}
)
_PLAIN: Final = frozenset({"metadata", "ref", "serialization", "strict", "type"})
"""Members of a scalar's schema that refuse no value."""
_HASHED: Final = frozenset({"counter", "dict", "frozendict", "frozenset", "ordered-dict", "set"})
_PATTERNS: Final = frozenset(
    {"pattern_either_validator", "pattern_str_validator", "pattern_bytes_validator"}
)
"""Pydantic's functions for `re.Pattern`."""
_INSTANCE_BYTES: Final = 500
_FIELD_BYTES: Final = 60
"""Memory of a model's object, and of each field, besides the values: measured, 450 and 30."""


class Config(NamedTuple):
    """What a model's configuration says of the types within it."""

    forbids: bool = False
    """Whether members that are not declared are refused."""
    validates_defaults: bool = False


NO_CONFIG: Final = Config()


@dataclass(eq=False, slots=True)
class CheckedType:
    """One type that a value may be checked by: what it looks at, and what may be wrong."""

    accepts: frozenset[type] = _NOTHING
    """Values of these classes cause no error by themselves."""
    allowed: frozenset[tuple[type, Any]] | None = None
    """The values that cause no error, each with its class, where these are few."""
    error_bytes: int = ERROR_BYTES
    converts: bool = False
    """Whether the value is made a Python object for a function of the author's."""
    compiles: bool = False
    """Whether the value is compiled as a regular expression."""
    members: Mapping[str, tuple[Schema, ...]] = field(default_factory=dict)
    others: tuple[Schema, ...] = ()
    """Of members that `members` does not name."""
    refuses_others: bool = False
    keys: tuple[Schema, ...] = ()
    items: tuple[Schema, ...] = ()
    """Of each item: all schemas that an item may have."""
    stops: bool = False
    """Whether the check of items or members can end at the first that is wrong."""
    length: int = 0
    """Items that have to be there."""
    required: tuple[frozenset[str], ...] = ()
    """The names of each field that has to be there; none if only part of a member is the field."""
    instance_bytes: int = 0
    """Memory of what an object becomes, besides its members and defaults."""
    defaults: tuple[Default, ...] = ()
    hashed: Schema | None = None
    """What is put into a set, or is a dictionary's key."""
    tag: Callable[[Any], Any] | None = None
    choices: Mapping[Any, Schema] = field(default_factory=dict)
    """Of a union with a discriminator: the schema of each tag."""
    json: Schema | None = None
    """The schema of the JSON that a text holds."""

    def cost(self, value: Any, path: int, size: int) -> int:
        """The bytes of errors that a value may cause here, without those of what is in it.

        `path` and `size` are the bytes of the value's path and of a copy of the value.
        """
        kind = type(value)
        error = path + size
        fits = kind in self.accepts
        if self.allowed is not None and kind is not list and kind is not dict:
            fits = (kind, value) in self.allowed
        cost = size * self.converts + (0 if fits else self.error_bytes + error)
        missing = 0
        if kind is dict:
            missing = sum(1 for names in self.required if names.isdisjoint(value))
        elif kind is list:
            missing = max(0, self.length - len(value))
        return cost + missing * (ERROR_BYTES + error)

    def missing_defaults(self, value: Any) -> list[Default]:
        """The defaults that are made for a value."""
        if not self.defaults or type(value) not in (*self.accepts, list):
            return []
        there = value if type(value) is dict else ()
        return [each for each in self.defaults if each.names.isdisjoint(there)]


def checked_type(schema: Schema, config: Config) -> CheckedType:
    """The type of a schema that is not made of others for the same value."""
    kind = schema["type"]
    if kind == "any":
        return CheckedType(ANYTHING, converts=True)
    if kind in _SCALARS:
        return CheckedType(frozenset(_SCALARS[kind]) if schema.keys() <= _PLAIN else _NOTHING)
    if kind in ("literal", "enum"):
        return _choice(schema)
    if kind in _ARRAYS:
        return _array(schema)
    if kind in _MAPPINGS:
        return _mapping(schema)
    if kind in _OBJECTS:
        return _object(schema, config)
    if kind == "tagged-union":
        tag = partial(_tag, schema["discriminator"])
        bytes_ = ERROR_BYTES + sum(len(repr(each)) for each in schema["choices"])
        return CheckedType(error_bytes=bytes_, tag=tag, choices=schema["choices"])
    if kind == "json":
        return CheckedType(json=schema.get("schema", {"type": "any"}))
    if kind == "function-plain":
        name = getattr(schema["function"]["function"], "__name__", "")
        return CheckedType(error_bytes=CALL_BYTES, converts=True, compiles=name in _PATTERNS)
    if kind == "*path":
        return CheckedType(ANYTHING, others=(schema["schema"],), items=(schema["schema"],))
    return CheckedType()


def _choice(schema: Schema) -> CheckedType:
    """Literals and enums: an error quotes all that would be right."""
    values = schema["expected"] if schema["type"] == "literal" else schema["members"]
    values = [getattr(value, "value", value) for value in values]
    scalars = {(type(v), v) for v in values if isinstance(v, (str, int, float))}
    return CheckedType(
        allowed=frozenset(scalars), error_bytes=ERROR_BYTES + sum(map(_repr_bytes, values))
    )


def _array(schema: Schema) -> CheckedType:
    bounded = any(schema.get(name) for name in ("min_length", "max_length"))
    items = schema.get("items_schema", ())
    return CheckedType(
        _NOTHING if bounded or schema["type"] == "tuple" else frozenset({list}),
        items=tuple(items) if isinstance(items, (list, tuple)) else (items,),
        length=len(items) if isinstance(items, (list, tuple)) else 0,
        hashed=schema.get("items_schema", {"type": "any"}) if schema["type"] in _HASHED else None,
        stops=schema["type"] in STOPPING,
    )


def _mapping(schema: Schema) -> CheckedType:
    bounded = any(schema.get(name) for name in ("min_length", "max_length"))
    keys = schema.get("keys_schema", {"type": "str"})
    return CheckedType(
        _NOTHING if bounded else frozenset({dict}),
        others=(schema["values_schema"],) if "values_schema" in schema else (),
        keys=(keys,),
        hashed=keys,
        stops=schema["type"] in STOPPING,
    )


def _object(schema: Schema, config: Config) -> CheckedType:
    members: dict[str, tuple[Schema, ...]] = {}
    required: list[frozenset[str]] = []
    defaults: list[Default | None] = []
    declared = schema.get("fields", schema.get("arguments_schema", ()))
    fields = (
        declared.items() if isinstance(declared, Mapping) else [(f["name"], f) for f in declared]
    )
    for name, each in fields:
        names = {name: each["schema"], **_aliases(each)}
        for alias, inner in names.items():
            members[alias] = (*members.get(alias, ()), inner)
        given = _given_by(name, each)
        if each["schema"]["type"] == "default":
            defaults.append(
                default_of_field(name, given, each["schema"], config.validates_defaults)
            )
        elif each.get("required", True):
            required.append(given)
    extras = schema.get("extras_schema", schema.get("var_kwargs_schema"))
    positional = schema["type"] in ("arguments", "arguments-v3", "named-tuple")
    return CheckedType(
        frozenset({dict}),
        members=members,
        others=() if extras is None else (extras,),
        refuses_others=config.forbids or positional,
        items=tuple(inner for all_ in members.values() for inner in all_),
        length=len(members),
        required=tuple(required),
        instance_bytes=_INSTANCE_BYTES + _FIELD_BYTES * len(fields),
        defaults=tuple(each for each in defaults if each),
    )


def _alias_paths(member: Schema) -> list[list[Any]]:
    alias = member.get("validation_alias", member.get("alias"))
    if alias is None:
        return []
    paths = [[alias]] if isinstance(alias, str) else alias
    return paths if all(isinstance(path, list) for path in paths) else [paths]


def _aliases(member: Schema) -> dict[str, Schema]:
    """The other names of a field, each with the schema of what stands there."""
    found: dict[str, Schema] = {}
    for path in _alias_paths(member):
        schema = member["schema"]
        for _ in path[1:]:
            schema = {"type": "*path", "schema": schema}
        found[str(path[0])] = schema
    return found


def _given_by(name: str, member: Schema) -> frozenset[str]:
    """The names of which each gives a field its value, however the model is configured."""
    paths = _alias_paths(member)
    return frozenset(str(path[0]) for path in paths or [[name]] if len(path) == 1)


def _tag(discriminator: Any, value: Any) -> Any:
    """The tag of a value, as pydantic finds it; None without one."""
    if callable(discriminator):
        try:
            return discriminator(value)
        except Exception:  # The author's function may raise what it likes.
            return None
    paths = [[discriminator]] if isinstance(discriminator, str) else discriminator
    for path in paths if all(isinstance(path, list) for path in paths) else [paths]:
        found = value
        try:
            for part in path:
                found = found[part]
        except (LookupError, TypeError):
            continue
        return found
    return None


def _repr_bytes(value: Any) -> int:
    return len(repr(value)) + 4
