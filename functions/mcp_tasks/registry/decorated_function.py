"""How a decorator keeps what it declares: on the function, which stays what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

DECLARATION: Final = "__mcp_declaration__"
"""The attribute of an author's function that holds its FunctionTool, Resource or Prompt."""


def attach(function: Function, declaration: object) -> Function:
    """Keep a declaration on its function, and return the function."""
    setattr(function, DECLARATION, declaration)
    return function
