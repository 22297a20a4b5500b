"""Questions to a client, and its answers (mrtr.mdx, "InputRequests"; tasks.md, "Task Update
Requests").

A question is asked by a task, or within a multi round-trip request. A state of a workflow asks
while it waits on a Step Functions task token; that is an *ask*. An ask may have several questions,
each with its own key, and its state goes on when all are answered. Parallel branches may have
several asks open at once.

Keys are unique over the task's life without any bookkeeping: the ask's id is a hash of its token,
and is part of each key. An ask that is delivered twice has the same keys; a new ask has others.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final

from .forms import InvalidAnswer, InvalidQuestion, check_content

ACTIONS: Final = frozenset({"accept", "decline", "cancel"})
"""What a person may do with a question (elicitation.mdx, "Response Actions")."""

CONTENT: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
}
"""The members of a completion's content, by its type (sampling.mdx, "Message Content")."""

REFUSALS: Final = frozenset({"decline", "cancel"})
"""The actions without an answer. The specification has them for forms and pages. The other kinds
take them too: a person may also refuse to let the model write, and a client has to say so."""

MAX_ANSWER_CHARACTERS: Final = 50_000
"""Of one answer, as JSON."""

MAX_ANSWERS_CHARACTERS: Final = 100_000
"""Of all answers that a task holds: they have to fit into its row, beside its input."""


class Kind(StrEnum):
    """What a client can be asked for. It declares on every request which of them it can answer."""

    FORM = "form"
    URL = "url"
    SAMPLING = "sampling"
    ROOTS = "roots"


class Question(ABC):
    """One thing that a client is asked for."""

    kind: ClassVar[Kind]

    def check(self, key: str, answer: object) -> dict[str, Any]:
        """The answer as it is delivered, without members that were not asked for.

        Raises InvalidAnswer when it does not match the question; the message names the key.
        """
        if len(json.dumps(answer)) > MAX_ANSWER_CHARACTERS:
            raise InvalidAnswer(f"{key}: an answer has at most {MAX_ANSWER_CHARACTERS} characters")
        try:
            return self._checked(answer if isinstance(answer, Mapping) else {})
        except InvalidAnswer as error:
            raise InvalidAnswer(f"{key}: {error}") from None

    @abstractmethod
    def _checked(self, answer: Mapping[str, Any]) -> dict[str, Any]: ...

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """The question as a workflow writes it, and as a row keeps it; `question` reads it."""


