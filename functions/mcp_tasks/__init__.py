"""Workflow-backed MCP servers on AWS. A tool's author needs what is named here, and no more.

Names are resolved on first use: the functions that answer polls import this package too, and need
neither pydantic nor the tools.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry.context import InputDeclined, TaskContext, ToolError
    from .registry.results import ToolResult
    from .registry.tool import tool, workflow_tool

__all__ = [
    "InputDeclined",
    "TaskContext",
    "ToolError",
    "ToolResult",
    "tool",
    "workflow_tool",
]

_HOMES = {
    "InputDeclined": "context",
    "TaskContext": "context",
    "ToolError": "context",
    "ToolResult": "results",
    "tool": "tool",
    "workflow_tool": "tool",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".registry.{_HOMES[name]}", __name__), name)
