"""What a function may ask the client for, and what it gets back.

Each request says two things: the question that goes out, and the value that its answer becomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..tasks.questions import FormQuestion, Question, RootsQuestion, SamplingQuestion, UrlQuestion
from .schema import requested_schema

Value = TypeVar("Value")
Form = TypeVar("Form", bound=BaseModel)


class ToolError(Exception):
    """The tool could not do what was asked; the message is for the caller, who may be a model.

    It becomes a tool result with `isError: true`, never a failed task (tools.mdx, "Error
    Handling"); in a prompt or a resource, the message of a JSON-RPC error. Any other exception is a
    crash, and its message stays on the server.
    """


class InputDeclined(ToolError):
    """The person declined to answer, or dismissed the question (`action` says which).

    Unhandled, it ends the tool call as a ToolError does; catch it to go on without the answer.
    """

    def __init__(self, message: str, action: str) -> None:
        super().__init__(f"No answer to: {message} ({action})")
        self.action = action


class Request(ABC, Generic[Value]):
    """One thing to ask the client for; give several to `TaskContext.ask_all`."""

    @abstractmethod
    def question(self) -> Question:
        """What the client is asked."""

    @abstractmethod
    def value(self, answer: Mapping[str, Any]) -> Value:
        """What the function gets of an answer that fits the question."""


@dataclass(frozen=True, slots=True)
class AskForm(Request[Form]):
    """The client's user fills in a form: a flat pydantic model of strings, numbers, booleans and
    enums (elicitation.mdx, "Form Mode Elicitation Requests"). Not for secrets.
    """

    message: str
    form: type[Form]

    def question(self) -> Question:
        """Raises InvalidQuestion for a form that elicitation cannot carry."""
        return FormQuestion(self.message, requested_schema(self.form))

    def value(self, answer: Mapping[str, Any]) -> Form:
        """Raises InputDeclined, and ToolError when the form breaks rules its schema cannot show."""
        _accepted(self.message, answer)
        try:
            return self.form.model_validate(answer["content"])
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, e["loc"])) or "form" for e in error.errors())
            raise ToolError(f"The answer to {self.message!r} is not usable: {wrong}") from None


@dataclass(frozen=True, slots=True)
class AskUrl(Request[None]):
    """The client's user visits a page, for what must not pass through the client: passwords, keys,
    payments (elicitation.mdx, "URL Mode Elicitation Requests").

    An accepted answer means that the user agreed to go there, not that anything was done there:
    the page has to tell the server, and the server has to check that it was the same user.
    """

    message: str
    url: str

    def question(self) -> Question:
        """Where to go, and why."""
        return UrlQuestion(self.message, self.url)

    def value(self, answer: Mapping[str, Any]) -> None:
        """Raises InputDeclined."""
        _accepted(self.message, answer)


@dataclass(frozen=True, slots=True)
class Completion:
    """What the client's model wrote."""

    content: Any
    """One content block, or a list of them."""
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text of the content, without what is not text."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        texts = (block.get("text") for block in blocks if isinstance(block, Mapping))
        return "".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True)
class AskModel(Request[Completion]):
    """The client's model writes something (sampling.mdx, "Creating Messages").

    `prompt` is the user's message, or the whole conversation as sampling messages. `more` holds
    further parameters by their names in the specification: `modelPreferences`, `stopSequences`...
    """

    prompt: str | Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system_prompt: str | None = None
    temperature: float | None = None
    more: Mapping[str, Any] | None = None

    def question(self) -> Question:
        """The parameters of `sampling/createMessage`."""
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
        """The completion."""
        return Completion(answer["content"], answer["model"], answer.get("stopReason"))


@dataclass(frozen=True, slots=True)
class Root:
    """A directory of the client's (roots.mdx, "Root")."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class AskRoots(Request[list[Root]]):
    """The client lists the directories that servers may work in (roots.mdx, "Listing Roots")."""

    def question(self) -> Question:
        """There is nothing to say."""
        return RootsQuestion()

    def value(self, answer: Mapping[str, Any]) -> list[Root]:
        """The roots, perhaps none."""
        return [Root(root["uri"], root.get("name")) for root in answer["roots"]]


def _accepted(message: str, answer: Mapping[str, Any]) -> None:
    if answer["action"] != "accept":
        raise InputDeclined(message, answer["action"])
