"""What an author's function may ask the client for, and what it gets back.

An InputRequest makes the question that the client is asked, and turns the answer into the value
that the function gets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..tasks.questions import (
    FormQuestion,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    is_refused,
)
from .schema import requested_schema

Value = TypeVar("Value")
Form = TypeVar("Form", bound=BaseModel)


class ToolError(Exception):
    """The tool could not do what it was called for. The message is for the caller, often a model.

    In a tool it becomes a result with `isError: true`, and no failed task (tools.mdx, "Error
    Handling"). In a prompt or a resource it becomes the message of a JSON-RPC error. Any other
    exception is a crash, and its message does not leave the server.
    """


class InputDeclined(ToolError):
    """The user declined or dismissed the question: `action` is "decline" or "cancel".

    It is a ToolError, and ends the call like one. Catch it to go on without the answer.
    """

    def __init__(self, message: str, action: str) -> None:
        super().__init__(f"No answer to: {message} ({action})")
        self.action = action


class InputRequest(ABC, Generic[Value]):
    """One thing to ask the client for. `TaskContext.ask_all` takes several of them."""

    @abstractmethod
    def question(self) -> Question:
        """What the client is asked."""

    @abstractmethod
    def value(self, answer: Mapping[str, Any]) -> Value:
        """The value that the function gets. `answer` fits the question."""


@dataclass(frozen=True, slots=True)
class AskForm(InputRequest[Form]):
    """The client's user fills in a form: a flat pydantic model of strings, numbers, booleans and
    enums (elicitation.mdx, "Form Mode Elicitation Requests"). Not for secrets.
    """

    message: str
    form: type[Form]

    def question(self) -> Question:
        """The form as a question. Raises InvalidQuestion when elicitation cannot carry it."""
        return FormQuestion(self.message, requested_schema(self.form))

    def value(self, answer: Mapping[str, Any]) -> Form:
        """The filled-in form.

        Raises InputDeclined, and ToolError when the answer breaks a rule of the model that its JSON
        Schema cannot express.
        """
        _accepted(self.message, answer)
        try:
            return self.form.model_validate(answer["content"])
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, e["loc"])) or "form" for e in error.errors())
            raise ToolError(f"The answer to {self.message!r} has invalid fields: {wrong}") from None


@dataclass(frozen=True, slots=True)
class AskUrl(InputRequest[None]):
    """The client's user visits a page, for input that must not pass through the client: passwords,
    keys, payments (elicitation.mdx, "URL Mode Elicitation Requests").

    An accepted answer means that the user agreed to visit the page, not that anything was done
    there. The page has to report to the server, which has to check that it was the same user.
    """

    message: str
    url: str

    def question(self) -> Question:
        """The page and the reason to visit it, as a question."""
        return UrlQuestion(self.message, self.url)

    def value(self, answer: Mapping[str, Any]) -> None:
        """Return nothing, or raise InputDeclined."""
        _accepted(self.message, answer)


@dataclass(frozen=True, slots=True)
class Completion:
    """The message that the client's model wrote."""

    content: Any
    """One content block, or a list of them."""
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks of the content, joined."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        texts = (block.get("text") for block in blocks if isinstance(block, Mapping))
        return "".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True)
class AskModel(InputRequest[Completion]):
    """The client's model writes something (sampling.mdx, "Creating Messages").

    `prompt` is the user's message, or a whole conversation as sampling messages. `more` holds
    further parameters by their names in the specification, such as `modelPreferences`.
    """

    prompt: str | Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system_prompt: str | None = None
    temperature: float | None = None
    more: Mapping[str, Any] | None = None

    def question(self) -> Question:
        """The parameters of `sampling/createMessage`, as a question."""
        params: dict[str, Any] = {
            "messages": [{"role": "user", "content": {"type": "text", "text": self.prompt}}]
            if isinstance(self.prompt, str)
            else [dict(message) for message in self.prompt],
            "maxTokens": self.max_tokens,
            "systemPrompt": self.system_prompt,
            "temperature": self.temperature,
            **(self.more or {}),
        }
        return SamplingQuestion({k: v for k, v in params.items() if v is not None})

    def value(self, answer: Mapping[str, Any]) -> Completion:
        """The completion, or raise InputDeclined."""
        _answered("sampling/createMessage", answer)
        return Completion(answer["content"], answer["model"], answer.get("stopReason"))


@dataclass(frozen=True, slots=True)
class Root:
    """A directory of the client (roots.mdx, "Root")."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class AskRoots(InputRequest[list[Root]]):
    """The client lists the directories that servers may work in (roots.mdx, "Listing Roots")."""

    def question(self) -> Question:
        """The question, which has no parameters."""
        return RootsQuestion()

    def value(self, answer: Mapping[str, Any]) -> list[Root]:
        """The roots; an empty list when the client has none. Raises InputDeclined."""
        _answered("roots/list", answer)
        return [Root(root["uri"], root.get("name")) for root in answer["roots"]]


def _answered(method: str, answer: Mapping[str, Any]) -> None:
    if is_refused(answer):
        raise InputDeclined(method, answer["action"])


def _accepted(message: str, answer: Mapping[str, Any]) -> None:
    if answer["action"] != "accept":
        raise InputDeclined(message, answer["action"])
