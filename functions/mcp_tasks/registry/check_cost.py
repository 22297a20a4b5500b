"""What checking arguments may cost, found before pydantic checks them.

Pydantic collects all errors of a value before anybody sees the first. Each takes half a kilobyte,
with a copy of what is wrong. Unions multiply them, and recursive unions without a discriminator do
so at every level: a megabyte of arguments, or a hundred bytes, may take minutes and gigabytes. So
arguments are first walked through their types. The walk adds up what could be wrong, and stops as
soon as that is too much. It also counts what authors may not expect from a caller: numbers that all
have one hash, which make a set quadratic; a text that is compiled as a regular expression; objects
without members, which get their defaults.

Two sums bound two things. All errors that could be made bound the time: most are forgotten again,
when another type of a union fits. Those that could be there at once bound the memory: a check that
ends at the first wrong item of an array has the errors of one item only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from .checked_type import PART_BYTES
from .default_cost import NOT_VALIDATED, Default
from .hash_collisions import colliding_pairs
from .type_graph import TypeGraph
from .type_states import State, States

MAX_MADE_BYTES: Final = 2 * 1024**3
"""Of all errors that may be made. It stands for time: some 0.3 ns a byte, measured."""
MAX_KEPT_BYTES: Final = 128 * 1024**2
"""Of the errors that may be there at once."""
_SMALL_BYTES: Final = 32 * 1024**2
"""Of errors that may all be collected, so that a client sees every one."""

_VALUE_BYTES: Final = 110
"""Memory of a copied value, measured."""
_PATH_BYTES: Final = 512
"""Of a default's path, at least."""
# What takes time, but makes no errors, in bytes of errors that would take as long:
_PATTERN_BYTES: Final = 256 * 1024
"""A character of a regular expression."""
_RANGE_BYTES: Final = 12 * 1024**2
"""A "-" in one: only a range makes `re.compile` go through 65,536 characters, for 2 to 5 ms."""
_COLLISION_BYTES: Final = 250
"""A pair of values with one hash."""


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
    walk = _Walk(_SHARED.get() or _Budget(), {})
    _, kept = walk.visit(value, States(graph, walk.spend).root, 0)
    if kept + walk.instance_bytes > MAX_KEPT_BYTES:
        raise TooCostly
    return walk.made_bytes <= _SMALL_BYTES


class _DefaultCost(NamedTuple):
    """What a walk through a default has added up."""

    spent_bytes: int
    made_bytes: int
    instance_bytes: int
    kept_bytes: int


_DefaultCosts = dict[tuple[State, str, int], _DefaultCost]
"""Of the defaults that have been walked: of each state, field, and bytes of a path."""


class _Walk:
    """One walk through a value. `path` is what the path of an error at a value takes, in bytes."""

    def __init__(self, budget: _Budget, defaults: _DefaultCosts) -> None:
        self.spend = budget.spend
        self._defaults = defaults
        self.made_bytes = 0
        """Of all errors."""
        self.instance_bytes = 0
        """Of the objects that are made where nothing is wrong."""

    def visit(self, value: Any, state: State, path: int) -> tuple[int, int]:
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
        kept += self._visit_defaults(value, state, path)
        for each, count in state.types:
            cost = count * each.cost(value, path, size)
            self.spend(cost)
            self.made_bytes += cost
            kept += cost
        return size, kept

    def _visit_items(self, value: list[Any], state: State, path: int) -> tuple[int, int]:
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

    def _visit_members(self, value: dict[str, Any], state: State, path: int) -> tuple[int, int]:
        keys, size, kept = state.keys(), _VALUE_BYTES, 0
        self.spend(state.instance_bytes)
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

    def _visit_defaults(self, value: Any, state: State, path: int) -> int:
        """Add up what is made for a value. Returns the bytes of the errors of what is validated."""
        kept_bytes = errors = 0
        for each, count in state.with_defaults:
            made = each.missing_defaults(value)
            self.spend(count * sum(default.made_bytes for default in made))
            kept_bytes = max(kept_bytes, sum(default.kept_bytes for default in made))
            for default in made:
                if default.validated is not NOT_VALIDATED:
                    errors += count * self._visit_default(default, state, path + PART_BYTES)
        self.instance_bytes += kept_bytes
        return errors

    def _visit_default(self, default: Default, state: State, path: int) -> int:
        path = max(_PATH_BYTES, 1 << path.bit_length())  # Few are different, so few are walked.
        key = state, default.field, path
        if key not in self._defaults:
            self._defaults[key] = self._walk_default(default, state, path)
            self.spend(self._defaults[key].spent_bytes)
        cost = self._defaults[key]
        self.spend(cost.spent_bytes)
        self.made_bytes += cost.made_bytes
        self.instance_bytes += cost.instance_bytes
        return cost.kept_bytes

    def _walk_default(self, default: Default, state: State, path: int) -> _DefaultCost:
        budget = _Budget()
        walk = _Walk(budget, self._defaults)
        size, kept = walk.visit(default.validated, state.member(default.field), path)
        spent = MAX_MADE_BYTES - budget.left
        return _DefaultCost(spent, walk.made_bytes, walk.instance_bytes + size, kept)

    def _visit_text(self, value: Any, state: State, path: int) -> int:
        if not isinstance(value, str):
            return 0
        if state.compiles:
            range_bytes = _RANGE_BYTES * value.count("-")
            self.spend(state.compiles * (_PATTERN_BYTES * len(value) + range_bytes))
        if not state.holds_json:
            return 0
        self.spend(2 * _VALUE_BYTES * sum(map(value.count, ",[{")))
        try:
            return self.visit(json.loads(value), state.json(), path)[1]
        except (ValueError, RecursionError):
            return 0

    def _spend_collisions(self, value: list[Any] | dict[str, Any], state: State) -> None:
        for schema, count in state.hashed:
            self.spend(count * _COLLISION_BYTES * colliding_pairs(value, schema))


def _size(value: Any) -> int:
    """Bytes of a copy of a value that is not made of others."""
    if not isinstance(value, str):
        return _VALUE_BYTES
    return _VALUE_BYTES + len(value) * (1 if value.isascii() else 4)
