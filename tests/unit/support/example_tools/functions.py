"""Tools that run within the request."""

from __future__ import annotations

from mcp_tasks import ToolError, tool


@tool
def echo(text: str, times: int = 1) -> str:
    """Repeat a text."""
    return text * times


@tool
def half(number: float) -> float:
    """Halve a number."""
    return number / 2


@tool
def overflow(number: float) -> float:
    """Multiply a number until it does not fit."""
    return number * number


@tool
def refuse(reason: str) -> str:
    """Fail, as a tool does."""
    raise ToolError(f"Refused: {reason}")


@tool
def crash(secret: str) -> str:
    """Fail, as a bug does."""
    raise KeyError(secret)
