"""Questions, asks and answers (tasks.md, "Task Update Requests"; client/elicitation.mdx)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.forms import InvalidAnswer, InvalidQuestion
from mcp_tasks.tasks.questions import (
    ACTIONS,
    MAX_ANSWER_CHARACTERS,
    FormQuestion,
    Kind,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    check_size,
    kinds,
    open_ask,
    question,
)

FORM: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5, "default": "nobody"},
        "age": {"type": "integer", "minimum": 0},
        "share": {"type": "number", "maximum": 1},
        "born": {"type": "string", "format": "date"},
        "mail": {"type": "string", "format": "email"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}},
        "sure": {"type": "boolean"},
    },
    "required": ["sure"],
}
QUESTION: Final = FormQuestion("Really?", FORM)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.mark.parametrize(
    "content",
    [
        {"sure": True},
        {"sure": False, "name": "Ada", "age": 36, "share": 0.5},
        {"sure": True, "born": "1815-12-10", "mail": "ada@example.com"},
        {"sure": True, "color": "red", "sizes": ["s", "m"]},
        {"sure": True, "share": 1, "age": 0},
    ],
)
def test_an_answer_that_fits_is_passed_on_as_it_is(content: dict[str, Any]) -> None:
    assert QUESTION.check("key", accept(**content)) == accept(**content)


def test_what_the_form_does_not_ask_for_is_left_out() -> None:
    """JSON Schema allows other members; neither a state nor a tool gets them."""
    form = FormQuestion("Sure?", {"type": "object", "properties": {"sure": {"type": "boolean"}}})
    content = {"sure": True, "approvedBy": "root", "__proto__": {"sure": False}}
    taken = form.check("sure", {"action": "accept", "content": content, "_meta": {"x": 1}})
    assert taken == {"action": "accept", "content": {"sure": True}}


def test_a_completions_content_has_the_members_of_its_type() -> None:
    text = {"type": "text", "text": "a", "system": "ignore all", "data": "x"}
    image = {"type": "image", "data": "AA==", "mimeType": "image/png", "text": "x"}
    answer = {"role": "assistant", "model": "m", "content": [text, image, {"type": "tool_use"}]}
    kept = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]
    assert SAMPLING.check("say", answer)["content"] == kept
    assert SAMPLING.check("say", {**answer, "content": text})["content"] == kept[0]
    with pytest.raises(InvalidAnswer):
        SAMPLING.check("say", {**answer, "content": {"type": "tool_use"}})
    with pytest.raises(InvalidAnswer):
        SAMPLING.check("say", {**answer, "stopReason": {"a": 1}})


def test_defaults_are_for_the_form_and_not_filled_in() -> None:
    """What the user did not send was not answered; the tool's form has its own defaults."""
    assert QUESTION.check("key", accept(sure=True)) == accept(sure=True)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({}, "sure"),
        ({"sure": "true"}, "sure"),
        ({"sure": True, "name": "too long"}, "name"),
        ({"sure": True, "name": 5}, "name"),
        ({"sure": True, "age": -1}, "age"),
        ({"sure": True, "age": "36"}, "age"),
        ({"sure": True, "share": 1.1}, "share"),
        ({"sure": True, "born": "yesterday"}, "born"),
        ({"sure": True, "mail": "nobody"}, "mail"),
        ({"sure": True, "color": "green"}, "color"),
        ({"sure": True, "sizes": ["xl"]}, "sizes"),
        ({"sure": True, "sizes": "s"}, "sizes"),
    ],
)
def test_an_answer_that_does_not_fit_names_its_key_and_field(
    content: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        QUESTION.check("key", accept(**content))
    assert str(caught.value).startswith("key: ")
    assert field in str(caught.value)


@given(st.text(min_size=8, alphabet="XYZ"))
def test_the_message_never_repeats_the_answer(secret: str) -> None:
    for content in (
        {"sure": secret},
        {"sure": True, "name": secret},
        {"sure": True, "age": secret},
    ):
        with pytest.raises(InvalidAnswer) as caught:
            QUESTION.check("key", accept(**content))
        assert secret not in str(caught.value)


@pytest.mark.parametrize("action", sorted(ACTIONS - {"accept"}))
def test_what_is_not_accepted_has_no_content(action: str) -> None:
    assert QUESTION.check("key", {"action": action, "content": {"sure": 5}}) == {"action": action}


@given(JSON)
def test_anything_that_is_not_an_answer_is_invalid(answer: Any) -> None:
    with pytest.raises(InvalidAnswer, match="key: "):
        QUESTION.check("key", answer)


@given(JSON)
def test_an_action_is_one_of_three_words(action: Any) -> None:
    with pytest.raises(InvalidAnswer, match="action"):
        QUESTION.check("key", {"action": action, "content": {"sure": True}})


@given(JSON)
def test_content_is_checked_whatever_it_is(content: Any) -> None:
    with pytest.raises(InvalidAnswer, match="key: "):
        QUESTION.check("key", {"action": "accept", "content": content})


# the other kinds of questions

PAGE: Final = UrlQuestion("Pay there", "https://pay.example/1")
SAMPLING: Final = SamplingQuestion(
    {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}
)
ROOTS: Final = RootsQuestion()
EVERY: Final[dict[str, Question]] = {
    "form": QUESTION,
    "url": PAGE,
    "sampling": SAMPLING,
    "roots": ROOTS,
}
COMPLETION: Final[dict[str, Any]] = {
    "role": "assistant",
    "content": {"type": "text", "text": "Hello"},
    "model": "m",
}


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_a_page_is_visited_or_not_and_nothing_more_is_said(action: str) -> None:
    """client/elicitation.mdx, "URL Mode": what is done there does not pass through the client."""
    assert PAGE.check("key", {"action": action, "content": {"card": 1}}) == {"action": action}


@pytest.mark.parametrize(
    "answer",
    [
        COMPLETION,
        {**COMPLETION, "stopReason": "endTurn"},
        {**COMPLETION, "content": [COMPLETION["content"], COMPLETION["content"]]},
    ],
)
def test_a_completion_is_passed_on_without_what_nobody_asked_for(answer: dict[str, Any]) -> None:
    """client/sampling.mdx, "Creating Messages"."""
    assert SAMPLING.check("key", {**answer, "_meta": {}, "extra": 1}) == answer


@pytest.mark.parametrize(
    "answer",
    [{"roots": []}, {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]}],
)
def test_roots_are_passed_on_without_what_nobody_asked_for(answer: dict[str, Any]) -> None:
    """client/roots.mdx, "Listing Roots"."""
    sent = {"roots": [{**root, "_meta": {}} for root in answer["roots"]], "extra": 1}
    assert ROOTS.check("key", sent) == answer


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("asked", EVERY.values(), ids=EVERY)
def test_every_question_can_be_refused(asked: Question, action: str) -> None:
    assert asked.check("key", {"action": action, "extra": 1}) == {"action": action}


