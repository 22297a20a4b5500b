"""Every JSONata expression, evaluated by the reference implementation: jsonata 2.0.6, the version
that Step Functions documents ("Transforming data with JSONata in Step Functions").

The emulator and the unit tests evaluate with jsonata-python, a port by other people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jsonata
import pytest

from tests.infra.assembly import expressions
from tests.infra.second_opinions import programs
from tests.infra.second_opinions.edges import NO_RESULT, edges

RECORDED: Final = Path(__file__).with_name("evaluations.json")
"""What the emulator evaluated in the tests of deployed stacks; `record.py` renews it."""
NOT_IN_THE_REFERENCE: Final = re.compile(r"\$(partition|range|hash|random|uuid|parse|eval)\(")
"""Functions that Step Functions adds, and the one that it refuses."""
Evaluation = Mapping[str, Any]
"""`expression`, `bindings`, and `value` or `error`."""
EDGES: Final = list(edges())


@pytest.fixture(scope="session")
def recorded(ministack: dict[str, Any]) -> list[Evaluation]:
    """What MiniStack evaluated: for the lives, and for real executions."""
    evaluations: list[Evaluation] = ministack["evaluations"]
    return [*evaluations, *json.loads(RECORDED.read_text())]


def _reference(evaluations: Sequence[Evaluation]) -> list[Any]:
    """The values by the reference implementation."""
    outcomes = programs.node("jsonata.cjs", *evaluations)
    for outcome, evaluation in zip(outcomes, evaluations, strict=True):
        assert "error" not in outcome, (evaluation, outcome)
    return [outcome.get("value", NO_RESULT) for outcome in outcomes]


def _by_the_port(evaluation: Evaluation) -> Any:
    """The value by jsonata-python, called as MiniStack does."""
    expression, bindings = evaluation["expression"], evaluation["bindings"]
    value = jsonata.Jsonata(expression).evaluate(None, bindings)
    if value is None and not jsonata.Jsonata(f"$exists(({expression}))").evaluate(None, bindings):
        return NO_RESULT
    return value


def _text(value: Any) -> str:
    """A value as JSON. The reference writes 12.0 as 12, as JavaScript does: for JSON that is the
    same number."""
    return "no result" if value is NO_RESULT else json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def test_the_reference_has_the_values_of_recorded_evaluations(recorded: list[Evaluation]) -> None:
    for evaluation, value in zip(recorded, _reference(recorded), strict=True):
        assert _text(value) == _text(evaluation.get("value", NO_RESULT)), evaluation


def test_the_reference_has_the_expected_values_at_the_edges() -> None:
    asked = [{"expression": text, "bindings": bindings} for text, bindings, _ in EDGES]
    for case, value in zip(EDGES, _reference(asked), strict=True):
        assert _text(value) == _text(case[2]), case


@pytest.mark.parametrize(
    ("expression", "bindings", "expected"), EDGES, ids=[str(n) for n, _ in enumerate(EDGES)]
)
def test_the_port_has_the_expected_values_at_the_edges(
    expression: str, bindings: dict[str, Any], expected: Any
) -> None:
    value = _by_the_port({"expression": expression, "bindings": bindings})
    assert _text(value) == _text(expected)


def test_the_reference_rounds_integers_beyond_53_bits_and_the_port_does_not() -> None:
    """JSONata's numbers are those of JavaScript. AWS does not say what Step Functions does."""
    evaluation = {
        "expression": "$states.input",
        "bindings": {"states": {"input": [2**53 - 1, 2**53 + 1]}},
    }
    assert _reference([evaluation]) == [[2**53 - 1, 2**53]]
    assert _by_the_port(evaluation) == [2**53 - 1, 2**53 + 1]


def test_every_expression_of_the_definitions_is_evaluated(
    definitions: dict[str, str], recorded: list[Evaluation]
) -> None:
    evaluated = {evaluation["expression"].strip() for evaluation in recorded}
    evaluated |= {expression for expression, _, _ in EDGES}
    written = {
        expression.strip()
        for text in definitions.values()
        for expression in expressions(json.loads(text))
    }
    assert written - evaluated == set()


def test_the_edges_are_those_of_expressions_that_are_deployed(definitions: dict[str, str]) -> None:
    written = {
        expression.strip()
        for text in definitions.values()
        for expression in expressions(json.loads(text))
    }
    assert {expression for expression, _, _ in EDGES} - written == set()


def test_no_expression_needs_what_the_reference_does_not_have(definitions: dict[str, str]) -> None:
    for name, text in definitions.items():
        for expression in expressions(json.loads(text)):
            assert not NOT_IN_THE_REFERENCE.search(expression), f"{name}: {expression}"
