"""How many values of a set, or keys of a dictionary, a caller may have given one hash.

Each of them is compared with all that have its hash: n of them take n squared comparisons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal
from uuid import UUID

from .checked_type import Schema

HashKind = Literal["text", "number", "uuid", "any"]
"""Python chooses a text's hash by a secret. A number's is the number modulo a prime, so that a
caller can send numbers that all have one hash. A UUID is a number; "any" may be either."""

_TEXT_HASHES: Final = frozenset({"bool", "bytes", "date", "enum", "literal", "none", "str", "time"})
_NUMBER_HASHES: Final = frozenset({"decimal", "float", "int"})
_FEW: Final = 500
"""Values of one hash that do not matter."""
_MAX_NUMBER_CHARACTERS: Final = 4300
"""Of a number that is read for its hash: the interpreter's own limit for integers."""


def colliding_pairs(values: Collection[Any], schema: Schema) -> int:
    """How many pairs of different values may have one hash; the schema is that of each value."""
    kind = _hash_kind(schema)
    if kind == "text" or len(values) <= _FEW:
        return 0
    distinct = {repr(each): each for each in values}
    if kind == "any":
        return len(distinct) * (len(distinct) - 1) // 2
    same = Counter(_hash(each, kind) for each in distinct.values())
    return sum(often * (often - 1) // 2 for often in same.values())


def _hash(value: Any, kind: HashKind) -> int:
    """The hash that Python gives what a JSON value becomes."""
    if isinstance(value, list):
        return hash(tuple(_hash(each, kind) for each in value))
    if not isinstance(value, str) or len(value) > _MAX_NUMBER_CHARACTERS:
        return 0 if isinstance(value, dict) else hash(value)
    try:
        return hash(UUID(value) if kind == "uuid" else Decimal(value))
    except (ValueError, TypeError, InvalidOperation):  # It is no number, or none that has a hash.
        return hash(value)


def _hash_kind(schema: Schema) -> HashKind:
    """Who chooses the hashes of such values."""
    kind = schema["type"]
    if kind in _TEXT_HASHES:
        return "text"
    if kind in _NUMBER_HASHES:
        return "number"
    if kind in ("nullable", "default"):
        return _hash_kind(schema["schema"])
    within = schema.get("choices" if kind == "union" else "items_schema", ())
    if kind in ("union", "tuple"):
        kinds = {_hash_kind(each[0] if isinstance(each, tuple) else each) for each in within}
        if kinds <= {"text", "number"}:
            return "number" if "number" in kinds else "text"
    return "uuid" if kind == "uuid" else "any"
