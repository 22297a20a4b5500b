"""What checking arguments may cost, found before pydantic checks them.

Pydantic collects all errors of a value before anybody sees the first. Each takes half a kilobyte,
with a copy of what is wrong. Unions multiply them, and recursive unions without a discriminator do
so at every level: a megabyte of arguments, or a hundred bytes, may take minutes and gigabytes. So
arguments are first walked through their types. The walk adds up what could be wrong, and stops as
soon as that is too much. It also counts what authors may not expect from a caller: numbers that all
have one hash, which make a set quadratic; a text that is compiled as a regular expression.

Two sums bound two things. All errors that could be made bound the time: most are forgotten again,
when another type of a union fits. Those that could be there at once bound the memory: a check that
ends at the first wrong item of an array has the errors of one item only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from .checked_type import PART_BYTES, CheckedType, Schema
from .hash_collisions import colliding_pairs
from .type_graph import TypeGraph, Ways

MAX_MADE_BYTES: Final = 2 * 1024**3
"""Of all errors that may be made. It stands for time: some 0.3 ns a byte, measured."""
MAX_KEPT_BYTES: Final = 128 * 1024**2
"""Of the errors that may be there at once."""
_SMALL_BYTES: Final = 32 * 1024**2
"""Of errors that may all be collected, so that a client sees every one."""

_VALUE_BYTES: Final = 110
"""Memory of a copied value, measured."""
# What takes time, but makes no errors, in bytes of errors that would take as long:
_VISIT_BYTES: Final = 2000
"""A look at a value, by one type."""
_STATE_BYTES: Final = 100_000
"""Finding out which types check a value."""
_PATTERN_BYTES: Final = 20_000
"""A character of a regular expression."""
_COLLISION_BYTES: Final = 250
"""A pair of values with one hash."""
_REFUSED: Final = CheckedType()
"""A member that must not be there."""


class TooCostly(Exception):
    """Checking a value could cost more than is allowed."""


class _Budget:
    def __init__(self) -> None:
        self.left = MAX_MADE_BYTES

    def spend(self, cost: int) -> None:
        """Raises TooCostly when nothing is left."""
        self.left -= cost
        if self.left < 0:
            raise TooCostly


_SHARED: Final[ContextVar[_Budget | None]] = ContextVar("shared budget", default=None)


@contextmanager
def shared_budget() -> Iterator[None]:
    """Let everything that is checked meanwhile cost as much together as one request may."""
    token = _SHARED.set(_Budget())
    try:
        yield
    finally:
        _SHARED.reset(token)


def all_errors_fit(graph: TypeGraph, value: Any) -> bool:
    """Whether all errors of a value may be collected.

    If not, the check has to end at the first wrong item of an array or mapping. Raises TooCostly
    when even then it could cost too much.
    """
    walk = _Walk(_SHARED.get() or _Budget())
    _, kept = walk.visit(value, _States(graph, walk.spend).root, 0)
    if kept + walk.instance_bytes > MAX_KEPT_BYTES:
        raise TooCostly
    return walk.made_bytes <= _SMALL_BYTES


class _States:
    """The states of one walk: many values have the same."""

    def __init__(self, graph: TypeGraph, spend: Callable[[int], None]) -> None:
        self.graph = graph
        self._spend = spend
        self._known: dict[tuple[frozenset[tuple[CheckedType, int]], int], _State] = {}
        self.root = self.state(graph.ways([graph.root]))

    def state(self, ways: Ways) -> _State:
        """The state of a value that is checked in these ways."""
        self._spend(_STATE_BYTES)
        key = frozenset(ways[0].items()), ways[1]
        if key not in self._known:
            self._known[key] = _State(self, ways)
        return self._known[key]


class _State:
    """The types that check one value, or all items of an array."""

    def __init__(self, states: _States, ways: Ways) -> None:
        self._states = states
        counter, self.label = ways
        self.types = list(counter.items())
        self.tagged = any(each.tag for each in counter)
        self.compiles = sum(count for each, count in self.types if each.compiles)
        self.holds_json = any(each.json for each in counter)
        self.hashed = [(each.hashed, count) for each, count in self.types if each.hashed]
        self.visits = _VISIT_BYTES * (1 + counter.total())
        self.harmless = _harmless(counter)
        self.instance_bytes = max((each.instance_bytes for each in counter), default=0)
        self.stops_in_arrays = all(each.stops for each in counter if each.items)
        self.stops_in_objects = all(each.stops for each in counter if each.members or each.others)
        self._named = frozenset().union(*(each.members for each in counter))
        self._children: dict[Any, _State] = {}

    def resolved(self, value: Any) -> _State:
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

    def member(self, name: str) -> _State:
        """The state of an object's member."""
        return self._child(("member", name if name in self._named else None))

    def items(self) -> _State:
        """The state of every item of an array."""
        return self._child(("items", None))

    def keys(self) -> _State:
        """The state of every name of an object."""
        return self._child(("keys", None))

    def json(self) -> _State:
        """The state of what is in a text that is JSON itself."""
        return self._child(("json", None))

    def _child(self, key: tuple[str, str | None]) -> _State:
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


