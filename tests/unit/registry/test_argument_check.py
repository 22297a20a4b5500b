"""The check of arguments: large ones are checked as small ones are, but for the errors told."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple

import pytest
from pydantic import AfterValidator, BaseModel, Field

from mcp_tasks.registry.check_cost import all_errors_fit
from mcp_tasks.registry.refusal import InvalidArguments
from mcp_tasks.registry.schema import parameters_model, text_arguments, validate_arguments
from mcp_tasks.registry.type_graph import TypeGraph


class Context:
    """What parameters_model leaves out."""


class Color(Enum):
    RED = "red"


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    size: int = 1
    type: str = "list"
    default: list[int] = []
    metadata: dict[str, int] = {}


class Branch(BaseModel):
    kind: Literal["branch"] = "branch"
    children: list[Annotated[Leaf | Branch, Field(discriminator="kind")]] = []
    settings: dict[str, Any] = {"type": "list"}


@dataclass
class Record:
    day: date
    amount: Decimal = Decimal(0)


class Point(NamedTuple):
    x: int
    y: int = 0


def function(
    tree: Branch,
    records: list[Record],
    points: dict[str, Point],
    colors: set[Color],
    queue: deque[int | str],
    even: list[Annotated[int, AfterValidator(lambda n: n * 2)]],
    filling: list[str],
) -> None:
    """Take everything."""


MODEL: Final = parameters_model(function, (Context,))


def arguments(filling: list[Any]) -> dict[str, Any]:
    leaves = [{"kind": "leaf", "size": 2.0}, {"kind": "leaf"}]
    return {
        "tree": {"children": [{"kind": "branch", "children": leaves}, *leaves]},
        "records": [{"day": "2026-02-28", "amount": "1.5"}, {"day": "2026-03-01"}],
        "points": {"a": {"x": 1}, "b": [1, 2]},
        "colors": ["red", "red"],
        "queue": [1, "a"],
        "even": [1, 2],
        "filling": filling,
    }


LEAF: Final = {"kind": "leaf", "size": "", "default": ["", ""], "metadata": {"a": "", "b": ""}}
WRONG: Final[list[Any]] = [0] * 90_000
"""So many that not all errors are collected."""


def test_large_arguments_become_what_small_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    small = validate_arguments(MODEL, arguments([]))
    monkeypatch.setattr("mcp_tasks.registry.check_cost._SMALL_BYTES", 0)
    assert not all_errors_fit(TypeGraph(MODEL.__pydantic_core_schema__), arguments([]))
    large = validate_arguments(MODEL, arguments([]))
    assert large == small
    assert isinstance(large["tree"].children[0].children[0], Leaf)
    assert large["tree"].children[0].children[0].size == 2
    assert large["tree"].settings == {"type": "list"}
    assert large["points"] == {"a": Point(1), "b": Point(1, 2)}


def test_a_large_check_ends_at_the_first_wrong_item_however_deep() -> None:
    wrong = arguments(WRONG)
    wrong["tree"] = {"children": [{"kind": "branch", "children": [LEAF] * 9}]}
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(MODEL, wrong)
    said = str(caught.value).split("; ")
    assert [part.partition(": ")[0] for part in said] == [
        *(f"tree.children.0.branch.children.0.leaf.{name}" for name in ("size", "default.0")),
        "tree.children.0.branch.children.0.leaf.metadata.a",
        "filling.0",
    ]


def test_arguments_nested_as_deep_as_any_limit_allows_are_refused() -> None:
    value: Any = {}
    for _ in range(490):
        value = {"settings": value}
    with pytest.raises(InvalidArguments):
        validate_arguments(MODEL, {**arguments([]), "tree": value})


@pytest.mark.usefixtures("usual_depth")
@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 900 + ")" * 900])
def test_a_regular_expression_that_python_cannot_compile_is_refused(pattern: str) -> None:
    def search(pattern: re.Pattern[str]) -> None:
        """Take a regular expression."""

    model = parameters_model(search, (Context,))
    with pytest.raises(InvalidArguments, match="a number in them is too large"):
        validate_arguments(model, {"pattern": pattern})
    with pytest.raises(InvalidArguments, match="a number in them is too large"):
        text_arguments(model, {"pattern": pattern})
