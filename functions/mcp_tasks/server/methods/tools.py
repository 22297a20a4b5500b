"""`tools/call` (server/tools.mdx, "Calling Tools"; tasks.md, "Task Creation").

A tool runs within the request, or becomes a task (`creation.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from ...protocol import headers
from ...protocol.errors import invalid_params
from ...protocol.meta import RESERVED
from ...redaction import client_errors_redacted
from ...registry.catalogue import Catalogue, ToolEntry
from ..call import Call, Complete, InputNeeded, Method, NeedsTasks, Outcome, TaskCreated
from ..scopes import ScopeCheck
from .multi_round_trip import MultiRoundTrip
from .task_creation import TaskCreation
from .task_wire_format import REQUIRED

if TYPE_CHECKING:
    from ...registry.tool import Tool

INPUT_SCHEMA: Final = 2

logger = Logger()


def call_tool(
    catalogue: Catalogue,
    rounds: MultiRoundTrip,
    creation: TaskCreation,
    authority: ScopeCheck,
) -> Method:
    """The method `tools/call`."""

    def answer(call: Call) -> Outcome:
        entry, arguments = _requested(call, catalogue)
        logger.append_keys(tool=entry.name)
        authority.check(call, entry.scopes)
        if entry.task == "required" and not call.takes_tasks:
            raise NeedsTasks(entry.name, REQUIRED)

        from ...registry.asking import ToolError
        from ...registry.results import error_result
        from ...registry.schema import InvalidArguments

        tool = entry.load()
        try:
            values = tool.check_arguments(arguments)
        except InvalidArguments as error:
            return Complete(error_result(f"Invalid arguments: {error}"))
        try:
            if entry.task == "forbidden" or not call.takes_tasks:
                return _run(tool, call, arguments, values, rounds)
            if entry.asks_first and (task := creation.earlier(call, entry, arguments)):
                return TaskCreated(task)
            answers = _asked_first(tool, call, arguments, values, rounds)
        except ToolError as error:
            return Complete(error_result(str(error)))
        if isinstance(answers, InputNeeded):
            return answers
        execution_input = _execution_input(entry, call, arguments, answers)
        return TaskCreated(creation.create(call, entry, arguments, execution_input))

    return answer


def _requested(call: Call, catalogue: Catalogue) -> tuple[ToolEntry, dict[str, Any]]:
    name = call.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string")
    entry = catalogue.tools.get(name)
    if entry is None:
        raise invalid_params(f"Unknown tool: {name[:64]}")
    arguments = call.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise invalid_params("params.arguments must be an object")
    if RESERVED in arguments:
        # What a workflow finds there was checked; it does not come from a client.
        raise invalid_params(f"params.arguments must not have a member {RESERVED}")
    if call.mirrors is not None:
        headers.check_parameters(entry.mirrored, arguments, call.mirrors)
    return entry, arguments


def _run(
    tool: Tool,
    call: Call,
    arguments: dict[str, Any],
    values: dict[str, Any],
    rounds: MultiRoundTrip,
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

    result = rounds.run(call, tool.name, arguments, run)
    return result if isinstance(result, InputNeeded) else Complete(result)


def _asked_first(
    tool: Tool,
    call: Call,
    arguments: dict[str, Any],
    values: dict[str, Any],
    rounds: MultiRoundTrip,
) -> Mapping[str, Any] | InputNeeded:
    """What has to be known before there is a task: its rounds end before CreateTaskResult."""
    from ...registry.asking import ToolError

    # Also when it asks nothing: a state that came with the request is looked at all the same.
    @client_errors_redacted("tool", ToolError)
    def ask(context: Any) -> None:
        tool.run_ask_first(values, context)

    return rounds.answers(call, tool.name, arguments, ask)


def _execution_input(
    entry: ToolEntry, call: Call, arguments: dict[str, Any], answers: Mapping[str, Any]
) -> dict[str, Any]:
    """What the execution starts with.

    A function's has members of its own. A workflow's is the arguments, so that whoever writes one
    needs to know nothing of MCP; a state machine that exists already gets them and nothing else.

    `schema` is the version of this shape: an execution may be older than the code that its steps
    run. Version 1 had none.
    """
    if entry.kind == "function":
        can = sorted(call.client_can)
        return {
            "schema": INPUT_SCHEMA,
            "arguments": arguments,
            "answers": answers,
            "client_can": can,
            "trace": dict(call.trace),
        }
    if entry.state_machine_arn is not None:
        return arguments
    meta = {"schema": INPUT_SCHEMA, **call.trace, **({"answers": answers} if answers else {})}
    return {**arguments, RESERVED: meta}
