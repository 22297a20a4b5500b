"""What an author's function may do while it runs: report progress, log, and ask the client."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from ..protocol.notifications import LogLevel
from ..tasks.forms import InvalidAnswer
from ..tasks.questions import Kind, Question
from .asking import AskForm, AskModel, AskRoots, AskUrl, Completion, InputRequest, Root
from .async_durable_calls import AsyncDurableCalls
from .durable_calls import DurableCalls
from .durable_errors import NeedsTask
from .durable_operations import Operations

Form = TypeVar("Form", bound=BaseModel)


class InputRequired(BaseException):
    """Ends a function that asks a question without an answer yet. The function will run again.

    It is no Exception, so a tool's own `except Exception` does not catch it.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__()
        self.questions = dict(questions)


class TaskCancelled(BaseException):
    """Ends a function whose task is terminal, because its result would be discarded."""


def _discard(*_: Any) -> None:
    """Drop a report or a log message."""


@dataclass(frozen=True, slots=True)
class Context:
    """What TaskContext and AsyncTaskContext have in common."""

    task_id: str | None = None
    """None when the function runs within a request."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The client's answers, by the key of their question."""
    client_can: frozenset[str] = frozenset(Kind)
    """The kinds of questions that the client supports: "form", "url", "sampling", "roots"."""
    on_report: Callable[[str, float | None], None] = _discard
    on_log: Callable[[str, Any, str | None], None] = _discard
    on_resource_changed: Callable[[str], None] = _discard
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values of the tool's secrets, by the names that it declares."""
    used_answers: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    """The answers that the function has asked for and got so far, by key."""
    asked: dict[str, Question] = field(default_factory=dict, repr=False)
    """The questions that the function has asked so far, by key."""
    operations: Operations | None = field(default=None, repr=False)
    """The durable operations of a tool that runs as a task."""

    def of(self, function: Callable[..., Any]) -> TaskContext | AsyncTaskContext:
        """The context for a function of the same run: one whose questions are awaited, if the
        function is `async def`."""
        kind = AsyncTaskContext if inspect.iscoroutinefunction(function) else TaskContext
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)})

    def report(self, message: str, progress: float | None = None) -> None:
        """Report to the client how far the work is. `progress` is a fraction from 0 to 1.

        In a task, the message becomes the `statusMessage`, at the cost of one write. When the task
        is terminal, this call ends the function by raising TaskCancelled. Within a request, the
        message becomes a progress notification, if the client asked for them. What a tool reports
        again in a later run, before an operation that is done, is left out.
        """
        if self.operations is None or self.operations.has_news():
            self.on_report(message, progress)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it asked for messages of this level.

        `data` is any JSON value, without secrets. Tasks have no channel for log messages, so the
        log messages of a task are dropped (tasks.md, "Task Status Notifications").
        """
        self.on_log(level, data, logger)

    def resource_changed(self, uri: str) -> None:
        """Tell the clients that have subscribed to a resource that it has changed: they get
        `notifications/resources/updated`, and may read it again (resources.mdx, "Subscriptions").

        `uri` is the resource's, or one that its template matches.
        """
        if self.operations is None or self.operations.has_news():
            self.on_resource_changed(uri)

    def secret(self, name: str) -> str:
        """The value of a secret that the tool declares: `@tool(secrets={"API_KEY": "..."})`.

        It is read when it is asked for, and again after five minutes. Ask for it each time, and
        neither return it nor report it.

        Raises LookupError for a name that is not declared. Raises SecretUnavailable for a secret
        that cannot be read: the task fails, and the log says which it was and what to do.
        """
        try:
            return self.secrets[name]
        except KeyError:
            raise LookupError(f"{name} is not among the tool's secrets; declare it there") from None

    def _ask_all(self, requests: Mapping[str, InputRequest[Any]]) -> dict[str, Any]:
        """The values of the answers. Raises InputRequired."""
        if self.operations is not None and self.operations.in_step:
            raise NeedsTask("ask")
        questions = {key: request.question() for key, request in requests.items()}
        for key, question in questions.items():
            # With one key, the answer to the first question would be used for the second.
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
            self.used_answers[key] = question.check(key, self.answers[key])
        except InvalidAnswer:
            # An unusable answer is asked for again (mrtr.mdx, "Error Handling").
            return None
        if self.operations is not None:
            self.operations.answered(key, self.used_answers[key])
        return self.used_answers[key]


@dataclass(frozen=True, slots=True)
class TaskContext(DurableCalls, Context):
    """What a tool, a prompt or a resource gets for a parameter of this type: its own run.

    Tests make one themselves. In `TaskContext()`, `task_id` is None, reports and log messages are
    dropped, and `ask` finds no answers. `TaskContext(answers={"answer": {"action": "accept",
    "content": {...}}})` has the answer to a question.
    """

    def ask(self, message: str, form: type[Form], *, key: str = "answer") -> Form:
        """Ask the client's user to fill in a form, and return it filled in.

        `form` is a flat pydantic model of strings, numbers, booleans and enums. The first call ends
        the function, which runs again from its beginning when there is an answer. So ask before you
        change anything, and give each question of a function its own `key`.

        Raises InputDeclined, and InvalidQuestion for a form that elicitation cannot carry.
        """
        answer: Form = self._ask_all({key: AskForm(message, form)})[key]
        return answer

    def ask_url(self, message: str, url: str, *, key: str = "page") -> None:
        """Ask the client's user to visit a page. Returns when the user agreed to. See AskUrl.

        Raises InputDeclined.
        """
        self._ask_all({key: AskUrl(message, url)})

    def ask_model(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        key: str = "completion",
    ) -> Completion:
        """Ask the client's model to write something. AskModel takes more parameters.

        Raises InputDeclined.
        """
        request = AskModel(prompt, max_tokens, system_prompt)
        completion: Completion = self._ask_all({key: request})[key]
        return completion

    def ask_roots(self, *, key: str = "roots") -> list[Root]:
        """Ask the client which directories servers may work in. Raises InputDeclined."""
        roots: list[Root] = self._ask_all({key: AskRoots()})[key]
        return roots

    def ask_all(self, requests: Mapping[str, InputRequest[Any]]) -> dict[str, Any]:
        """Ask several questions at once, by key. The client may answer them in any order.

        Returns the value of each answer, by key. Raises what the requests' `question` and `value`
        raise, and ValueError when two different questions have one key.
        """
        return self._ask_all(requests)


@dataclass(frozen=True, slots=True)
class AsyncTaskContext(AsyncDurableCalls, Context):
    """The TaskContext of an `async def`: its questions are awaited, `await task.ask(...)`.

    A function that asks ends at the question, and runs again from its beginning when there is an
    answer. So do not ask in several coroutines at once: `ask_all` asks several questions.
    """

    async def ask(self, message: str, form: type[Form], *, key: str = "answer") -> Form:
        """Ask the client's user to fill in a form; see TaskContext.ask."""
        answer: Form = self._ask_all({key: AskForm(message, form)})[key]
        return answer

    async def ask_url(self, message: str, url: str, *, key: str = "page") -> None:
        """Ask the client's user to visit a page; see TaskContext.ask_url."""
        self._ask_all({key: AskUrl(message, url)})

    async def ask_model(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        key: str = "completion",
    ) -> Completion:
        """Ask the client's model to write something; see TaskContext.ask_model."""
        request = AskModel(prompt, max_tokens, system_prompt)
        completion: Completion = self._ask_all({key: request})[key]
        return completion

    async def ask_roots(self, *, key: str = "roots") -> list[Root]:
        """Ask the client which directories servers may work in; see TaskContext.ask_roots."""
        roots: list[Root] = self._ask_all({key: AskRoots()})[key]
        return roots

    async def ask_all(self, requests: Mapping[str, InputRequest[Any]]) -> dict[str, Any]:
        """Ask several questions at once, by key; see TaskContext.ask_all."""
        return self._ask_all(requests)


CONTEXTS: Final = (TaskContext, AsyncTaskContext)
"""The types of a parameter that takes the context."""
