"""What checking arguments may cost: much that is right is accepted, what explodes is not tried."""

from __future__ import annotations

import random
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv6Address
from typing import Annotated, Any, Final, Literal, NamedTuple, Union
from uuid import UUID, uuid4

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    JsonValue,
    PrivateAttr,
    Tag,
    TypeAdapter,
    create_model,
)
from pydantic_core import core_schema
from typing_extensions import TypedDict

from mcp_tasks.registry.check_cost import TooCostly, all_errors_fit, shared_budget
from mcp_tasks.registry.type_graph import TypeGraph

MANY: Final = 90_000
PRIME: Final = 2**61 - 1
"""Python's hash of a number is the number modulo this."""
RANDOM: Final = random.Random(1)


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    count: int
    tags: list[str] = []


class Leaf(BaseModel):
    kind: Literal["leaf"]
    size: int


class Branch(BaseModel):
    kind: Literal["branch"]
    left: Annotated[Leaf | Branch, Field(discriminator="kind")]


class Either(BaseModel):
    child: Either | Other | None = None


class Other(BaseModel):
    child: Either | Other | None = None


class Chain(BaseModel):
    size: int = 0
    next: Chain | None = None


class Needy(BaseModel):
    size: int
    child: Needy | None = None
    more: Any = None
    others: dict[str, list[Needy]] = {}


class Renamed(BaseModel):
    a: int = Field(alias="A")
    b: list[int] = Field(validation_alias=AliasChoices("B", AliasPath("c", 0)))


class Typed(TypedDict):
    a: int


class Pair(NamedTuple):
    a: int
    b: str = ""


@dataclass
class Record:
    a: int
    b: float = 0.5


class Color(Enum):
    RED = "red"
    BLUE = "blue"


def wide_model(name: str, count: int, default: Any = ...) -> Any:
    """A model with so many fields."""
    fields: dict[str, Any] = {f"{name}x{n}": (int, default) for n in range(count)}
    return create_model(name, **fields)


CHOICE: Final[Any] = list[Literal[tuple(f"choice {n}" for n in range(500))]]  # type: ignore[misc]
WIDE: Final[Any] = wide_model("Wide", 50, 0)
NARROW: Final[Any] = Union[tuple(wide_model(f"m{n}", 8) for n in range(8))]  # noqa: UP007


def with_default(kind: Any, default: Any, validates: bool = False) -> Any:
    """A list of models that have only this field."""
    config = ConfigDict(validate_default=validates)
    model: Any = create_model("WithDefault", __config__=config, a=(kind, default))
    return list[model]


class Sized(BaseModel):
    size: int = 1


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    a: list[int] = list(range(300))


class Private(BaseModel):
    _a: list[int] = list(range(300))
    _b: Any = PrivateAttr(default_factory=lambda: list(range(300)))


@dataclass
class WithFactory:
    a: list[int] = field(default_factory=lambda: list(range(300)))


class WithDefault(NamedTuple):
    a: list[int] = list(range(300))


def parts(count: int) -> Any:
    """A list of models whose fields are all parts of one member."""
    fields: dict[str, Any] = {
        f"a{n}": (int, Field(validation_alias=AliasPath("x", f"{n}"))) for n in range(count)
    }
    model: Any = create_model("Parts", **fields)
    return list[model]


class Endless(BaseModel):
    a: Endless | None = Field({}, validate_default=True)


class ParentOfDefaults(BaseModel):
    child: WithFactory = Field(default_factory=WithFactory)


LARGE_TUPLE: Final = tuple(range(1000))


def by_kind(value: Any) -> str:
    """A discriminator."""
    return str(value["kind"])


CALLED = Annotated[
    Annotated[Leaf, Tag("leaf")] | Annotated[Item, Tag("item")], Discriminator(by_kind)
]


def nested(levels: int, bottom: Any, name: str = "child") -> Any:
    """A value within objects."""
    for _ in range(levels):
        bottom = {name: bottom}
    return bottom


def right(annotation: Any, value: Any) -> Any:
    return annotation, value


