"""simulate_savings: a function that asks for what it lacks, and reports."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import pytest

from mcp_tasks import InputDeclined, TaskContext
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.schema import InvalidArguments
from mcp_tasks.tasks.forms import InvalidAnswer
from mcp_tasks.tasks.questions import FormQuestion
from tools.greet import greet
from tools.simulate_savings import Mix, simulate_savings

TOOL: Final[FunctionTool] = getattr(simulate_savings, DECLARATION)


def answered(**content: Any) -> TaskContext:
    return TaskContext(answers={"answer": {"action": "accept", "content": content}})


def test_greet_greets() -> None:
    assert greet("Ada") == "Hello, Ada!"


def test_the_same_plan_has_the_same_future() -> None:
    """A step may run twice, and must not answer two things."""
    one = simulate_savings(TaskContext(), 100, 10, 0.5, 200)
    assert simulate_savings(TaskContext(), 100, 10, 0.5, 200) == one
    assert simulate_savings(TaskContext(), 100, 10, 0.6, 200) != one


def test_cases_are_in_order() -> None:
    savings = simulate_savings(TaskContext(), 100, 20, 0.5, 500)
    assert savings.bad_case < savings.median < savings.good_case
    assert savings.paid_in == 24_000
    assert savings.runs == 500
    assert 0 <= savings.chance_of_loss <= 1


def test_stocks_scatter_more_than_bonds() -> None:
    bonds = simulate_savings(TaskContext(), 100, 20, 0.0, 500)
    stocks = simulate_savings(TaskContext(), 100, 20, 1.0, 500)
    assert stocks.good_case - stocks.bad_case > bonds.good_case - bonds.bad_case


def test_a_missing_share_is_asked_for() -> None:
    with pytest.raises(InputRequired) as caught:
        simulate_savings(TaskContext(), 100, 10)
    (question,) = caught.value.questions.values()
    assert isinstance(question, FormQuestion)
    share = question.schema["properties"]["share_of_stocks"]
    assert (share["minimum"], share["maximum"], share["default"]) == (0, 1, 0.6)
    with pytest.raises(InvalidAnswer):
        question.check("key", {"action": "accept", "content": {"share_of_stocks": 2}})


def test_nothing_is_reported_before_the_question() -> None:
    """The function runs again after the answer; a bar must not run back."""
    reports: list[Any] = []
    with pytest.raises(InputRequired):
        simulate_savings(TaskContext(on_report=lambda *report: reports.append(report)), 100, 10)
    assert reports == []


def test_an_answer_is_as_good_as_an_argument() -> None:
    given = simulate_savings(TaskContext(), 100, 10, 0.25, 200)
    assert simulate_savings(answered(share_of_stocks=0.25), 100, 10, None, 200) == given


def test_an_empty_answer_takes_the_forms_default() -> None:
    given = simulate_savings(TaskContext(), 100, 10, Mix().share_of_stocks, 200)
    assert simulate_savings(answered(), 100, 10, None, 200) == given


def test_a_declined_question_ends_the_call() -> None:
    with pytest.raises(InputDeclined):
        simulate_savings(TaskContext(answers={"answer": {"action": "decline"}}), 100, 10)


def test_progress_runs_up_in_ten_steps() -> None:
    reports: list[float | None] = []
    task = TaskContext(on_report=lambda _, fraction: reports.append(fraction))
    simulate_savings(task, 100, 1, 0.5, 200)
    assert reports == [tenth / 10 for tenth in range(10)]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"monthly": 0, "years": 1}, "monthly"),
        ({"monthly": -1, "years": 1}, "monthly"),
        ({"monthly": 1e308, "years": 1}, "monthly"),
        ({"monthly": 1, "years": 0}, "years"),
        ({"monthly": 1, "years": 61}, "years"),
        ({"monthly": 1, "years": 1, "share_of_stocks": 1.1}, "share_of_stocks"),
        ({"monthly": 1, "years": 1, "runs": 99}, "runs"),
        ({"monthly": 1, "years": 1, "runs": 5_000_001}, "runs"),
    ],
)
def test_a_plan_out_of_bounds_is_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArguments, match=f"{field}:"):
        TOOL.check_arguments(arguments)


def test_every_plan_within_bounds_gives_numbers_that_json_has() -> None:
    """Also the largest, in the worst and in the best of futures."""
    values = TOOL.check_arguments({"monthly": 1e9, "years": 60, "runs": 100})
    assert _finite(simulate_savings(answered(share_of_stocks=1), **_plain(values)).model_dump())


def test_the_result_is_what_the_schema_promises() -> None:
    result = TOOL.run(TOOL.check_arguments({"monthly": 1, "years": 1}), answered())
    assert set(result["structuredContent"]) == set(TOOL.definition()["outputSchema"]["properties"])
    json.dumps(result, allow_nan=False)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "task"}


def _finite(values: dict[str, float]) -> bool:
    return all(math.isfinite(value) for value in values.values())
