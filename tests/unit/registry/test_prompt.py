"""Prompts as their authors declare them (server/prompts.mdx)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import Field

from mcp_tasks import Message, TaskContext, assistant, content, prompt, user
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.prompt import Prompt
from mcp_tasks.registry.schema import InvalidArguments


def declared(function: Callable[..., Any], **options: Any) -> Prompt:
    """The declaration that the decorator leaves."""
    return cast(Prompt, getattr(prompt(**options)(function), DECLARATION))


def messages(value: Any) -> list[dict[str, Any]]:
    """What a prompt that returns `value` says."""

    def says() -> Any:
        return value

    found: list[dict[str, Any]] = declared(says).get({}, TaskContext())["messages"]
    return found


def text_message(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


class Tone(Enum):
    """How to say it."""

    KIND = "kind"
    FIRM = "firm"


def test_the_decorator_returns_the_function() -> None:
    @prompt
    def greet(name: str) -> str:
        return f"Greet {name}"

    assert greet("Ada") == "Greet Ada"
    assert getattr(greet, DECLARATION).name == "greet"


def test_a_plain_declaration_says_no_more_than_it_has_to() -> None:
    def greet(task: TaskContext) -> str:
        return "Hello"

    assert declared(greet).definition() == {"name": "greet"}


def test_a_definition_shows_all_that_was_declared() -> None:
    def review(
        code: Annotated[str, Field(title="The code", description="What to review.")],
        task: TaskContext,
        language: Literal["python", "sql"] = "python",
    ) -> str:
        """Review code."""
        return code

    found = declared(
        review,
        name="code-review",
        title="Review",
        icons=[{"src": "https://example.com/a.png"}],
        meta={"example.com/kind": "text"},
    )
    assert found.definition() == {
        "name": "code-review",
        "title": "Review",
        "description": "Review code.",
        "arguments": [
            {
                "name": "code",
                "title": "The code",
                "description": "What to review.",
                "required": True,
            },
            {"name": "language", "required": False},
        ],
        "icons": [{"src": "https://example.com/a.png"}],
        "_meta": {"example.com/kind": "text"},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Hello", [text_message("Hello")]),
        (user("Hello"), [text_message("Hello")]),
        (assistant("Yes?"), [text_message("Yes?", "assistant")]),
        (
            ["Hello", assistant("Yes?"), content.image(b"x", "image/png")],
            [
                text_message("Hello"),
                text_message("Yes?", "assistant"),
                {"role": "user", "content": content.image(b"x", "image/png")},
            ],
        ),
        (
            (assistant(content.resource_link("a:b", "b")),),
            [{"role": "assistant", "content": content.resource_link("a:b", "b")}],
        ),
        ([], []),
    ],
)
def test_return_values_become_messages(value: Any, expected: list[dict[str, Any]]) -> None:
    assert messages(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        {"role": "user", "content": "text"},
        {"type": "text"},
        [["Hello"]],
        Message("system", "Hello"),
        user({"type": "video", "data": "", "mimeType": "video/mp4"}),
    ],
)
def test_a_malformed_message_is_an_error(value: Any) -> None:
    with pytest.raises(ValueError, match="message"):
        messages(value)


def test_the_docstring_describes_what_comes_back() -> None:
    def greet() -> str:
        """Say hello."""
        return "Hello"

    result = declared(greet).get({}, TaskContext())
    assert result == {"description": "Say hello.", "messages": [text_message("Hello")]}


def plan(
    task: TaskContext, days: int, start: date, tone: Tone = Tone.KIND, loud: bool = False
) -> str:
    return repr((days, start, tone, loud, task.task_id))


def test_texts_become_the_parameters_types() -> None:
    """prompts.mdx: every argument is a string."""
    found = declared(plan)
    texts = {"days": "3", "start": "2026-01-02", "tone": "firm", "loud": "true"}
    (message,) = found.get(found.check_arguments(texts), TaskContext())["messages"]
    assert message["content"]["text"] == repr((3, date(2026, 1, 2), Tone.FIRM, True, None))


def test_an_argument_that_is_not_required_has_its_default() -> None:
    values = declared(plan).check_arguments({"days": "3", "start": "2026-01-02"})
    assert (values["tone"], values["loud"]) == (Tone.KIND, False)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"start": "2026-01-02"}, "days"),
        ({"days": "many", "start": "2026-01-02"}, "days"),
        ({"days": "3", "start": "soon"}, "start"),
        ({"days": "3", "start": "2026-01-02", "tone": "rude"}, "tone"),
        ({"days": "3", "start": "2026-01-02", "extra": "x"}, "extra"),
        ({"days": "3", "start": "2026-01-02", "task": "x"}, "task"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidArguments, match=named):
        declared(plan).check_arguments(arguments)


def test_the_message_does_not_quote_the_argument() -> None:
    with pytest.raises(InvalidArguments) as caught:
        declared(plan).check_arguments({"days": "hunter2", "start": "hunter3", "tone": "hunter4"})
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "function", [lambda code: code, lambda *parts: "", lambda **parts: ""], ids=["bare", "*", "**"]
)
def test_a_function_that_no_client_could_call_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="parameter"):
        prompt(function)


def test_a_completion_for_no_argument_is_refused() -> None:
    with pytest.raises(ValueError, match="language"):
        prompt(complete={"language": ["en"]})(plan)
