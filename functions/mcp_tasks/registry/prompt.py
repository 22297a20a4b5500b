"""Prompts, as their authors declare them (prompts.mdx).

    @prompt
    def review(code: str, language: Literal["python", "sql"] = "python") -> str: ...

The function's parameters are the prompt's arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from pydantic import BaseModel

from . import schema
from .completion import Completer, completers
from .content import ContentBlock, is_block, text
from .context import CONTEXTS, Context
from .decorated_function import Function, attach, call, context_parameter
from .list_definition import build_definition


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt: text, or a block as `mcp_tasks.content` makes them."""

    role: str
    content: str | ContentBlock

    def as_message(self) -> dict[str, Any]:
        """The PromptMessage. Raises ValueError for an unknown role or content that is no block."""
        block = text(self.content) if isinstance(self.content, str) else self.content
        if self.role not in ("user", "assistant") or not is_block(block):
            raise ValueError("a message has the role user or assistant, and a content block")
        return {"role": self.role, "content": block}


def user(content: str | ContentBlock) -> Message:
    """A message of the user."""
    return Message("user", content)


def assistant(content: str | ContentBlock) -> Message:
    """A message of the model."""
    return Message("assistant", content)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A function that is a prompt: it returns messages."""

    name: str
    title: str | None
    description: str
    icons: Sequence[Mapping[str, Any]]
    meta: Mapping[str, Any]
    permissions: Sequence[Mapping[str, Any]]
    function: Callable[..., Any]
    arguments: type[BaseModel]
    context_parameter: str | None
    """The parameter that takes the TaskContext."""
    complete: Mapping[str, Completer]

    def definition(self) -> dict[str, Any]:
        """The prompt as `prompts/list` shows it (prompts.mdx, "Data Types")."""
        arguments = [
            {
                **build_definition(
                    name=name, title=field.title, description=field.description, icons=(), meta={}
                ),
                "required": field.is_required(),
            }
            for name, field in schema.parameters(self.arguments).items()
        ]
        return build_definition(
            name=self.name,
            title=self.title,
            description=self.description,
            arguments=arguments,
            icons=self.icons,
            meta=self.meta,
        )

    def check_arguments(self, arguments: Mapping[str, str]) -> dict[str, Any]:
        """Convert arguments to the parameters' types. Raises schema.InvalidArguments."""
        return schema.text_arguments(self.arguments, arguments)

    def get(self, values: Mapping[str, Any], task: Context) -> dict[str, Any]:
        """Run the function on checked arguments, and return its GetPromptResult."""
        returned = call(self.function, values, self.context_parameter, task)
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
    Message (`user(...)`, `assistant(...)`), or a list of them. It runs within the request. It may
    have a parameter of the type TaskContext, and ask the client. Clients send every argument as
    text, which is converted to the parameter's type.

    Args:
        complete: values for the arguments, for `completion/complete`: a list, or a function of the
            text typed so far and of the other arguments. Enums and Literals need none.
        permissions: IAM policy statements for the function that answers requests.

    Raises TypeError or ValueError when the declaration cannot be offered to clients.
    """

    def declare(target: Function) -> Function:
        arguments = schema.parameters_model(target, CONTEXTS)
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
            context_parameter=context_parameter(target),
            complete=completers(arguments, complete or {}, declared_name),
        )
        return attach(target, declaration)

    return declare if function is None else declare(function)
