"""Workflow-backed MCP servers on AWS. A tool's author needs what is named here, and no more.

Names are resolved on first use: the functions that answer polls import this package too, and need
neither pydantic nor the tools.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry import content
    from .registry.asking import (
        AskForm,
        AskModel,
        AskRoots,
        AskUrl,
        Completion,
        InputDeclined,
        Root,
        ToolError,
    )
    from .registry.context import TaskContext
    from .registry.prompt import Message, assistant, prompt, user
    from .registry.resource import NotFound, resource
    from .registry.results import ToolResult
    from .registry.tool import tool, workflow_tool

__all__ = [
    "AskForm",
    "AskModel",
    "AskRoots",
    "AskUrl",
    "Completion",
    "InputDeclined",
    "Message",
    "NotFound",
    "Root",
    "TaskContext",
    "ToolError",
    "ToolResult",
    "assistant",
    "content",
    "prompt",
    "resource",
    "tool",
    "user",
    "workflow_tool",
]

_HOMES = {
    "AskForm": "asking",
    "AskModel": "asking",
    "AskRoots": "asking",
    "AskUrl": "asking",
    "Completion": "asking",
    "InputDeclined": "asking",
    "Message": "prompt",
    "NotFound": "resource",
    "Root": "asking",
    "TaskContext": "context",
    "ToolError": "asking",
    "ToolResult": "results",
    "assistant": "prompt",
    "prompt": "prompt",
    "resource": "resource",
    "tool": "tool",
    "user": "prompt",
    "workflow_tool": "tool",
}


def __getattr__(name: str) -> Any:
    if name == "content":
        return import_module(".registry.content", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".registry.{_HOMES[name]}", __name__), name)
