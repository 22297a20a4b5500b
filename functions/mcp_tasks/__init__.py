"""Workflow-backed MCP servers on AWS: the names that authors of tools, resources and prompts use.

A name's module is imported when the name is first used. The functions that answer polls import this
package too, and load neither pydantic nor the tools.
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
    from .registry.context import AsyncTaskContext, TaskContext
    from .registry.durable_errors import NeedsTask, StepFailed, SubtaskFailed, WaitTimedOut
    from .registry.function_tool import tool
    from .registry.prompt import Message, assistant, prompt, user
    from .registry.resource import NotFound, resource
    from .registry.results import ToolResult
    from .registry.retry_policy import Retry
    from .registry.workflow_tool import workflow_tool

__all__ = [
    "AskForm",
    "AskModel",
    "AskRoots",
    "AskUrl",
    "AsyncTaskContext",
    "Completion",
    "InputDeclined",
    "Message",
    "NeedsTask",
    "NotFound",
    "Retry",
    "Root",
    "StepFailed",
    "SubtaskFailed",
    "TaskContext",
    "ToolError",
    "ToolResult",
    "WaitTimedOut",
    "assistant",
    "content",
    "prompt",
    "resource",
    "tool",
    "user",
    "workflow_tool",
]

_MODULES = {
    "AskForm": "asking",
    "AskModel": "asking",
    "AskRoots": "asking",
    "AskUrl": "asking",
    "AsyncTaskContext": "context",
    "Completion": "asking",
    "InputDeclined": "asking",
    "Message": "prompt",
    "NeedsTask": "durable_errors",
    "NotFound": "resource",
    "Retry": "retry_policy",
    "Root": "asking",
    "StepFailed": "durable_errors",
    "SubtaskFailed": "durable_errors",
    "TaskContext": "context",
    "ToolError": "asking",
    "ToolResult": "results",
    "WaitTimedOut": "durable_errors",
    "assistant": "prompt",
    "prompt": "prompt",
    "resource": "resource",
    "tool": "function_tool",
    "user": "prompt",
    "workflow_tool": "workflow_tool",
}


def __getattr__(name: str) -> Any:
    if name == "content":
        return import_module(".registry.content", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".registry.{_MODULES[name]}", __name__), name)
