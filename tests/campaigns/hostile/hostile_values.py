"""Values that cost as much as possible where a JSON Schema tells what is wanted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

MAX_VALUES: Final = 99_900
MAX_BYTES: Final = 1024 * 1024 - 4096
MAX_DEPTH: Final = 95
"""Of arguments, which are in three other objects."""

MAX_DIFFERENT: Final = 2000
"""Values that are made one by one; where there are more, they repeat one."""

PRIME: Final = 2**61 - 1
"""Python's hash of a number is the number modulo this."""
WRONG: Final[tuple[Any, ...]] = (
    {},
    [],
    "",
    0,
    None,
    True,
    1.5,
    "x" * 50,
    {"kind": "?"},
    [[]],
    -(10**300),
)
FORMATS: Final = {
    "date": "2026-02-28",
    "date-time": "2026-02-28T00:00:00Z",
    "duration": "P1D",
    "ipv6": "::1",
    "uri": "https://a.example/",
    "uuid": "00000000-0000-0000-0000-000000000001",
}


class HostileValues:
    """Values for one schema. Each goes deep, or holds as much as a body may, or both."""

    def __init__(self, rng: random.Random, schema: Mapping[str, Any]) -> None:
        self._rng = rng
        self._schema = schema
        self._deep = rng.random() < 0.4
        self._spoiled = rng.choice([0.0, 0.02, 0.3])
        self._flooded = False
        self._left = MAX_DIFFERENT
        self._in_text = False
        self._junk = rng.random() < 0.3
        self._long_names = rng.choice([0, 0, 0, 5_000, 300_000])
        self._floods_below = rng.choice([0, 1, 2, 4, 80])

    def arguments(self) -> dict[str, Any]:
        """Arguments, as large as a body may be."""
        made: dict[str, Any] = self._object(self._schema, 1)
        if not self._flooded and self._rng.random() < 0.7:
            made["unknown"] = self._flood({}, 2)
        return made

    def _value(self, schema: Any, level: int) -> Any:
        rng, schema = self._rng, self._resolved(schema)
        self._left -= 1
        if self._left < 0:
            return rng.choice(WRONG)
        if schema is True or level >= MAX_DEPTH or rng.random() < self._spoiled:
            return self._bottom(level)
        choices = schema.get("anyOf", schema.get("oneOf"))
        if choices:
            return self._value(rng.choice(self._worth(choices)), level)
        if "const" in schema or "enum" in schema:
            return rng.choice(schema.get("enum", [schema.get("const")]))
        makers: dict[str, Callable[[Any, int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._text,
        }
        kind = schema.get("type")
        if kind in makers:
            return makers[kind](schema, level)
        return {"integer": 1, "number": 0.5, "boolean": True, "null": None}.get(kind, 1)

    def _worth(self, choices: list[Any]) -> list[Any]:
        """Of several schemas those that lead deeper, when that is wanted."""
        deeper = [each for each in choices if "$ref" in each or "items" in each]
        return deeper if self._deep and deeper else choices

    def _bottom(self, level: int) -> Any:
        if not self._flooded and level > 3 and self._rng.random() < 0.5:
            return self._flood({}, level)
        return self._rng.choice(WRONG)

    def _object(self, schema: Any, level: int) -> Any:
        rng, made = self._rng, {}
        required = schema.get("required", ())
        descends = False
        for name, child in schema.get("properties", {}).items():
            nested = any(each in json.dumps(child) for each in ("$ref", "array", "object"))
            # One child leads deep: several would be too many values.
            deeper = nested and not (self._deep and descends)
            if name in required or rng.random() < 0.3 or (deeper and self._deep):
                if level > 2 and nested and not deeper:
                    continue
                made[name] = self._value(child, level + 1)
                descends = descends or nested
        others = schema.get("additionalProperties")
        if isinstance(others, dict) or (others is True and not made):
            made |= self._others(others, level)
        if self._junk and not self._flooded and level >= self._floods_below:
            made["junk"] = self._flood({}, level + 1)
        return made

    def _others(self, schema: Any, level: int) -> dict[str, Any]:
        name = "k" * self._long_names + "1"
        if self._flooded or level < self._floods_below:
            return {name: self._value(schema, level + 1)}
        self._flooded = True
        names: Callable[[int], str] = self._rng.choice(
            [
                lambda n: str(n),
                lambda n: str(n * PRIME),
                lambda n: str(UUID(int=n * PRIME % 2**128)),
            ]
        )
        item = self._item(schema, level)
        return {names(number): item for number in range(1, self._room(item, 40))}

    def _array(self, schema: Any, level: int) -> Any:
        if not self._flooded and level >= self._floods_below:
            return self._flood(schema.get("items", {}), level)
        prefix = schema.get("prefixItems", ())
        items = [self._value(each, level + 1) for each in prefix]
        return items or [self._value(schema.get("items", True), level + 1)]

    def _flood(self, schema: Any, level: int) -> list[Any]:
        self._flooded = True
        how = self._rng.random()
        if how < 0.1:
            return [number * PRIME for number in range(1, self._room(PRIME * 40_000, 0))]
        if how < 0.2:
            ids = range(1, self._room("x" * 36, 0))
            return [str(UUID(int=number * PRIME)) for number in ids]
        if how < 0.3:
            return list(range(self._room(10_000, 0)))
        item = self._item(schema, level)
        return [item] * self._room(item, 0)

    def _item(self, schema: Any, level: int) -> Any:
        return self._rng.choice(WRONG) if self._rng.random() < 0.4 else self._value(schema, level)

    def _room(self, item: Any, name_bytes: int) -> int:
        """How many such items a body holds."""
        size = len(json.dumps(item)) + 2 + name_bytes + (4 if name_bytes else 0)
        left = MAX_BYTES - (self._long_names + 100) * (1 if self._long_names < 300_000 else 2)
        return max(1, min(MAX_VALUES // (_values(item)), left // size) * 9 // 10)

    def _text(self, schema: Any, level: int) -> str:
        if "contentSchema" in schema and not self._in_text:
            self._in_text = True  # Once: each time doubles the backslashes.
            written = json.dumps(self._value(schema["contentSchema"], 3))
            self._in_text = False
            return written
        if not self._flooded and self._rng.random() < 0.05:
            self._flooded = True
            unit = self._rng.choice(["9", "x", "(a|b)", "::", "🦊", "ü.", "-", " "])
            return unit * (MAX_BYTES // 12 // len(unit))
        found = FORMATS.get(schema.get("format", ""), "a")
        return found if self._rng.random() < 0.8 else "?"

    def _resolved(self, schema: Any) -> Any:
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self._schema["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return schema


def _values(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_values, value.values()))
    return 1 + sum(map(_values, value)) if isinstance(value, list) else 1
