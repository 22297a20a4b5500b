"""What a function asks the client for, and what it gets back (basic/patterns/mrtr.mdx).

A context holds the answers so far; what is not answered yet ends the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

import pytest
from pydantic import BaseModel, Field, field_validator

from mcp_tasks import (
    AskForm,
    AskModel,
    AskRoots,
    AskUrl,
    Completion,
    InputDeclined,
    Root,
    TaskContext,
    ToolError,
)
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.tasks.forms import InvalidQuestion
from mcp_tasks.tasks.questions import (
    MAX_ANSWER_CHARACTERS,
    FormQuestion,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
)


class Trip(BaseModel):
    """A form."""

    place: str
    days: int = Field(default=7, ge=1)

    @field_validator("place")
    @classmethod
    def reachable(cls, place: str) -> str:
        """A rule that no JSON Schema shows."""
        if place == "Atlantis":
            raise ValueError(f"{place} cannot be reached")
        return place


Answer = Mapping[str, Any]
Ask = Callable[[TaskContext], Any]

ASKS: Final[dict[str, Ask]] = {
    "form": lambda task: task.ask("Where to?", Trip, key="k"),
    "url": lambda task: task.ask_url("Pay here", "https://pay.example.com/1", key="k"),
    "model": lambda task: task.ask_model("Say hi", key="k"),
    "roots": lambda task: task.ask_roots(key="k"),
}
WRITTEN: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "hi"},
    "model": "m1",
    "stopReason": "endTurn",
}


def answered(ask: Ask, answer: Any) -> Any:
    """What a function gets that asks, once the client has answered."""
    return ask(TaskContext(answers={"k": answer}))


def questions(ask: Ask, **answers: Any) -> dict[str, Question]:
    """What a function asks for that has these answers."""
    with pytest.raises(InputRequired) as ended:
        ask(TaskContext(answers=answers))
    return ended.value.questions


# What is asked


@pytest.mark.parametrize("kind", ASKS)
def test_a_question_without_an_answer_ends_the_function(kind: str) -> None:
    """Even past the function's own `except Exception`."""

    def function(task: TaskContext) -> str:
        try:
            ASKS[kind](task)
        except Exception:
            return "swallowed"
        return "answered"

    assert set(questions(function)) == {"k"}


def test_a_form_is_asked_as_its_schema() -> None:
    question = questions(ASKS["form"])["k"]
    assert isinstance(question, FormQuestion)
    assert question.message == "Where to?"
    assert question.schema["required"] == ["place"]
    assert question.schema["properties"]["days"]["default"] == 7


def test_a_page_is_asked_for_with_its_reason() -> None:
    question = questions(ASKS["url"])["k"]
    assert question == UrlQuestion("Pay here", "https://pay.example.com/1")


def test_roots_are_asked_for_without_words() -> None:
    assert questions(ASKS["roots"])["k"] == RootsQuestion()


@pytest.mark.parametrize(
    ("request_", "params"),
    [
        (
            AskModel("Say hi"),
            {
                "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}],
                "maxTokens": 1000,
            },
        ),
        (
            AskModel(
                [{"role": "assistant", "content": {"type": "text", "text": "hi"}}],
                max_tokens=5,
                system_prompt="Be brief",
                temperature=0.0,
                more={"stopSequences": ["."]},
            ),
            {
                "messages": [{"role": "assistant", "content": {"type": "text", "text": "hi"}}],
                "maxTokens": 5,
                "systemPrompt": "Be brief",
                "temperature": 0.0,
                "stopSequences": ["."],
            },
        ),
    ],
)
def test_a_model_is_asked_with_the_parameters_of_sampling(
    request_: AskModel, params: dict[str, Any]
) -> None:
    assert request_.question() == SamplingQuestion(params)


def test_the_contexts_own_way_of_asking_a_model_passes_its_parameters_on() -> None:
    def ask(task: TaskContext) -> Completion:
        return task.ask_model("Say hi", max_tokens=5, system_prompt="Be brief", key="k")

    question = questions(ask)["k"]
    assert question == AskModel("Say hi", max_tokens=5, system_prompt="Be brief").question()