@dataclass(frozen=True, slots=True)
class FormQuestion(Question):
    """A form for a person: a message, and the flat JSON Schema of the values wanted."""

    kind: ClassVar[Kind] = Kind.FORM
    message: str
    schema: dict[str, Any]

    def _checked(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        action = _action(answer)
        if action != "accept":
            return {"action": action}
        content: Any = answer.get("content")
        check_content(self.schema, content)
        # The schema allows other members (elicitation.mdx has no additionalProperties). Clients may
        # send some, but nobody was asked for them.
        fields = self.schema["properties"]
        return {"action": "accept", "content": {k: v for k, v in content.items() if k in fields}}

    def as_json(self) -> dict[str, Any]:
        """`{"message": ..., "schema": ...}`."""
        return {"message": self.message, "schema": self.schema}


@dataclass(frozen=True, slots=True)
class UrlQuestion(Question):
    """A page for a person to visit; the client does not see what is done there."""

    kind: ClassVar[Kind] = Kind.URL
    message: str
    url: str

    def _checked(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {"action": _action(answer)}

    def as_json(self) -> dict[str, Any]:
        """`{"message": ..., "url": ...}`."""
        return {"message": self.message, "url": self.url}


@dataclass(frozen=True, slots=True)
class SamplingQuestion(Question):
    """A completion by the client's model; `params` are those of `sampling/createMessage`."""

    kind: ClassVar[Kind] = Kind.SAMPLING
    params: dict[str, Any]

    def __post_init__(self) -> None:
        """Raises InvalidQuestion for what needs a capability beyond sampling itself."""
        context = self.params.get("includeContext", "none")
        if "tools" in self.params or "toolChoice" in self.params or context != "none":
            raise InvalidQuestion("sampling with tools or with context is not supported")

    def _checked(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        content = answer.get("content")
        if content is None and is_refused(answer):
            return {"action": answer["action"]}
        blocks = [
            {name: block[name] for name in ("type", *CONTENT[block["type"]]) if name in block}
            for block in (content if isinstance(content, list) else [content])
            if isinstance(block, Mapping) and str(block.get("type")) in CONTENT
        ]
        if not blocks and content != []:
            raise InvalidAnswer(f"a completion has content of type {', '.join(CONTENT)}")
        if not all(isinstance(answer.get(name), str) for name in ("role", "model")):
            raise InvalidAnswer("a completion has a role and a model")
        if not isinstance(answer.get("stopReason", ""), str):
            raise InvalidAnswer("a completion's stopReason is text")
        members = {name: answer[name] for name in ("role", "model", "stopReason") if name in answer}
        return {**members, "content": blocks if isinstance(content, list) else blocks[0]}

    def as_json(self) -> dict[str, Any]:
        """`{"sampling": {"messages": [...], "maxTokens": ...}}`."""
        return {"sampling": self.params}


@dataclass(frozen=True, slots=True)
class RootsQuestion(Question):
    """The directories that the client lets its servers work in."""

    kind: ClassVar[Kind] = Kind.ROOTS

    def _checked(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        roots = answer.get("roots")
        if roots is None and is_refused(answer):
            return {"action": answer["action"]}
        if not isinstance(roots, list) or not all(
            isinstance(root, Mapping)
            and isinstance(root.get("uri"), str)
            and isinstance(root.get("name", ""), str)
            for root in roots
        ):
            raise InvalidAnswer("roots is a list of objects with a uri")
        return {"roots": [{k: root[k] for k in ("uri", "name") if k in root} for root in roots]}

    def as_json(self) -> dict[str, Any]:
        """`{"roots": {}}`."""
        return {"roots": {}}


def question(data: object) -> Question:
    """Read what `as_json` writes. A form's schema is taken as it is: `check_form` looks into it.

    Raises InvalidQuestion for anything else, which a workflow may have written.
    """
    match data:
        case {"message": str(message), "schema": dict(schema)}:
            return FormQuestion(message, schema)
        case {"message": str(message), "url": str(url)} if "://" in url:
            return UrlQuestion(message, url)
        case {"sampling": {"messages": [_, *_], "maxTokens": int()} as params}:
            return SamplingQuestion(params)
        case {"roots": _}:
            return RootsQuestion()
    raise InvalidQuestion(
        "a question has a message and a schema, a message and a url, sampling, or roots"
    )


@dataclass(frozen=True, slots=True)
class Ask:
    """One waiting state of the workflow: its token, its questions, and the answers so far.

    All are keyed by wire key. `names` leads back to the names that the workflow gave.
    """

    id: str
    token: str
    names: dict[str, str]
    questions: dict[str, Question]
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    max_output_bytes: int | None = None
    """The limit of the state's output, where MAX_ANSWERS_CHARACTERS are too many."""

    @property
    def outstanding(self) -> dict[str, Question]:
        """The questions that are not answered yet."""
        return {key: q for key, q in self.questions.items() if key not in self.answers}

    def take(self, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The answers to outstanding questions, by key; other members of `given` are ignored.

        Raises InvalidAnswer.
        """
        return {
            key: q.check(key, given[key]) for key, q in self.outstanding.items() if key in given
        }

    def output(self) -> dict[str, dict[str, Any]]:
        """What the waiting state receives: the answers by the workflow's own names."""
        return {self.names[key]: answer for key, answer in self.answers.items()}


def open_ask(
    token: str, questions: Mapping[str, Question], max_output_bytes: int | None = None
) -> Ask:
    """Give an ask its id and its keys.

    Raises InvalidQuestion when there is nothing to ask or a name is empty.
    """
    if not questions:
        raise InvalidQuestion("an ask needs at least one question")
    if not all(questions):
        raise InvalidQuestion("a question needs a name")
    ask_id = hashlib.sha256(token.encode()).hexdigest()[:12]
    names = {f"{name}-{ask_id}": name for name in questions}
    asked = {key: questions[name] for key, name in names.items()}
    return Ask(ask_id, token, names, asked, max_output_bytes=max_output_bytes)


def check_size(answers: Iterable[Mapping[str, Any]]) -> None:
    """Raises InvalidAnswer when these answers together are too large for a task's row."""
    if len(json.dumps(list(answers))) > MAX_ANSWERS_CHARACTERS:
        raise InvalidAnswer(
            f"this task: all together have more than {MAX_ANSWERS_CHARACTERS} characters"
        )


def kinds(questions: Iterable[Question]) -> frozenset[Kind]:
    """The kinds of these questions: what a client must have declared to be asked all of them."""
    return frozenset(question.kind for question in questions)


def is_refused(answer: Mapping[str, Any]) -> bool:
    """Whether an answer says that nobody answers the question."""
    action = answer.get("action")
    return isinstance(action, str) and action in REFUSALS


def _action(answer: Mapping[str, Any]) -> str:
    action = answer.get("action")
    if not isinstance(action, str) or action not in ACTIONS:
        raise InvalidAnswer("an answer needs an action: accept, decline or cancel")
    return action
