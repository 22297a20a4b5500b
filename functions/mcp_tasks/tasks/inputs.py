"""What a task asks its client, and what the client answers (tasks.md, "Task Update Requests").

A workflow asks through one state that waits on one Step Functions task token; that is an *ask*. It
may hold several questions, each with a key of its own, and resumes when all are answered. Several
asks may be open at once, from parallel branches.

Keys are unique over the task's life without any bookkeeping: the ask's id is a hash of its token,
and each key carries it. A redelivered ask therefore has the same keys, and a new one never does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .forms import InvalidAnswer, InvalidQuestion, check_content

ACTIONS: Final = frozenset({"accept", "decline", "cancel"})
"""What a person may do with a form (elicitation.mdx, "Response Actions")."""


@dataclass(frozen=True, slots=True)
class Question:
    """A form for a person: a message, and the flat JSON Schema of the values wanted."""

    message: str
    schema: dict[str, Any]

    def check(self, key: str, answer: object) -> dict[str, Any]:
        """The answer as it is passed on: `action`, and `content` when it was accepted.

        Raises InvalidAnswer when the shape is wrong or accepted content breaks the schema.
        """
        action = answer.get("action") if isinstance(answer, Mapping) else None
        if not isinstance(answer, Mapping) or not isinstance(action, str) or action not in ACTIONS:
            raise InvalidAnswer(f"{key}: an answer needs an action: accept, decline or cancel")
        if action != "accept":
            return {"action": action}
        try:
            check_content(self.schema, answer.get("content"))
        except InvalidAnswer as error:
            raise InvalidAnswer(f"{key}: {error}") from None
        return {"action": "accept", "content": answer["content"]}


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

    @property
    def outstanding(self) -> dict[str, Question]:
        """The questions that nobody has answered yet."""
        return {key: q for key, q in self.questions.items() if key not in self.answers}

    def output(self) -> dict[str, dict[str, Any]]:
        """What the waiting state receives: the answers by the workflow's own names."""
        return {self.names[key]: answer for key, answer in self.answers.items()}


def open_ask(token: str, questions: Mapping[str, Question]) -> Ask:
    """Give an ask its id and its keys.

    Raises InvalidQuestion when there is nothing to ask or a name is empty.
    """
    if not questions:
        raise InvalidQuestion("an ask needs at least one question")
    if not all(questions):
        raise InvalidQuestion("a question needs a name")
    ask_id = hashlib.sha256(token.encode()).hexdigest()[:12]
    names = {f"{name}-{ask_id}": name for name in questions}
    return Ask(ask_id, token, names, {key: questions[name] for key, name in names.items()})
