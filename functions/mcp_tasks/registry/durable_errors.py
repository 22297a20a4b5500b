"""What a durable operation raises in a tool. Each is the same in every run of the tool."""

from __future__ import annotations


class StepFailed(Exception):
    """A step has failed for good: its last attempt raised an exception.

    `name` is the exception's class, `message` its text, `reference` what finds it in the log. Catch
    it to go on without the step. A step that raised a ToolError raises that ToolError instead.
    """

    def __init__(self, step: str, name: str, message: str, reference: str | None = None) -> None:
        super().__init__(f"{step} failed: {name}: {message}")
        self.step = step
        self.name = name
        self.message = message
        self.reference = reference


class SubtaskFailed(Exception):
    """A tool that was called as a subtask has no result.

    `status` is "failed", "cancelled", or "refused" for a call that became no task. `message` is
    what clients see of the failure. A tool that raised a ToolError raises that in its caller, too.
    """

    def __init__(self, tool: str, status: str, message: str) -> None:
        super().__init__(f"{tool} {status}" + (f": {message}" if message else ""))
        self.tool = tool
        self.status = status
        self.message = message


class WaitTimedOut(Exception):
    """`task.wait_for` has waited until its limit, and the check was never true."""


class NeedsTask(RuntimeError):
    """A durable operation was called where nothing is durable: in a function that runs within a
    request, in a step, or in a state of a workflow tool."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"task.{operation} needs a task of its own: use it in the body of a tool with "
            'task="required", not within a request, a step, or a workflow tool\'s step'
        )
