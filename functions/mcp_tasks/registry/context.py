"""What a function may do while it runs: report, log, and ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from ..protocol.notifications import LogLevel
from ..tasks.forms import InvalidAnswer
from ..tasks.questions import Kind, Question
from .asking import AskForm, AskModel, AskRoots, AskUrl, Completion, Request, Root

Form = TypeVar("Form", bound=BaseModel)


class InputRequired(BaseException):
    """Ends a function that asks for what is not answered yet; the function will run again.

    Not an Exception, so that a tool's own `except Exception` does not swallow the question.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__()
        self.questions = dict(questions)


class TaskCancelled(BaseException):
    """Ends a function whose task is over: nobody waits for its result any more."""


def _unheard(*_: Any) -> None:
    """Where reports go that nobody reads."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """A function's view of its own run, in a tool, a prompt or a resource alike. Declare a
    parameter of this type to get it.

    `TaskContext()` is one for tests: `task_id` is None, reports go nowhere, and `ask` finds only
    `answers`, for instance `{"answer": {"action": "accept", "content": {...}}}`.
    """

    task_id: str | None = None
    """None within a request."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    client_can: frozenset[str] = frozenset(Kind)
    """What the client can be asked for: "form", "url", "sampling", "roots"."""
    on_report: Callable[[str, float | None], None] = _unheard
    on_log: Callable[[str, Any, str | None], None] = _unheard
    taken: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)
    """The answers that the function has asked for and got so far, by key."""
    asked: dict[str, Question] = field(default_factory=dict, init=False)
    """What the function has asked for so far."""

    def report(self, message: str, progress: float | None = None) -> None:
        """Tell the client how far the work is. `progress` is a fraction from 0 to 1.

        A task's client reads it as the statusMessage, which costs one write; when the task was
        cancelled, this is where the function ends. Within a request it is a progress notification,
        if the client asked for them.
        """
        self.on_report(message, progress)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it asked for messages of this level.

        `data` is any JSON value, without secrets. Only within a request: tasks have no channel for
        log messages, and theirs are dropped (tasks.md, "Task Status Notifications").
        """
        self.on_log(level, data, logger)

    def ask(self, message: str, form: type[Form], *, key: str = "answer") -> Form:
        """Ask the client's user to fill in a form, and return it filled in.

        `form` is a flat pydantic model of strings, numbers, booleans and enums. The first call ends
        the function; it runs again from its beginning once there is an answer, so ask before you
        change anything, and give each question of a function its own `key`.

        Raises InputDeclined, and InvalidQuestion for a form that elicitation cannot carry.
        """
        answer: Form = self.ask_all({key: AskForm(message, form)})[key]
        return answer

    def ask_url(self, message: str, url: str, *, key: str = "page") -> None:
        """Ask the client's user to visit a page; returns when they agreed to. See AskUrl.

        Raises InputDeclined.
        """
        self.ask_all({key: AskUrl(message, url)})

    def ask_model(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        key: str = "completion",
    ) -> Completion:
        """Ask the client's model to write something. AskModel takes more parameters."""
        request = AskModel(prompt, max_tokens, system_prompt)
        completion: Completion = self.ask_all({key: request})[key]
        return completion

    def ask_roots(self, *, key: str = "roots") -> list[Root]:
        """Ask the client which directories servers may work in."""
        roots: list[Root] = self.ask_all({key: AskRoots()})[key]
        return roots

    def ask_all(self, requests: Mapping[str, Request[Any]]) -> dict[str, Any]:
        """Ask for several things at once, by key; the client may answer in any order.

        Returns what each request's `value` makes of its answer, by key. Raises as they do.
        """
        questions = {key: request.question() for key, request in requests.items()}
        for key, question in questions.items():
            # Otherwise the answer to the first would be taken for one to the second.
            if self.asked.setdefault(key, question) != question:
                raise ValueError(f"two questions have the key {key!r}; give each its own")
        answers = {key: self._answer(key, question) for key, question in questions.items()}
        missing = {key: questions[key] for key, answer in answers.items() if answer is None}
        if missing:
            raise InputRequired(missing)
        return {
            key: requests[key].value(answer)
            for key, answer in answers.items()
            if answer is not None
        }

    def _answer(self, key: str, question: Question) -> dict[str, Any] | None:
        if key not in self.answers:
            return None
        try:
            self.taken[key] = question.check(key, self.answers[key])
        except InvalidAnswer:
            # mrtr.mdx, "Error Handling": what cannot be used is asked for again.
            return None
        return self.taken[key]
