"""`tools/call` (server/tools.mdx, "Calling Tools"; tasks.md, "Task Creation").

A tool runs within the request, or becomes a task: the row is written, then the execution is
started, and only then the client is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..protocol import headers
from ..protocol.errors import ErrorCode, ProtocolError, invalid_params
from ..registry.catalogue import Catalogue, Entry
from ..tasks.ids import new_task_id
from ..tasks.rows import TaskEnded, TaskTable, UnknownTask
from ..tasks.state import Status
from ..tasks.task import Task, now_ms
from ..workflows.executions import Executions, StartFailed
from .methods import Call, Method, complete
from .tasks_extension import EXTENSION, create_task_result, required

MAX_INPUT_BYTES: Final = 256 * 1024
"""What an execution accepts as input (Step Functions developer guide, "Quotas")."""

logger = Logger()


def call_tool(
    catalogue: Catalogue,
    rows: TaskTable,
    executions: Executions,
    state_machine_arn: Callable[[Entry], str],
    cell: str,
) -> Method:
    """The method `tools/call`."""

    def answer(call: Call) -> dict[str, Any]:
        entry, arguments = _requested(call, catalogue)
        logger.append_keys(tool=entry.name)
        declared = call.meta.declares_extension(EXTENSION)
        if entry.task == "required" and not declared:
            raise required()

        from ..registry.results import error_result
        from ..registry.schema import InvalidArguments

        try:
            values = entry.load().check_arguments(arguments)
        except InvalidArguments as error:
            return complete(**error_result(f"Invalid arguments: {error}"))
        if entry.task != "forbidden" and declared:
            task = _new_task(entry, call, arguments, state_machine_arn(entry), new_task_id(cell))
            logger.append_keys(task_id=task.task_id)
            _create(task, rows, executions)
            return create_task_result(task)
        return complete(**_run(entry, values, declared))

    return answer


def _requested(call: Call, catalogue: Catalogue) -> tuple[Entry, dict[str, Any]]:
    name = call.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string")
    entry = catalogue.get(name)
    if entry is None:
        raise invalid_params(f"Unknown tool: {name[:64]}")
    arguments = call.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise invalid_params("params.arguments must be an object")
    headers.check_parameters(entry.mirrored, arguments, call.headers)
    return entry, arguments


def _new_task(
    entry: Entry, call: Call, arguments: dict[str, Any], state_machine_arn: str, task_id: str
) -> Task:
    # Byte-stable: a start that is repeated must carry the same input as the first.
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
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
        accepts_forms=call.meta.accepts_forms,
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


def _run(entry: Entry, values: dict[str, Any], declared: bool) -> dict[str, Any]:
    """Run a function tool within the request of a client that did or did not declare tasks."""
    from ..registry.context import InputRequired, TaskContext, ToolError
    from ..registry.results import error_result
    from ..registry.tool import FunctionTool

    tool = entry.load()
    if not isinstance(tool, FunctionTool):
        raise TypeError(f"{entry.name} is a workflow, and workflows are always tasks")
    try:
        return tool.run(values, TaskContext())
    except ToolError as error:
        return error_result(str(error))
    except InputRequired:
        # Only a task can ask, so far.
        if declared:
            raise ProtocolError(
                ErrorCode.INTERNAL_ERROR, f"{entry.name} asks for input, and is not run as a task"
            ) from None
        raise required() from None
    except Exception as error:
        logger.error("A tool crashed", error=type(error).__name__)
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR, f"The tool failed: {type(error).__name__}"
        ) from None
