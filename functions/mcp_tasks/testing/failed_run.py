"""A run of a tool that has raised an exception, as the worker's state machine sees it."""

from __future__ import annotations

from typing import Any

from ..crash_report import reference_of, without_reference
from ..tracebacks import write_traceback


def failed_run(error: Exception, tool: str, task_id: str) -> dict[str, Any]:
    """Show the exception's traceback on the terminal, and fail the execution."""
    write_traceback(error, reference_of(error), {"tool": tool, "task_id": task_id})
    return {"fail": {"error": type(error).__name__, "cause": str(error)}}


def failure(error: str, cause: str) -> tuple[str, str]:
    """What a failed execution leaves of a task. The reference is another one in each test."""
    return error, without_reference(cause)
