"""Questions, asks and answers (tasks.md, "Task Update Requests"; client/elicitation.mdx)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.tasks.forms import InvalidAnswer, InvalidQuestion
from mcp_tasks.tasks.inputs import ACTIONS, Question, open_ask

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
QUESTION: Final = Question("Really?", FORM)
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


# asks

NAMES: Final = st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True)


@given(token=st.text(min_size=1), names=NAMES)
def test_an_ask_has_a_key_for_every_question(token: str, names: list[str]) -> None:
    ask = open_ask(token, {name: Question(name, FORM) for name in names})
    assert set(ask.names.values()) == set(names)
    assert set(ask.names) == set(ask.questions) == set(ask.outstanding)
    assert all(ask.questions[key].message == name for key, name in ask.names.items())


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
