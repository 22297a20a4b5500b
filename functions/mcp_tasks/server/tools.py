"""`tools/call` (server/tools.mdx, "Calling Tools"; tasks.md, "Task Creation").

A tool runs within the request, or becomes a task: the row is written, then the execution is
started, and only then the client is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from ..protocol import headers
from ..protocol.errors import ErrorCode, ProtocolError, invalid_params
from ..protocol.meta import RESERVED
from ..registry.catalogue import Catalogue, ToolEntry
from ..tasks.ids import new_task_id
from ..tasks.rows import TaskEnded, TaskTable, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task, now_ms
from ..workflows.executions import Executions, StartFailed
from .call import Call, Complete, InputNeeded, Method, NeedsTasks, Outcome, TaskCreated
from .rounds import Rounds
from .running import guarded
from .task_shapes import REQUIRED

if TYPE_CHECKING:
    from ..registry.tool import Tool

MAX_INPUT_BYTES: Final = 256 * 1024
"""What an execution accepts as input (Step Functions developer guide, "Quotas")."""

logger = Logger()


def call_tool(
    catalogue: Catalogue,
    rounds: Rounds,
    rows: TaskTable,
    executions: Executions,
    state_machine_arn: Callable[[ToolEntry], str],
    cell: str,
) -> Method:
    """The method `tools/call`."""

    def answer(call: Call) -> Outcome:
        entry, arguments = _requested(call, catalogue)
        logger.append_keys(tool=entry.name)
        if entry.task == "required" and not call.takes_tasks:
            raise NeedsTasks(entry.name, REQUIRED)

        from ..registry.asking import ToolError
        from ..registry.results import error_result
        from ..registry.schema import InvalidArguments

        tool = entry.load()
        try:
            values = tool.check_arguments(arguments)
        except InvalidArguments as error:
            return Complete(error_result(f"Invalid arguments: {error}"))
        try:
            if entry.task == "forbidden" or not call.takes_tasks:
                return _run(tool, call, arguments, values, rounds)
            answers = _asked_first(tool, call, arguments, values, rounds)
        except ToolError as error:
            return Complete(error_result(str(error)))
        if isinstance(answers, InputNeeded):
            return answers
        execution_input = _execution_input(entry, call, arguments, answers)
        task = _new_task(entry, call, execution_input, state_machine_arn(entry), new_task_id(cell))
        logger.append_keys(task_id=task.task_id)
        _create(task, rows, executions)
        return TaskCreated(task)

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
    rounds: Rounds,
) -> Outcome:
    """Run a function tool within the request."""
    from ..registry.asking import ToolError
    from ..registry.tool import FunctionTool

    if not isinstance(tool, FunctionTool):
        raise TypeError(f"{tool.name} is a workflow, and workflows are always tasks")

    @guarded("tool", ToolError)
    def run(context: Any) -> dict[str, Any]:
        tool.ask_before(values, context)
        return tool.run(values, context)

    result = rounds.run(call, tool.name, arguments, run)
    return result if isinstance(result, InputNeeded) else Complete(result)


def _asked_first(
    tool: Tool,
    call: Call,
    arguments: dict[str, Any],
    values: dict[str, Any],
    rounds: Rounds,
) -> Mapping[str, Any] | InputNeeded:
    """What has to be known before there is a task: its rounds end before CreateTaskResult."""
    from ..registry.asking import ToolError

    # Also when it asks nothing: a state that came with the request is looked at all the same.
    @guarded("tool", ToolError)
    def ask(context: Any) -> None:
        tool.ask_before(values, context)

    return rounds.answers(call, tool.name, arguments, ask)


def _execution_input(
    entry: ToolEntry, call: Call, arguments: dict[str, Any], answers: Mapping[str, Any]
) -> dict[str, Any]:
    """What the execution starts with.

    A function's has members of its own. A workflow's is the arguments, so that whoever writes one
    needs to know nothing of MCP; a state machine that exists already gets them and nothing else.
    """
    if entry.kind == "function":
        can = sorted(call.client_can)
        return {
            "arguments": arguments,
            "answers": answers,
            "client_can": can,
            "trace": dict(call.trace),
        }
    meta = {**call.trace, **({"answers": answers} if answers else {})}
    if not meta or entry.state_machine_arn is not None:
        return arguments
    return {**arguments, RESERVED: meta}


def _new_task(
    entry: ToolEntry,
    call: Call,
    execution_input: dict[str, Any],
    state_machine_arn: str,
    task_id: str,
) -> Task:
    # Byte-stable: a start that is repeated must carry the same input as the first.
    text = json.dumps(execution_input, sort_keys=True, separators=(",", ":"))
    if len(text) > MAX_INPUT_BYTES:
        raise invalid_params(f"params.arguments exceed {MAX_INPUT_BYTES} bytes")
    now = now_ms()
    return Task(
        task_id=task_id,
        tool=entry.name,
        principal=call.principal,
        status=Status.WORKING,
        created_at=now,
        last_updated_at=now,
        ttl_ms=entry.ttl_ms,
        poll_interval_ms=entry.poll_interval_ms,
        state_machine_arn=state_machine_arn,
        accepts=call.client_can,
        input=text,
    )


def _create(task: Task, rows: TaskTable, executions: Executions) -> None:
    """Row first: once the execution runs, its reports and its end find the row."""
    rows.create(task)
    try:
        executions.start(task.state_machine_arn, task.task_id, task.input or "{}")
    except StartFailed as failed:
        logger.error("StartExecution failed", error=str(failed), task_id=task.task_id)
        message = "The task could not be started; the call can be repeated"
        error = ProtocolError(ErrorCode.INTERNAL_ERROR, message)
        with suppress(TaskEnded, UnknownTask):
            rows.fail(task.task_id, error.as_error(), message, now_ms())
        if failed.may_run:
            # Best effort: should it run, its first report or question finds that its task is over.
            with suppress(Exception):
                executions.stop(task.state_machine_arn, task.task_id)
        raise error from None
