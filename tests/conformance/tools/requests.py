"""What the conformance suite's scenarios of the handshake revisions expect to be asked."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mcp_tasks import TaskContext, resource, tool

Option = Literal["option1", "option2", "option3"]


class User(BaseModel):
    """A person."""

    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


class Defaults(BaseModel):
    """A form with a default for each kind of field."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def titled(*titles: str) -> list[dict[str, str]]:
    """The values value1, value2, ..., each with a title."""
    return [{"const": f"value{n}", "title": title} for n, title in enumerate(titles, 1)]


def keywords(**added: Any) -> Any:
    """A field with keywords of JSON Schema that its type does not give it."""
    return Field(json_schema_extra=added)


class Choices(BaseModel):
    """A form with each kind of choice (SEP-1330)."""

    untitledSingle: Option
    titledSingle: Annotated[str, keywords(oneOf=titled("First Option", "Second Option"))]
    legacyEnum: Annotated[
        str, keywords(enum=["opt1", "opt2"], enumNames=["Option One", "Option Two"])
    ]
    untitledMulti: list[Option]
    titledMulti: Annotated[
        list[str], keywords(items={"anyOf": titled("First Choice", "Second Choice")})
    ]


@tool
def test_sampling(task: TaskContext, prompt: str) -> str:
    """Ask the client's model."""
    return f"LLM response: {task.ask_model(prompt, max_tokens=100).text}"


@tool
def test_elicitation(task: TaskContext, message: str) -> str:
    """Ask who the user is."""
    return f"User response: {task.ask(message, User).model_dump()}"


@tool
def test_elicitation_sep1034_defaults(task: TaskContext) -> str:
    """Ask with defaults."""
    answer = task.ask("Please check the defaults", Defaults)
    return f"Elicitation completed: action=accept, content={answer.model_dump()}"


@tool
def test_elicitation_sep1330_enums(task: TaskContext) -> str:
    """Ask for choices."""
    answer = task.ask("Please choose", Choices)
    return f"Elicitation completed: action=accept, content={answer.model_dump()}"


@tool(task="optional", timeout=timedelta(seconds=90))
def test_reconnection() -> str:
    """Take a moment, on a stream that can be resumed, since it might have taken longer."""
    time.sleep(0.5)
    return "Reconnection test completed"


@resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """Something to subscribe to."""
    return "Watched"