def test_a_form_that_elicitation_cannot_carry_is_the_authors_mistake() -> None:
    class Nested(BaseModel):
        """Not flat."""

        trip: Trip

    with pytest.raises(InvalidQuestion, match=r"Nested\.trip"):
        TaskContext().ask("Where to?", Nested)


# What comes back


def test_an_accepted_form_comes_back_filled_in() -> None:
    answer = {"action": "accept", "content": {"place": "Rome", "days": 3}}
    assert answered(ASKS["form"], answer) == Trip(place="Rome", days=3)


def test_a_field_that_was_left_out_has_its_default() -> None:
    answer = {"action": "accept", "content": {"place": "Rome"}}
    assert answered(ASKS["form"], answer).days == 7


def test_a_page_that_was_agreed_to_returns_nothing() -> None:
    assert answered(ASKS["url"], {"action": "accept"}) is None


def test_a_completion_comes_back_with_its_model_and_its_text() -> None:
    assert answered(ASKS["model"], WRITTEN) == Completion(WRITTEN["content"], "m1", "endTurn")
    assert answered(ASKS["model"], {**WRITTEN, "stopReason": "x"}).stop_reason == "x"
    bare = {name: value for name, value in WRITTEN.items() if name != "stopReason"}
    assert answered(ASKS["model"], bare).stop_reason is None


TEXT_B: Final = {"type": "text", "text": "b"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "text", "text": "hi"}, "hi"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "image", "data": "", "mimeType": "image/png"}, TEXT_B], "b"),
        ({"type": "text", "text": 5}, ""),
        (["a", None, TEXT_B], "b"),
        ([], ""),
    ],
)
def test_the_text_of_a_completion_is_that_of_its_text_blocks(content: Any, text: str) -> None:
    assert answered(ASKS["model"], {**WRITTEN, "content": content}).text == text