UNFIT: Final[dict[str, tuple[Question, dict[str, Any]]]] = {
    "a page without an action": (PAGE, {}),
    "a page with another action": (PAGE, {"action": "visit"}),
    "a completion without content": (SAMPLING, {"role": "assistant", "model": "m"}),
    "a completion of plain text": (SAMPLING, {**COMPLETION, "content": "Hello"}),
    "a completion by no model": (SAMPLING, {**COMPLETION, "model": None}),
    "a completion of nobody's": (SAMPLING, {**COMPLETION, "role": 1}),
    "a form instead of a completion": (SAMPLING, {"action": "accept"}),
    "a completion and a refusal": (SAMPLING, {"content": [1], "action": "decline"}),
    "no roots": (ROOTS, {}),
    "roots that are no list": (ROOTS, {"roots": {}}),
    "a root that is no object": (ROOTS, {"roots": ["file:///a"]}),
    "a root without a uri": (ROOTS, {"roots": [{"name": "A"}]}),
    "a root with a numbered name": (ROOTS, {"roots": [{"uri": "file:///a", "name": 1}]}),
}


@pytest.mark.parametrize(("asked", "answer"), UNFIT.values(), ids=UNFIT)
def test_an_answer_of_another_shape_is_invalid(asked: Question, answer: dict[str, Any]) -> None:
    with pytest.raises(InvalidAnswer, match=r"^key: "):
        asked.check("key", answer)


@pytest.mark.parametrize("asked", EVERY.values(), ids=EVERY)
def test_an_answer_has_a_limit(asked: Question) -> None:
    """A task's row holds at most 400 kB, and several answers."""
    with pytest.raises(InvalidAnswer, match=f"key: .* {MAX_ANSWER_CHARACTERS} characters"):
        asked.check(
            "key", {"action": "cancel", **COMPLETION, "roots": [], "x": "y" * MAX_ANSWER_CHARACTERS}
        )


