"""Completion of arguments (server/utilities/completion.mdx)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import pytest

from mcp_tasks import TaskContext
from mcp_tasks.registry.completion import Completer, completers
from mcp_tasks.registry.schema import parameters_model


class Color(Enum):
    """A choice."""

    RED = "red"
    GREEN = "green"
    DARK_RED = "dark-red"


class Size(Enum):
    """A choice of numbers."""

    SMALL = 1
    LARGE = 2


def paint(
    task: TaskContext,
    color: Color,
    finish: Literal["matte", "glossy"] | None = None,
    size: Size = Size.SMALL,
    fixed: Literal["one"] = "one",
    note: str = "",
    copy: str = "",
) -> str:
    return ""


def found(**declared: Any) -> dict[str, Completer]:
    return completers(parameters_model(paint, (TaskContext,)), declared, "paint")


def values(completer: Completer, typed: str, **others: str) -> list[str]:
    return list(completer(typed, others))


def test_every_parameter_but_the_context_completes() -> None:
    assert set(found()) == {"color", "finish", "size", "fixed", "note", "copy"}


@pytest.mark.parametrize(
    ("parameter", "choices"),
    [
        ("color", ["red", "green", "dark-red"]),
        ("finish", ["matte", "glossy"]),
        ("fixed", ["one"]),
        ("size", ["1", "2"]),  # sent as text, like every argument
        ("note", []),
        ("copy", []),
    ],
)
def test_a_type_that_names_its_values_completes_to_them(parameter: str, choices: list[str]) -> None:
    assert values(found()[parameter], "") == choices


@pytest.mark.parametrize(
    ("typed", "matching"),
    [
        ("", ["red", "green", "dark-red"]),
        ("red", ["red", "dark-red"]),
        ("RED", ["red", "dark-red"]),
        ("dark", ["dark-red"]),
        ("re", ["red", "green", "dark-red"]),  # what begins so comes first
        ("d", ["dark-red", "red"]),
        ("blue", []),
    ],
)
def test_values_that_begin_with_the_typed_text_come_before_those_that_contain_it(
    typed: str, matching: list[str]
) -> None:
    assert values(found()["color"], typed) == matching


def test_a_declared_list_is_matched_alike_whatever_holds_it() -> None:
    texts = ["Straße", "strand", "Ostsee"]
    for declared in (texts, tuple(texts), iter(texts), dict.fromkeys(texts)):
        completer = found(note=declared)["note"]
        assert values(completer, "STRASSE") == ["Straße"]
        assert values(completer, "st") == ["Straße", "strand", "Ostsee"]  # and again


def test_a_declared_list_comes_before_the_types_own() -> None:
    assert values(found(color=["blue"])["color"], "") == ["blue"]


def test_a_completer_gets_the_typed_text_and_the_other_arguments() -> None:
    def notes(typed: str, others: Mapping[str, str]) -> list[str]:
        return [typed, *others.values()]

    assert values(found(note=notes)["note"], "a", color="red") == ["a", "red"]


def test_a_parameter_may_be_called_as_a_method_of_pydantics() -> None:
    assert values(found(copy=["carbon"])["copy"], "c") == ["carbon"]


def test_a_completer_for_no_parameter_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="paint: complete has colour, tone"):
        found(tone=["a"], colour=["b"], color=["c"])


def test_the_context_is_no_parameter() -> None:
    with pytest.raises(ValueError, match="task"):
        found(task=["a"])
