"""Authors' functions: how a decorator keeps what it declares, and how they are called.

A decorator keeps its declaration on the function, which stays what it is. A function may be `def`
or `async def`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from . import schema
from .context import CONTEXTS, AsyncTaskContext, Context
from .durable_operations import Operations

Function = TypeVar("Function", bound=Callable[..., Any])

DECLARATION: Final = "__mcp_declaration__"
"""The attribute of an author's function that holds its FunctionTool, Resource or Prompt."""


def attach(function: Function, declaration: object) -> Function:
    """Keep a declaration on its function, and return the function."""
    setattr(function, DECLARATION, declaration)
    return function


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter that takes the context, if there is one.

    Raises TypeError for a function that yields, and for a `def` that takes an AsyncTaskContext.
    """
    where = f"{function.__module__}.{function.__qualname__}"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{where} yields; return a value instead")
    found = [(n, hint) for n, hint in schema.hints(function).items() if hint in CONTEXTS]
    for _, hint in found:
        if hint is AsyncTaskContext and not inspect.iscoroutinefunction(function):
            raise TypeError(f"{where} is no async def, and takes a TaskContext")
    return found[0][0] if found else None


def call(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    parameter: str | None,
    context: Context,
) -> Any:
    """Run a function to its end, with the context for its `parameter`, if it takes one."""
    if parameter is not None:
        arguments = {**arguments, parameter: context.of(function)}
    returned = function(**arguments)
    if context.operations is not None and inspect.iscoroutine(returned):
        returned = _settled(returned, context.operations)
    return finished(returned)


def finished(returned: Any) -> Any:
    """What a function has returned; of an `async def`, after it was run to its end."""
    if not inspect.iscoroutine(returned):
        return returned
    import asyncio  # most functions need none

    return asyncio.run(returned)


async def _settled(function: Coroutine[Any, Any, Any], operations: Operations) -> Any:
    """Run a function to its end, and the steps that it has begun to theirs."""
    try:
        return await function
    finally:
        await operations.settle()