@pytest.mark.parametrize(
    ("listed", "roots"),
    [
        ([], []),
        (
            [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b", "_meta": {}}],
            [Root("file:///a", "A"), Root("file:///b")],
        ),
    ],
)
def test_roots_come_back_as_a_list(listed: list[Any], roots: list[Root]) -> None:
    assert answered(ASKS["roots"], {"roots": listed}) == roots


@pytest.mark.parametrize("kind", ["form", "url"])
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_say_no(kind: str, action: str) -> None:
    """client/elicitation.mdx, "Response Actions"."""
    with pytest.raises(InputDeclined) as declined:
        answered(ASKS[kind], {"action": action, "content": {"place": "Rome"}})
    assert declined.value.action == action
    assert isinstance(declined.value, ToolError)
    assert action in str(declined.value)


def test_a_rule_that_the_schema_cannot_show_is_the_tools_error_and_quotes_nothing() -> None:
    with pytest.raises(ToolError, match="place") as error:
        answered(ASKS["form"], {"action": "accept", "content": {"place": "Atlantis"}})
    assert "Atlantis" not in str(error.value)


# What cannot be used

ACCEPTED: Final = {"action": "accept"}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        *product(ASKS, (None, "accept", [], 5, {}, {"action": "yes"}, {"action": ["accept"]})),
        ("form", ACCEPTED),
        ("form", {**ACCEPTED, "content": None}),
        ("form", {**ACCEPTED, "content": {}}),
        ("form", {**ACCEPTED, "content": {"place": 5}}),
        ("form", {**ACCEPTED, "content": {"place": "Rome", "days": 0}}),
        ("form", {**ACCEPTED, "content": {"place": "Rome", "days": "3"}}),
        ("form", {**ACCEPTED, "content": {"place": "x" * MAX_ANSWER_CHARACTERS}}),
        ("model", ACCEPTED),
        ("model", {**WRITTEN, "content": "hi"}),
        ("model", {**WRITTEN, "model": None}),
        ("model", {**WRITTEN, "role": 5}),
        ("roots", {"roots": None}),
        ("roots", {"roots": {}}),
        ("roots", {"roots": ["file:///a"]}),
        ("roots", {"roots": [{"name": "a"}]}),
        ("roots", {"roots": [{"uri": "file:///a", "name": 5}]}),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_again(kind: str, answer: Any) -> None:
    """mrtr.mdx, "Error Handling"."""
    assert questions(ASKS[kind], k=answer) == questions(ASKS[kind])


def test_an_answer_under_another_key_is_none() -> None:
    assert set(questions(ASKS["roots"], roots={"roots": []})) == {"k"}


# Several at once


def all_at_once(task: TaskContext) -> dict[str, Any]:
    return task.ask_all(
        {
            "trip": AskForm("Where to?", Trip),
            "page": AskUrl("Pay here", "https://pay.example.com/1"),
            "hi": AskModel("Say hi"),
            "roots": AskRoots(),
        }
    )


ALL: Final[dict[str, Answer]] = {
    "trip": {"action": "accept", "content": {"place": "Rome"}},
    "page": {"action": "accept"},
    "hi": WRITTEN,
    "roots": {"roots": []},
}


def test_several_are_asked_for_at_once() -> None:
    assert set(questions(all_at_once)) == set(ALL)


def test_several_come_back_by_their_keys() -> None:
    found = all_at_once(TaskContext(answers=ALL))
    assert found == {
        "trip": Trip(place="Rome"),
        "page": None,
        "hi": Completion(WRITTEN["content"], "m1", "endTurn"),
        "roots": [],
    }


@pytest.mark.parametrize("missing", ALL)
def test_only_missing_answers_are_asked_for_again(missing: str) -> None:
    rest = {key: answer for key, answer in ALL.items() if key != missing}
    assert set(questions(all_at_once, **rest)) == {missing}
    assert set(questions(all_at_once, **{**ALL, missing: {"action": 5}})) == {missing}


def test_a_refusal_waits_until_everything_is_answered() -> None:
    declined: dict[str, Answer] = {"trip": {"action": "decline"}, "hi": WRITTEN}
    assert set(questions(all_at_once, **declined)) == {"page", "roots"}
    with pytest.raises(InputDeclined, match="Where to"):
        all_at_once(TaskContext(answers={**ALL, **declined}))


def test_questions_one_after_the_other_need_keys_of_their_own() -> None:
    def function(task: TaskContext) -> str:
        first = task.ask("First?", Trip, key="first").place
        return first + task.ask("Then?", Trip, key="then").place

    rome = {"action": "accept", "content": {"place": "Rome"}}
    assert set(questions(function)) == {"first"}
    assert set(questions(function, first=rome)) == {"then"}
    assert function(TaskContext(answers={"first": rome, "then": rome})) == "RomeRome"


def test_each_way_to_ask_has_a_key_unless_it_is_given_one() -> None:
    def function(task: TaskContext) -> None:
        for ask in (
            lambda: task.ask("Where to?", Trip),
            lambda: task.ask_url("Pay", "https://pay.example.com"),
            lambda: task.ask_model("Say hi"),
            lambda: task.ask_roots(),
        ):
            ask()

    answers: dict[str, Answer] = {}
    for key, answer in zip(("answer", "page", "completion", "roots"), ALL.values(), strict=True):
        assert set(questions(function, **answers)) == {key}
        answers[key] = answer
    function(TaskContext(answers=answers))


def test_a_key_is_for_one_question() -> None:
    """The answer to the first would be used for the second, which the client was never asked."""
    task = TaskContext(answers={"answer": {"action": "accept", "content": {"sure": True}}})

    class Sure(BaseModel):
        sure: bool

    assert task.ask("Delete it?", Sure).sure
    assert task.ask("Delete it?", Sure).sure, "the same question again is no other"
    with pytest.raises(ValueError, match="its own"):
        task.ask("Its backups, too?", Sure)


@pytest.mark.parametrize(
    "more", [{"tools": []}, {"toolChoice": {"mode": "auto"}}, {"includeContext": "allServers"}]
)
def test_sampling_with_tools_or_context_is_refused(
    more: dict[str, Any],
) -> None:
    """client/sampling.mdx, "Capabilities"."""
    with pytest.raises(InvalidQuestion, match="tools"):
        AskModel("x", more=more).question()