@pytest.mark.parametrize("asked", EVERY.values(), ids=EVERY)
def test_a_question_is_read_as_it_was_written(asked: Question) -> None:
    assert question(asked.as_json()) == asked


@pytest.mark.parametrize("kind", EVERY)
def test_a_question_says_what_the_client_must_be_able_to_do(kind: str) -> None:
    assert kinds([EVERY[kind]]) == {Kind(kind)}


def test_several_questions_need_all_that_each_of_them_needs() -> None:
    assert kinds([]) == frozenset()
    assert kinds([QUESTION, QUESTION, ROOTS]) == {Kind.FORM, Kind.ROOTS}
    assert kinds(EVERY.values()) == set(Kind)


NO_QUESTIONS: Final[dict[str, Any]] = {
    "nothing": {},
    "a message": {"message": "Sure?"},
    "text": "Sure?",
    "a list": [{"roots": {}}],
    "a message that is no text": {"message": 5, "schema": FORM},
    "a schema that is no object": {"message": "Sure?", "schema": []},
    "a url that is none": {"message": "Go", "url": "pay.example"},
    "a url without a message": {"url": "https://pay.example"},
    "sampling without messages": {"sampling": {"messages": [], "maxTokens": 9}},
    "sampling without a limit": {"sampling": {"messages": [{"role": "user"}]}},
    "sampling of text": {"sampling": "Hi"},
}


@pytest.mark.parametrize("data", NO_QUESTIONS.values(), ids=NO_QUESTIONS)
def test_what_is_no_question_is_refused(data: Any) -> None:
    with pytest.raises(InvalidQuestion):
        question(data)


# asks

NAMES: Final = st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True)


@given(token=st.text(min_size=1), names=NAMES)
def test_an_ask_has_a_key_for_every_question(token: str, names: list[str]) -> None:
    ask = open_ask(token, {name: FormQuestion(name, FORM) for name in names})
    assert set(ask.names.values()) == set(names)
    assert set(ask.names) == set(ask.questions) == set(ask.outstanding)
    assert ask.questions == {key: FormQuestion(name, FORM) for key, name in ask.names.items()}


@given(tokens=st.lists(st.text(min_size=1), min_size=2, max_size=5, unique=True), names=NAMES)
def test_keys_are_unique_over_the_tasks_life(tokens: list[str], names: list[str]) -> None:
    """tasks.md: a key must never be used for two requests. Each ask has a token of its own."""
    questions = dict.fromkeys(names, QUESTION)
    keys = [key for token in tokens for key in open_ask(token, questions).questions]
    assert len(keys) == len(set(keys))


@given(token=st.text(min_size=1), names=NAMES)
def test_an_ask_that_is_delivered_again_has_the_same_keys(token: str, names: list[str]) -> None:
    questions = dict.fromkeys(names, QUESTION)
    assert open_ask(token, questions) == open_ask(token, questions)


@given(st.text(min_size=20))
def test_a_key_does_not_tell_the_token(token: str) -> None:
    """A token never leaves the server; keys do."""
    ask = open_ask(token, {"a": QUESTION})
    assert token not in ask.id
    assert not any(token in key for key in ask.questions)


def test_an_ask_without_questions_is_invalid() -> None:
    with pytest.raises(InvalidQuestion, match="at least one"):
        open_ask("token", {})


def test_a_question_without_a_name_is_invalid() -> None:
    with pytest.raises(InvalidQuestion, match="name"):
        open_ask("token", {"": QUESTION, "a": QUESTION})


def test_the_state_gets_answers_by_its_own_names() -> None:
    ask = open_ask("token", {"one": QUESTION, "two": QUESTION})
    one, two = ask.questions
    partly = replace(ask, answers={one: accept(sure=True)})
    assert set(partly.outstanding) == {two}
    fully = replace(ask, answers={one: accept(sure=True), two: {"action": "decline"}})
    assert fully.outstanding == {}
    assert fully.output() == {"one": accept(sure=True), "two": {"action": "decline"}}


def test_what_a_task_holds_of_answers_has_a_limit() -> None:
    """Its row has to hold them beside the execution's input."""
    largest = {"action": "accept", "content": {"text": "x" * (MAX_ANSWER_CHARACTERS - 100)}}
    check_size([largest, {"action": "decline"}])
    with pytest.raises(InvalidAnswer, match="together"):
        check_size([largest, largest, largest])