RIGHT: Final[dict[str, tuple[Any, Any]]] = {
    "numbers": (list[float], [0.5] * MANY),
    "texts": (list[str], ["text"] * MANY),
    "bounded numbers": (list[Annotated[int, Field(ge=0)]], [1] * MANY),
    "models": (list[Item], [{"name": "n", "count": 1}] * (MANY // 3)),
    "a union of models": (list[NARROW], [{f"m3x{i}": 1 for i in range(8)}] * (MANY // 9)),
    "choices": (CHOICE, ["choice 7"] * MANY),
    "enums": (list[Color], ["red"] * MANY),
    "a set of numbers": (set[int], list(range(MANY))),
    "a set of equal numbers": (set[int], [PRIME] * MANY),
    "a set of texts": (frozenset[str], [str(n) for n in range(MANY)]),
    "a set of UUIDs": (
        set[UUID],
        [str(UUID(int=RANDOM.getrandbits(128))) for _ in range(20_000)],
    ),
    "a set of decimals": (set[Decimal], [f"{n}.5" for n in range(10_000)]),
    "a set of pairs": (set[tuple[int, str]], [[n, "a"] for n in range(20_000)]),
    "a few of one hash": (set[int], [n * PRIME for n in range(400)]),
    "keys": (dict[int, str], {str(n): "" for n in range(MANY)}),
    "any keys": (Mapping[str, JsonValue], {str(n): [n] for n in range(MANY // 2)}),
    "counts": (Counter[str], {str(n): n for n in range(MANY)}),
    "pairs": (list[tuple[int, int]], [[1, 2]] * (MANY // 3)),
    "a tree": (Branch, nested(90, {"kind": "leaf", "size": 1}, "left")),
    "a chain": (Chain, nested(90, {"size": 1}, "next")),
    "a shallow recursive union": (Either, nested(8, None)),
    "a long text": (str, "x" * 1_000_000),
    "a pattern": (re.Pattern, "(a|b)" * 100),
    "JSON in a text": (Json[list[int]], str(list(range(MANY)))),
    "a queue": (deque[int], [1] * MANY),
    "a sequence": (Sequence[int], [1] * MANY),
    "typed dictionaries": (list[Typed], [{"a": 1}] * (MANY // 2)),
    "named tuples": (list[Pair], [[1, "a"]] * (MANY // 3)),
    "records": (list[Record], [{"a": 1}] * (MANY // 2)),
    "other names": (list[Renamed], [{"A": 1, "c": [[1, 2]]}] * (MANY // 6)),
    "a discriminator that is a function": (list[CALLED], [{"kind": "leaf", "size": 1}] * 20_000),
    "addresses": (list[IPv6Address], ["::1"] * 20_000),
    "refused by nobody": (list[Annotated[int, AfterValidator(abs)]], [1] * 20_000),
    "regular expressions": (list[re.Pattern[str]], ["^[a-z0-9-]+$"] * 50),
    "a long regular expression": (re.Pattern, "(a|b)" * 800),
    "small defaults": (with_default(list[int], []), [{}] * MANY),
    "empty factories": (with_default(dict[str, int], Field(default_factory=dict)), [{}] * MANY),
    "a factory of models": (with_default(Sized, Field(default_factory=Sized)), [{}] * MANY),
    "a default that all share": (with_default(tuple[int, ...], LARGE_TUPLE), [{}] * MANY),
    "a factory that gives the same": (
        with_default(tuple[int, ...], Field(default_factory=lambda: LARGE_TUPLE)),
        [{}] * 30_000,
    ),
    "large defaults of what is there": (
        with_default(list[int], list(range(1000))),
        [{"a": []}] * (MANY // 3),
    ),
    "random identifiers": (with_default(UUID, Field(default_factory=uuid4)), [{}] * 20_000),
    "a factory that looks at other fields": (
        with_default(int, Field(default_factory=lambda data: len(data))),
        [{}] * 3_000,
    ),
    "defaults that are validated": (
        with_default(list[int], [1, 2, 3], validates=True),
        [{}] * 20_000,
    ),
}


@pytest.mark.parametrize(("annotation", "value"), RIGHT.values(), ids=RIGHT)
def test_much_that_is_right_may_be_checked(annotation: Any, value: Any) -> None:
    all_errors_fit(graph(annotation), value)


LARGE: Final[dict[str, tuple[Any, Any]]] = {
    "models": (list[Item], [{}] * MANY),
    "a union of models": (list[NARROW], [{}] * 10_000),
    "a long name": (dict[str, list[int]], {"k" * 10_000: [""] * 20_000}),
    "a long choice": (CHOICE, [""] * 20_000),
    "JSON in a text": (Json[list[Item]], str([{}] * MANY)),
    "too short tuples": (list[tuple[int, int, int, int, int]], [[]] * MANY),
    "too short named tuples": (list[Pair], [[]] * MANY),
    "many models in one": (Needy, {"child": {}, "more": [], "others": {"k" * 9_000: [{}] * MANY}}),
    "a tag of none": (list[Branch], [{"kind": "branch", "left": {"kind": ""}}] * MANY),
    "other names": (list[Renamed], [{"c": [[""] * 40]}] * 2_000),
    "unknown members": (list[Item], [{f"{n}": n for n in range(10_000)}] * 8),
}


@pytest.mark.parametrize(("annotation", "value"), LARGE.values(), ids=LARGE)
def test_of_many_errors_the_first_are_wanted(annotation: Any, value: Any) -> None:
    assert not all_errors_fit(graph(annotation), value)


EXPLODING: Final[dict[str, tuple[Any, Any]]] = {
    "a recursive union": (Either, nested(40, None)),
    "copies of what is below": (Needy, nested(90, {"more": [[]] * MANY})),
    "numbers of one hash": (set[int], [n * PRIME for n in range(10_000)]),
    "decimals of one hash": (set[Decimal], [str(n * PRIME) for n in range(10_000)]),
    "UUIDs of one hash": (set[UUID], [str(UUID(int=n * PRIME)) for n in range(10_000)]),
    "pairs of one hash": (set[tuple[int, str]], [[n * PRIME, "a"] for n in range(10_000)]),
    "fractions": (set[Fraction], [f"{n * PRIME}/1" for n in range(10_000)]),
    "keys of one hash": (dict[int, int], {str(n * PRIME): 0 for n in range(10_000)}),
    "a pattern": (re.Pattern, "(a|b)" * 200_000),
    "functions": (list[Annotated[int, AfterValidator(abs)]], [1] * MANY),
    "instances": (list[WIDE], [{}] * MANY),
    "ranges of a pattern": (re.Pattern, "[a-z]" * 400),
    "a factory": (with_default(Any, Field(default_factory=lambda: [*range(300)])), [{}] * MANY),
    "a factory that looks at other fields": (
        with_default(Any, Field(default_factory=lambda data: [*data])),
        [{}] * 10_000,
    ),
    "a factory that fails": (with_default(int, Field(default_factory=lambda: 1 // 0)), [{}] * MANY),
    "a factory of a class that has factories": (list[ParentOfDefaults], [{}] * MANY),
    "a dataclass's factory": (list[WithFactory], [{}] * MANY),
    "a named tuple's default": (list[WithDefault], [[]] * MANY),
    "a frozen model that has no hash": (with_default(Frozen, Frozen()), [{}] * MANY),
    "a tuple that has no hash": (with_default(Any, ([*range(300)],)), [{}] * MANY),
    "a copy of much that is shared": (with_default(Any, [LARGE_TUPLE]), [{}] * MANY),
    "private attributes": (list[Private], [{}] * MANY),
    "a field that has only an alias": (
        with_default(Any, Field(default_factory=lambda: [*range(300)], alias="A")),
        [{"a": 0}] * (MANY // 2),
    ),
    "large defaults that are validated": (
        with_default(tuple[int, ...], LARGE_TUPLE, validates=True),
        [{}] * MANY,
    ),
    "models of defaults that are validated": (
        with_default(list[Typed], Field([{"a": 1}] * 30, validate_default=True)),
        [{}] * 10_000,
    ),
    "parts of a member that is empty": (parts(30), [{"x": {}}] * (MANY // 2)),
}


@pytest.mark.parametrize(("annotation", "value"), EXPLODING.values(), ids=EXPLODING)
def test_what_could_explode_is_not_tried(annotation: Any, value: Any) -> None:
    with pytest.raises(TooCostly):
        all_errors_fit(graph(annotation), value)


def test_errors_of_defaults_are_not_all_collected() -> None:
    wrong = with_default(int, "x", validates=True)
    assert not all_errors_fit(graph(wrong), [{}] * MANY)


def test_a_factory_is_called_when_an_object_is_first_checked_and_not_again() -> None:
    calls: list[int] = []
    types = graph(with_default(Any, Field(default_factory=lambda: calls.append(1))))
    assert calls == []
    for _ in range(3):
        all_errors_fit(types, [{}] * 10)
    assert calls == [1, 1]


def test_a_default_that_is_validated_within_itself_is_refused() -> None:
    with pytest.raises(RecursionError):  # which `argument_check` expects
        all_errors_fit(graph(Endless), {})


def test_what_takes_the_place_of_wrong_values_costs_as_much_as_a_default() -> None:
    schema = core_schema.list_schema(
        core_schema.with_default_schema(
            core_schema.int_schema(), default=list(range(300)), on_error="default"
        )
    )
    with pytest.raises(TooCostly):
        all_errors_fit(TypeGraph(schema), ["x"] * MANY)


def test_a_batch_has_one_budget() -> None:
    types, value = graph(list[int]), [""] * MANY

    def check(times: int) -> None:
        for _ in range(times):
            all_errors_fit(types, value)

    check(10)
    with shared_budget():
        check(1)
        with pytest.raises(TooCostly):
            check(10)
    check(1)


def test_a_discriminator_that_fails_is_one_that_finds_nothing() -> None:
    assert all_errors_fit(graph(list[CALLED]), [{}, 5, {"kind": []}])


def graph(annotation: Any) -> TypeGraph:
    return TypeGraph(TypeAdapter(annotation).core_schema)
