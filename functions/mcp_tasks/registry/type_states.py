"""The types that check a value, found once for all values that the same types check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from .checked_type import CheckedType, Schema
from .type_graph import TypeGraph, Ways

# What takes time, but makes no errors, in bytes of errors that would take as long:
_VISIT_BYTES: Final = 2000
"""A look at a value, by one type."""
_STATE_BYTES: Final = 100_000
"""Finding out which types check a value."""
_REFUSED: Final = CheckedType()
"""A member that must not be there."""


class States:
    """The states of one walk: many values have the same."""

    def __init__(self, graph: TypeGraph, spend: Callable[[int], None]) -> None:
        self.graph = graph
        self._spend = spend
        self._known: dict[tuple[frozenset[tuple[CheckedType, int]], int], State] = {}
        self.root = self.state(graph.ways([graph.root]))

    def state(self, ways: Ways) -> State:
        """The state of a value that is checked in these ways."""
        self._spend(_STATE_BYTES)
        key = frozenset(ways[0].items()), ways[1]
        if key not in self._known:
            self._known[key] = State(self, ways)
        return self._known[key]


class State:
    """The types that check one value, or all items of an array."""

    def __init__(self, states: States, ways: Ways) -> None:
        self._states = states
        counter, self.label = ways
        self.types = list(counter.items())
        self.tagged = any(each.tag for each in counter)
        self.compiles = sum(count for each, count in self.types if each.compiles)
        self.holds_json = any(each.json for each in counter)
        self.hashed = [(each.hashed, count) for each, count in self.types if each.hashed]
        self.visits = _VISIT_BYTES * (1 + counter.total())
        self.harmless = _harmless(counter)
        self.with_defaults = [(each, count) for each, count in self.types if each.defaults]
        self.instance_bytes = max((each.instance_bytes for each in counter), default=0)
        self.stops_in_arrays = all(each.stops for each in counter if each.items)
        self.stops_in_objects = all(each.stops for each in counter if each.members or each.others)
        self._named = frozenset().union(*(each.members for each in counter))
        self._children: dict[Any, State] = {}

    def resolved(self, value: Any) -> State:
        """The state without unions that have a discriminator: the value has decided them."""
        chosen = [_choice(each, value) if each.tag else None for each, _ in self.types]
        key = ("chosen", *map(id, chosen))
        if key not in self._children:
            merged: Counter[CheckedType] = Counter()
            for (each, count), schema in zip(self.types, chosen, strict=True):
                if schema is None:
                    merged[each if each.tag is None else _refusal_of(each)] += count
                else:
                    self._add(merged, count, (schema,))
            state = self._states.state((merged, self.label))
            self._children[key] = state.resolved(value) if state.tagged else state
        return self._children[key]

    def member(self, name: str) -> State:
        """The state of an object's member."""
        return self._child(("member", name if name in self._named else None))

    def items(self) -> State:
        """The state of every item of an array."""
        return self._child(("items", None))

    def keys(self) -> State:
        """The state of every name of an object."""
        return self._child(("keys", None))

    def json(self) -> State:
        """The state of what is in a text that is JSON itself."""
        return self._child(("json", None))

    def _child(self, key: tuple[str, str | None]) -> State:
        if key not in self._children:
            merged: Counter[CheckedType] = Counter()
            label = 0
            for each, count in self.types:
                schemas = _schemas(each, *key)
                label = max(label, self._add(merged, count, schemas))
                if key[0] == "member" and not schemas and each.refuses_others:
                    merged[_REFUSED] += count
            self._children[key] = self._states.state((merged, label))
        return self._children[key]

    def _add(self, merged: Counter[CheckedType], count: int, schemas: Iterable[Schema]) -> int:
        found, label = self._states.graph.ways(schemas)
        for each, often in found.items():
            merged[each] += often * count
        return label


def _schemas(each: CheckedType, kind: str, name: str | None) -> tuple[Schema, ...]:
    if kind == "items":
        return each.items
    if kind == "keys":
        return each.keys
    if kind == "json":
        return (each.json,) if each.json else ()
    return each.others if name is None else each.members.get(name, each.others)


def _harmless(types: Mapping[CheckedType, int]) -> frozenset[type]:
    """The classes of values that cannot be wrong: numbers, most often, of which there are many."""
    if not types or any(each.converts or each.tag or each.json or each.defaults for each in types):
        return frozenset()
    return frozenset.intersection(*(each.accepts for each in types)) - {list, dict}


def _choice(each: CheckedType, value: Any) -> Schema | None:
    tag = each.tag(value) if each.tag else None
    try:
        return each.choices.get(tag)
    except TypeError:
        return None


def _refusal_of(union: CheckedType) -> CheckedType:
    """What is left of a union with a discriminator when the value names none of its types."""
    return CheckedType(error_bytes=union.error_bytes)
