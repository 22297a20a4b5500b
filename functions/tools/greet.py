"""The smallest tool: a function that answers within the request."""

from __future__ import annotations

from mcp_tasks import tool


@tool
def greet(name: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {name}!"