class _Walk:
    """One walk through a value. `path` is what the path of an error at a value takes, in bytes."""

    def __init__(self, budget: _Budget) -> None:
        self.spend = budget.spend
        self.made_bytes = 0
        """Of all errors."""
        self.instance_bytes = 0
        """Of the objects that are made where nothing is wrong."""

    def visit(self, value: Any, state: _State, path: int) -> tuple[int, int]:
        """Add up what the value costs.

        Returns the bytes of a copy of it, and of the errors that may be there at once. Raises
        TooCostly.
        """
        self.spend(state.visits)
        if state.tagged:
            state = state.resolved(value)
        path += state.label
        if type(value) is list:
            size, kept = self._visit_items(value, state, path + PART_BYTES)
        elif type(value) is dict:
            size, kept = self._visit_members(value, state, path + PART_BYTES)
        else:
            size, kept = _size(value), self._visit_text(value, state, path)
        for each, count in state.types:
            cost = count * each.cost(value, path, size)
            self.spend(cost)
            self.made_bytes += cost
            kept += cost
        return size, kept

    def _visit_items(self, value: list[Any], state: _State, path: int) -> tuple[int, int]:
        items, size, harmless, kept = state.items(), _VALUE_BYTES, 0, 0
        for item in value:
            if type(item) in items.harmless:
                harmless += 1
                size += _size(item)
            else:
                item_size, item_kept = self.visit(item, items, path)
                size += item_size
                kept = max(kept, item_kept) if state.stops_in_arrays else kept + item_kept
        self.spend(harmless * items.visits)
        self._spend_collisions(value, state)
        return size, kept

    def _visit_members(self, value: dict[str, Any], state: _State, path: int) -> tuple[int, int]:
        keys, size, kept = state.keys(), _VALUE_BYTES, 0
        self.instance_bytes += state.instance_bytes
        for name, item in value.items():
            name_bytes = _size(name)
            item_size, item_kept = self.visit(item, state.member(name), path + name_bytes)
            if keys.types:
                item_kept += self.visit(name, keys, path + name_bytes)[1]
            size += name_bytes + item_size
            kept = max(kept, item_kept) if state.stops_in_objects else kept + item_kept
        self._spend_collisions(value, state)
        return size, kept

    def _visit_text(self, value: Any, state: _State, path: int) -> int:
        if not isinstance(value, str):
            return 0
        self.spend(state.compiles * _PATTERN_BYTES * len(value))
        if not state.holds_json:
            return 0
        self.spend(2 * _VALUE_BYTES * sum(map(value.count, ",[{")))
        try:
            return self.visit(json.loads(value), state.json(), path)[1]
        except (ValueError, RecursionError):
            return 0

    def _spend_collisions(self, value: list[Any] | dict[str, Any], state: _State) -> None:
        for schema, count in state.hashed:
            self.spend(count * _COLLISION_BYTES * colliding_pairs(value, schema))


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
    if not types or any(each.converts or each.tag or each.json for each in types):
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


def _size(value: Any) -> int:
    """Bytes of a copy of a value that is not made of others."""
    if not isinstance(value, str):
        return _VALUE_BYTES
    return _VALUE_BYTES + len(value) * (1 if value.isascii() else 4)
