"""`tools/call` (server/tools.mdx, "Calling Tools"; tasks.md, "Task Creation").

A tool runs within the request, or the call becomes a task (`task_creation.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from ...protocol.errors import invalid_params
from ...protocol.headers import check_mirrored_arguments
from ...protocol.meta import META_MEMBER
from ...redaction import client_errors_redacted
from ...registry.catalogue import Catalogue, ToolEntry
from ...workflows.execution_input import execution_input
from ..call import Call, Complete, InputNeeded, MissingTasksExtension, Outcome, TaskCreated
from ..scopes import ScopeCheck
from .companion_tools import KINDS, becomes_task
from .idempotent_creation import IdempotentCreation
from .multi_round_trip import MultiRoundTrip
from .task_wire_format import REQUIRED

if TYPE_CHECKING:
    from ...registry.tool import Tool
    from ...tasks.task import Task

logger = Logger()


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Serves `tools/call`."""

    catalogue: Catalogue
    multi_round_trip: MultiRoundTrip
    creation: IdempotentCreation
    scope_check: ScopeCheck
    companion_tools: bool = False
    """Whether a client without tasks that does not wait, either, may get a task
    (`companion_tools.py`)."""

    def call_tool(self, call: Call) -> Outcome:
        """Run the tool and return its result, ask the client, or create a task.

        Raises ProtocolError. Invalid arguments and a tool's own errors are results with `isError`.
        """
        entry, arguments = self._requested(call)
        logger.append_keys(tool=entry.name)
        self.scope_check.check(call, entry.scopes)
        as_task = self._becomes_task(entry, call)
        if entry.task_support == "required" and not as_task:
            raise MissingTasksExtension(entry.name, REQUIRED)

        from ...registry.asking import ToolError
        from ...registry.results import error_result
        from ...registry.schema import InvalidArguments

        tool = entry.load()
        try:
            values = tool.check_arguments(arguments)
        except InvalidArguments as error:
            return Complete(error_result(f"Invalid arguments: {error}"))
        try:
            if not as_task:
                return self._run(tool, call, arguments, values)
            if entry.asks_first and (task := self.creation.existing(call, entry, arguments)):
                return self._created(call, task)
            answers = self._ask_first(tool, call, arguments, values)
        except ToolError as error:
            return Complete(error_result(str(error)))
        if isinstance(answers, InputNeeded):
            return answers
        if not (call.declares_tasks or call.waits):
            call = replace(call, client_can=call.client_can | KINDS)
        start_with = execution_input(entry, arguments, answers, call.client_can, call.trace)
        return self._created(call, self.creation.create(call, entry, arguments, start_with))

    def _becomes_task(self, entry: ToolEntry, call: Call) -> bool:
        """Whether a call becomes a task, or runs within its request."""
        if entry.task_support == "forbidden":
            return False
        return call.declares_tasks or (becomes_task(entry) and (call.waits or self.companion_tools))

    def _created(self, call: Call, task: Task) -> TaskCreated:
        """The task, which may be that of an earlier call with the same idempotency key: then the
        tool may have needed other scopes (`task_access.py`).
        """
        self.scope_check.check(call, task.scopes)
        return TaskCreated(task)

    def _requested(self, call: Call) -> tuple[ToolEntry, dict[str, Any]]:
        """The tool and the arguments of a call. Raises ProtocolError."""
        name = call.params.get("name")
        if not isinstance(name, str):
            raise invalid_params("params.name must be a string")
        entry = self.catalogue.tools.get(name)
        if entry is None:
            raise invalid_params(f"Unknown tool: {name[:64]}")
        arguments = call.params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise invalid_params("params.arguments must be an object")
        if META_MEMBER in arguments:
            # A workflow's execution has checked values there, which a client must not replace.
            raise invalid_params(f"params.arguments must not have a member {META_MEMBER}")
        if call.headers is not None:
            check_mirrored_arguments(entry.mirrored, arguments, call.headers)
        return entry, arguments

    def _run(
        self, tool: Tool, call: Call, arguments: dict[str, Any], values: dict[str, Any]
    ) -> Outcome:
        """Run a function tool within the request."""
        from ...registry.asking import ToolError
        from ...registry.function_tool import FunctionTool

        if not isinstance(tool, FunctionTool):
            raise TypeError(f"{tool.name} is a workflow, and workflows are always tasks")

        @client_errors_redacted("tool", ToolError)
        def run(context: Any) -> dict[str, Any]:
            tool.run_ask_first(values, context)
            return tool.run(values, context)

        result = self.multi_round_trip.run(call, tool.name, arguments, run, tool.secrets)
        return result if isinstance(result, InputNeeded) else Complete(result)

    def _ask_first(
        self, tool: Tool, call: Call, arguments: dict[str, Any], values: dict[str, Any]
    ) -> Mapping[str, Any] | InputNeeded:
        """The answers to what the tool asks before there is a task, or the missing questions."""
        from ...registry.asking import ToolError

        @client_errors_redacted("tool", ToolError)
        def ask(context: Any) -> None:
            tool.run_ask_first(values, context)

        asking = ask if tool.ask_first is not None else None
        return self.multi_round_trip.answers(call, tool.name, arguments, asking, tool.secrets)
