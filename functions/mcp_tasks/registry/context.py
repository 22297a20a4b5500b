"""What a tool may do while it runs: report, and ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from ..tasks.inputs import Question
from .schema import requested_schema

Form = TypeVar("Form", bound=BaseModel)


class ToolError(Exception):
    """The tool could not do what was asked; the message is for the caller, who may be a model.

    It becomes a tool result with `isError: true`, never a failed task (tools.mdx, "Error
    Handling"). Any other exception is a crash, and its message stays on the server.
    """


class InputDeclined(ToolError):
    """The person declined to answer, or dismissed the question (`action` says which).

    Unhandled, it ends the tool call as a ToolError does; catch it to go on without the answer.
    """

    def __init__(self, message: str, action: str) -> None:
        super().__init__(f"No answer to: {message} ({action})")
        self.action = action


class InputRequired(BaseException):
    """Ends a function that asks for what is not answered yet; the function will run again.

    Not an Exception, so that a tool's own `except Exception` does not swallow the question.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__()
        self.questions = dict(questions)


class TaskCancelled(BaseException):
    """Ends a function whose task is over: nobody waits for its result any more."""


def _unheard(message: str) -> None:
    """Where reports go that nobody reads."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """A tool's view of its own run. Declare a parameter of this type to get it.

    `TaskContext()` is one for tests, and for a tool that runs within the request of a client that
    does not know tasks: `task_id` is None, reports go nowhere, and `ask` finds only `answers`, for
    instance `{"answer": {"action": "accept", "content": {...}}}`.
    """

    task_id: str | None = None
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    on_report: Callable[[str], None] = _unheard

    def report(self, message: str, progress: float | None = None) -> None:
        """Tell the client how far the work is; it reads this as the task's statusMessage.

        `progress` is a fraction from 0 to 1. Costs one write. When the task was cancelled, this is
        where the function ends.
        """
        self.on_report(message if progress is None else f"{progress:.0%} {message}")

    def ask(self, message: str, form: type[Form], *, key: str = "answer") -> Form:
        """Ask the client's user to fill in a form, and return it filled in.

        `form` is a flat pydantic model of strings, numbers, booleans and enums. In a task, the
        first call ends the function; it runs again from its beginning once there is an answer, so
        ask before you change anything, and give each question of a function its own `key`.

        Raises InputDeclined, and InvalidQuestion for a form that elicitation cannot carry.
        """
        answers: dict[str, Any] = self.ask_all({key: (message, form)})
        answer: Form = answers[key]
        return answer

    def ask_all(self, questions: Mapping[str, tuple[str, type[BaseModel]]]) -> dict[str, Any]:
        """Ask several questions at once, by key; the client may answer in any order.

        Returns the filled-in forms by key. Raises as `ask` does.
        """
        missing = {key: value for key, value in questions.items() if key not in self.answers}
        if missing:
            self._ask(missing)
        return {
            key: _filled_in(message, form, self.answers[key])
            for key, (message, form) in questions.items()
        }

    def _ask(self, questions: Mapping[str, tuple[str, type[BaseModel]]]) -> NoReturn:
        raise InputRequired(
            {
                key: Question(message, requested_schema(form))
                for key, (message, form) in questions.items()
            }
        )


def _filled_in(message: str, form: type[Form], answer: Mapping[str, Any]) -> Form:
    if answer["action"] != "accept":
        raise InputDeclined(message, answer["action"])
    try:
        return form.model_validate(answer["content"])
    except ValidationError as error:
        # The form has rules that its schema does not show (a validator of its own).
        wrong = ", ".join(".".join(map(str, e["loc"])) or "form" for e in error.errors())
        raise ToolError(f"The answer to {message!r} is not usable: {wrong}") from None
