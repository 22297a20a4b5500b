"""Prompts, as their authors declare them (prompts.mdx).

    @prompt
    def review(code: str, language: Literal["python", "sql"] = "python") -> str: ...

The parameters are the prompt's arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from pydantic import BaseModel

from . import schema
from .completion import Completer, completers
from .content import ContentBlock, is_block, text
from .context import TaskContext
from .definition import shown
from .tool import DECLARATION

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt: text, or a block as `mcp_tasks.content` makes them."""

    role: str
    content: str | ContentBlock

    def as_message(self) -> dict[str, Any]:
        """The PromptMessage. Raises ValueError for what is not one."""
        block = text(self.content) if isinstance(self.content, str) else self.content
        if self.role not in ("user", "assistant") or not is_block(block):
            raise ValueError("a message has the role user or assistant, and a content block")
        return {"role": self.role, "content": block}


def user(content: str | ContentBlock) -> Message:
    """A message of the user's."""
    return Message("user", content)


def assistant(content: str | ContentBlock) -> Message:
    """A message of the model's."""
    return Message("assistant", content)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A function that writes messages."""

    name: str
    title: str | None
    description: str
    icons: Sequence[Mapping[str, Any]]
    meta: Mapping[str, Any]
    permissions: Sequence[Mapping[str, Any]]
    function: Callable[..., Any]
    arguments: type[BaseModel]
    context: str | None
    complete: Mapping[str, Completer]

    def definition(self) -> dict[str, Any]:
        """The prompt as `prompts/list` shows it (prompts.mdx, "Data Types")."""
        arguments = [
            {
                **shown(
                    name=name, title=field.title, description=field.description, icons=(), meta={}
                ),
                "required": field.is_required(),
            }
            for name, field in schema.parameters(self.arguments).items()
        ]
        return shown(
            name=self.name,
            title=self.title,
            description=self.description,
            arguments=arguments,
            icons=self.icons,
            meta=self.meta,
        )

    def check_arguments(self, arguments: Mapping[str, str]) -> dict[str, Any]:
        """Arguments as the function's types. Raises schema.InvalidArguments."""
        return schema.text_arguments(self.arguments, arguments)

    def get(self, values: Mapping[str, Any], task: TaskContext) -> dict[str, Any]:
        """Run the function on checked arguments, and return its GetPromptResult."""
        context = {self.context: task} if self.context else {}
        returned = self.function(**values, **context)
        messages = returned if isinstance(returned, (list, tuple)) else [returned]
        result: dict[str, Any] = {
            "messages": [
                (message if isinstance(message, Message) else user(message)).as_message()
                for message in messages
            ]
        }
        return {"description": self.description, **result} if self.description else result


@overload
def prompt(function: Function, /) -> Function: ...
@overload
def prompt(
    *,
    name: str | None = None,
    title: str | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    complete: Mapping[str, Completer | Iterable[str]] | None = None,
    permissions: Sequence[Mapping[str, Any]] = (),
) -> Callable[[Function], Function]: ...
def prompt(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    icons: Sequence[Mapping[str, Any]] = (),
    meta: Mapping[str, Any] | None = None,
    complete: Mapping[str, Completer | Iterable[str]] | None = None,
    permissions: Sequence[Mapping[str, Any]] = (),
) -> Function | Callable[[Function], Function]:
    """Declare a function as a prompt. The function stays what it is.

    Its name, docstring and parameters become what clients see. It returns text, a content block, a
    Message (`user(...)`, `assistant(...)`), or a list of them. It runs within the request, may
    declare a TaskContext, and may ask. Clients send every argument as text; a parameter of another
    type is converted.

    Args:
        complete: values for the arguments, for `completion/complete`: a list, or a function of what
            was typed and of the other arguments so far. Enums and Literals need none.
        permissions: IAM statements for the function that answers requests.

    Raises TypeError or ValueError when the declaration cannot be offered to clients.
    """

    def declare(target: Function) -> Function:
        arguments = schema.parameters_model(target, TaskContext)
        declared_name = name or target.__name__
        declaration = Prompt(
            name=declared_name,
            title=title,
            description=inspect.getdoc(target) or "",
            icons=icons,
            meta=meta or {},
            permissions=permissions,
            function=target,
            arguments=arguments,
            context=schema.context_parameter(target, TaskContext),
            complete=completers(arguments, complete or {}, declared_name),
        )
        setattr(target, DECLARATION, declaration)
        return target

    return declare if function is None else declare(function)
