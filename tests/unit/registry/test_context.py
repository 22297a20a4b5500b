"""What an author's function may do while it runs: report, log and ask."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import BaseModel, field_validator

from mcp_tasks import AskForm, InputDeclined, TaskContext, ToolError
from mcp_tasks.protocol.notifications import LogLevel
from mcp_tasks.registry.asking import InputRequest
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.tasks.forms import InvalidQuestion
from mcp_tasks.tasks.questions import FormQuestion


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


@pytest.mark.parametrize("progress", [None, 0.0, 0.5, 1.0])
def test_a_report_is_passed_on_as_it_is(progress: float | None) -> None:
    reports: list[tuple[str, float | None]] = []
    task = TaskContext(on_report=lambda message, fraction: reports.append((message, fraction)))
    task.report("reading", progress)
    assert reports == [("reading", progress)]


@pytest.mark.parametrize("logger", [None, "parser"])
def test_a_log_message_is_passed_on_as_it_is(logger: str | None) -> None:
    level: LogLevel = "notice"
    logged: list[tuple[str, Any, str | None]] = []
    task = TaskContext(on_log=lambda *message: logged.append(message))
    task.log(level, {"line": 3}, logger)
    assert logged == [("notice", {"line": 3}, logger)]


def test_a_context_for_tests_reports_and_logs_nowhere() -> None:
    TaskContext().report("reading", progress=0.5)
    TaskContext().log("info", "reading")


def test_a_question_without_an_answer_ends_the_function() -> None:
    with pytest.raises(InputRequired) as caught:
        TaskContext().ask("Sure?", Confirm)
    ((key, question),) = caught.value.questions.items()
    assert isinstance(question, FormQuestion)
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
    questions: dict[str, InputRequest[Any]] = {
        "one": AskForm("One?", Confirm),
        "two": AskForm("Two?", Even),
    }
    with pytest.raises(InputRequired) as caught:
        TaskContext().ask_all(questions)
    assert {key: q.as_json()["message"] for key, q in caught.value.questions.items()} == {
        "one": "One?",
        "two": "Two?",
    }
    answers = {"one": YES, "two": accept(number=2)}
    assert TaskContext(answers=answers).ask_all(questions) == {
        "one": Confirm(sure=True),
        "two": Even(number=2),
    }


def test_only_questions_without_an_answer_are_asked() -> None:
    requests = {"one": AskForm("1?", Confirm), "two": AskForm("2?", Confirm)}
    with pytest.raises(InputRequired) as caught:
        TaskContext(answers={"one": YES}).ask_all(requests)
    assert list(caught.value.questions) == ["two"]


@pytest.mark.parametrize(
    "answer", [{}, accept(), accept(sure="yes"), {"action": "later"}, "yes", None]
)
def test_an_answer_that_does_not_fit_is_asked_for_again(answer: Any) -> None:
    """mrtr.mdx, "Error Handling": it is as if the client had not answered."""
    with pytest.raises(InputRequired) as caught:
        TaskContext(answers={"answer": answer}).ask("Sure?", Confirm)
    assert list(caught.value.questions) == ["answer"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_declined_question_is_a_tool_error_that_can_be_caught(action: str) -> None:
    task = TaskContext(answers={"answer": {"action": action}})
    with pytest.raises(InputDeclined, match="Sure") as caught:
        task.ask("Sure?", Confirm)
    assert caught.value.action == action
    assert isinstance(caught.value, ToolError)


def test_an_answer_that_breaks_a_rule_of_the_model_is_a_tool_error_without_it() -> None:
    """The form's schema cannot express a validator's rule, so the client could not check it."""
    with pytest.raises(ToolError) as caught:
        TaskContext(answers={"answer": accept(number=12345)}).ask("Number?", Even)
    assert "number" in str(caught.value)
    assert "12345" not in str(caught.value)


def test_a_form_that_clients_cannot_show_is_named() -> None:
    with pytest.raises(InvalidQuestion, match=r"Nested\.inner"):
        TaskContext().ask("Who?", Nested)
