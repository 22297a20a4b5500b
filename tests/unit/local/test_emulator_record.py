"""What the emulator records for tests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.emulator_record import CALLS, EXPRESSIONS, install, read


@pytest.fixture
def modules(tmp_path: Path) -> tuple[Any, Any]:
    """Stand-ins for MiniStack's modules for permissions and for state machines, recorded."""

    def evaluate_jsonata(expression: str, *_: Any) -> Any:
        if expression == "$spoiled":
            raise SpoiledError
        return len(expression)

    permissions = SimpleNamespace(evaluate=lambda request: SimpleNamespace(decision="Allow"))
    state_machines = SimpleNamespace(_evaluate_jsonata=evaluate_jsonata)
    install(tmp_path / "record", permissions, state_machines)
    return permissions, state_machines


class SpoiledError(Exception):
    """As MiniStack's own error, it has AWS's name."""

    error = "States.QueryEvaluationError"


def test_a_call_that_is_authorized_again_is_recorded_once(
    modules: tuple[Any, Any], tmp_path: Path
) -> None:
    request = SimpleNamespace(
        principal_arn="arn:aws:sts::1:assumed-role/r/s",
        action="dynamodb:GetItem",
        resource_arn="arn:aws:dynamodb:::table/t",
        service_context={"dynamodb:select": "ALL_ATTRIBUTES"},
    )
    for _ in range(2):
        assert modules[0].evaluate(request).decision == "Allow"
    assert list(read(tmp_path / "record" / CALLS)) == [
        {
            "principal": "arn:aws:sts::1:assumed-role/r/s",
            "action": "dynamodb:GetItem",
            "resource": "arn:aws:dynamodb:::table/t",
            "context": {"dynamodb:select": "ALL_ATTRIBUTES"},
            "decision": "Allow",
        }
    ]


def test_an_expression_is_recorded_with_what_it_saw_and_what_came_of_it(
    modules: tuple[Any, Any], tmp_path: Path
) -> None:
    evaluate = modules[1]._evaluate_jsonata
    context: dict[str, Any] = {"Execution": {"Name": "c1-a"}, "variables": {"answers": {}}}
    assert evaluate("$a", {"in": 1}, context, {"out": 2}) == 2
    with pytest.raises(SpoiledError):
        evaluate("$spoiled", {}, context, None, {"Error": "e"})
    context["variables"]["answers"] = {"changed": "afterwards"}
    shown = {"Execution": {"Name": "c1-a"}}
    assert list(read(tmp_path / "record" / EXPRESSIONS)) == [
        {
            "expression": "$a",
            "bindings": {
                "answers": {},
                "states": {"input": {"in": 1}, "context": shown, "result": {"out": 2}},
            },
            "value": 2,
        },
        {
            "expression": "$spoiled",
            "bindings": {
                "answers": {},
                "states": {"input": {}, "context": shown, "errorOutput": {"Error": "e"}},
            },
            "error": "States.QueryEvaluationError",
        },
    ]
