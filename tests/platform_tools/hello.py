"""A function that answers within the request."""

from __future__ import annotations

from mcp_tasks import tool


@tool
def hello(name: str) -> str:
    """Say hello to somebody."""
    return f"Hello, {name}!"
