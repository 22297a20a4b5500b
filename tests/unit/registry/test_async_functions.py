"""Authors' functions as `async def`: every kind of them is run to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_tasks import (
    AskForm,
    AsyncTaskContext,
    InputDeclined,
    TaskContext,
    prompt,
    resource,
    tool,
)
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.step import Step


class Name(BaseModel):
    name: str


ADA = {"answer": {"action": "accept", "content": {"name": "Ada"}}}


def declared(decorator: Callable[..., Any], function: Callable[..., Any]) -> Any:
    return getattr(decorator(function), DECLARATION)


async def greet(task: AsyncTaskContext, greeting: str) -> str:
    """Greet somebody."""
    await asyncio.sleep(0)
    return f"{greeting}, {(await task.ask('Who?', Name)).name}"


async def by_the_other_name(task: TaskContext, greeting: str) -> str:
    """Greet somebody."""
    asked: Any = task.ask("Who?", Name)
    return f"{greeting}, {(await asked).name}"


@pytest.mark.parametrize("function", [greet, by_the_other_name])
def test_a_tool_asks_and_returns(function: Callable[..., Any]) -> None:
    """Whatever the context's type says, an `async def` awaits its questions."""
    declaration = declared(tool, function)
    assert set(declaration.input_schema["properties"]) == {"greeting"}
    with pytest.raises(InputRequired) as required:
        declaration.run({"greeting": "Hello"}, TaskContext())
    assert list(required.value.questions) == ["answer"]
    task = TaskContext(answers=ADA)
    result = declaration.run({"greeting": "Hello"}, task)
    assert result["content"] == [{"type": "text", "text": "Hello, Ada"}]
    assert list(task.used_answers) == ["answer"], "of the run, whichever function has asked"


def test_a_coroutine_sees_that_a_question_was_declined() -> None:
    async def declined(task: AsyncTaskContext) -> str:
        """Ask."""
        try:
            await task.ask("Who?", Name)
        except InputDeclined as error:
            return error.action
        return "answered"

    task = TaskContext(answers={"answer": {"action": "decline"}})
    assert declared(tool, declined).run({}, task)["content"][0]["text"] == "decline"


def test_every_kind_of_question_is_awaited() -> None:
    async def asks(task: AsyncTaskContext) -> str:
        """Ask for everything."""
        name = (await task.ask_all({"answer": AskForm("Who?", Name)}))["answer"]
        await task.ask_url("Pay", "https://pay.example")
        text = (await task.ask_model("A poem")).text
        (root,) = await task.ask_roots()
        return f"{name.name} {text} {root.uri}"

    answers: dict[str, dict[str, Any]] = {
        **ADA,
        "page": {"action": "accept"},
        "completion": {
            "role": "assistant",
            "model": "m",
            "content": {"type": "text", "text": "Roses"},
        },
        "roots": {"roots": [{"uri": "file:///a"}]},
    }
    result = declared(tool, asks).run({}, TaskContext(answers=answers))
    assert result["content"][0]["text"] == "Ada Roses file:///a"


def test_a_context_for_tests_is_made_by_hand() -> None:
    assert asyncio.run(greet(AsyncTaskContext(answers=ADA), "Hello")) == "Hello, Ada"


def test_ask_first_may_be_one_and_the_tool_another() -> None:
    def tool_function(task: TaskContext) -> str:
        """Greet somebody."""
        return task.ask("Who?", Name).name

    async def first(task: AsyncTaskContext) -> None:
        await task.ask("Who?", Name)

    declaration = declared(tool(task="required", ask_first=first), tool_function)
    with pytest.raises(InputRequired):
        declaration.run_ask_first({}, TaskContext())
    declaration.run_ask_first({}, TaskContext(answers=ADA))


def test_a_prompt_and_a_resource_are_awaited() -> None:
    async def review(task: AsyncTaskContext, code: str) -> str:
        return f"Review {code} for {(await task.ask('Who?', Name)).name}"

    async def handbook() -> dict[str, int]:
        return {"pages": 3}

    message = declared(prompt, review).get({"code": "x"}, TaskContext(answers=ADA))["messages"][0]
    assert message["content"]["text"] == "Review x for Ada"
    contents = declared(resource("docs://handbook"), handbook).read(
        "docs://handbook", {}, TaskContext()
    )
    assert contents[0]["text"] == '{"pages": 3}'


def test_a_step_is_awaited_and_its_result_checked() -> None:
    async def double(n: int) -> list[int]:
        return [n, n]

    assert Step.of(double).call({"n": 2}, TaskContext()) == [2, 2]


def test_a_def_takes_no_async_context() -> None:
    def greets(task: AsyncTaskContext) -> str:
        """Greet."""
        return "Hello"

    with pytest.raises(TypeError, match="greets is no async def, and takes a TaskContext"):
        tool(greets)


def test_a_function_that_yields_is_refused() -> None:
    def yields() -> Iterator[int]:
        """Yield."""
        yield 1

    async def yields_later() -> AsyncIterator[int]:
        """Yield."""
        yield 1

    for function in (yields, yields_later):
        with pytest.raises(TypeError, match=f"{function.__name__} yields; return a value instead"):
            tool(function)
