"""What a tool may do while it runs: report and ask."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import BaseModel, field_validator

from mcp_tasks import InputDeclined, TaskContext, ToolError
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.tasks.forms import InvalidQuestion


class Confirm(BaseModel):
    sure: bool


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value


class Nested(BaseModel):
    inner: Confirm


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


YES: Final = accept(sure=True)


@pytest.mark.parametrize(
    ("progress", "said"),
    [(None, "reading"), (0.0, "0% reading"), (0.5, "50% reading"), (1.0, "100% reading")],
)
def test_a_report_is_the_status_message(progress: float | None, said: str) -> None:
    reports: list[str] = []
    TaskContext(on_report=reports.append).report("reading", progress)
    assert reports == [said]


def test_a_report_within_the_request_goes_nowhere() -> None:
    TaskContext().report("reading", progress=0.5)


def test_a_question_without_an_answer_ends_the_function() -> None:
    with pytest.raises(InputRequired) as caught:
        TaskContext().ask("Sure?", Confirm)
    ((key, question),) = caught.value.questions.items()
    assert (key, question.message) == ("answer", "Sure?")
    assert question.schema["required"] == ["sure"]


def test_a_tool_that_catches_everything_does_not_swallow_the_question() -> None:
    def careless(task: TaskContext) -> str:
        try:
            return str(task.ask("Sure?", Confirm))
        except Exception:
            return "swallowed"

    with pytest.raises(InputRequired):
        careless(TaskContext())


def test_an_answered_question_returns_the_form() -> None:
    assert TaskContext(answers={"answer": YES}).ask("Sure?", Confirm) == Confirm(sure=True)


def test_each_question_has_its_key() -> None:
    task = TaskContext(answers={"first": YES})
    assert task.ask("Sure?", Confirm, key="first").sure
    with pytest.raises(InputRequired) as caught:
        task.ask("Really?", Confirm, key="second")
    assert list(caught.value.questions) == ["second"]


def test_several_questions_are_asked_at_once() -> None:
    questions: dict[str, tuple[str, type[BaseModel]]] = {
        "one": ("One?", Confirm),
        "two": ("Two?", Even),
    }
    with pytest.raises(InputRequired) as caught:
        TaskContext().ask_all(questions)
    assert {key: q.message for key, q in caught.value.questions.items()} == {
        "one": "One?",
        "two": "Two?",
    }
    answers = {"one": YES, "two": accept(number=2)}
    assert TaskContext(answers=answers).ask_all(questions) == {
        "one": Confirm(sure=True),
        "two": Even(number=2),
    }


def test_only_what_is_not_answered_is_asked() -> None:
    with pytest.raises(InputRequired) as caught:
        TaskContext(answers={"one": YES}).ask_all({"one": ("1?", Confirm), "two": ("2?", Confirm)})
    assert list(caught.value.questions) == ["two"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_declined_question_is_a_tool_error_that_can_be_caught(action: str) -> None:
    task = TaskContext(answers={"answer": {"action": action}})
    with pytest.raises(InputDeclined, match="Sure") as caught:
        task.ask("Sure?", Confirm)
    assert caught.value.action == action
    assert isinstance(caught.value, ToolError)


def test_an_answer_that_breaks_a_rule_of_the_model_is_a_tool_error_without_it() -> None:
    """The form's schema cannot show a validator's rule; the client checked what it could."""
    with pytest.raises(ToolError) as caught:
        TaskContext(answers={"answer": accept(number=12345)}).ask("Number?", Even)
    assert "number" in str(caught.value)
    assert "12345" not in str(caught.value)


def test_a_form_that_clients_cannot_show_is_named() -> None:
    with pytest.raises(InvalidQuestion, match=r"Nested\.inner"):
        TaskContext().ask("Who?", Nested)
