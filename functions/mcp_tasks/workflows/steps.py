"""Run one step of a workflow inside a worker.

A function tool is a workflow of one step that runs again after each answer:

    Run -> Asked? -> Done      the result is the execution's output
     ^        |
     +------ Ask               waits on a task token
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..aws.errors import error_code, is_transient
from ..payloads.offloading import MAX_OBJECT_BYTES, json_size, json_text
from ..payloads.s3_store import PayloadStore
from ..protocol.meta import META_MEMBER
from ..registry.asking import ToolError
from ..registry.context import InputRequired, TaskCancelled, TaskContext
from ..registry.function_tool import FunctionTool
from ..registry.results import error_result
from ..registry.workflow_tool import WorkflowTool
from ..tasks.errors import TaskEnded, UnknownTask
from ..tasks.task_table import TaskTable

MAX_MESSAGE: Final = 8_000
"""Characters of what a failing step says to the caller."""

RESULT_ROOM: Final = 200_000
"""Bytes of a function tool's result that go through Step Functions, which carries 256 KiB."""
ANSWERS_ROOM: Final = 40_000
"""Bytes of answers that go through Step Functions from one run of a function tool to the next,
beside its arguments (100 KB) and what it is answered next (100 KB)."""
STEP_ROOM: Final = 60_000
"""Bytes of a step's output. Less, because a state may put several outputs together; a state within
a Map or a Parallel is given less still (`infra/state_machine_definition.py`)."""

logger = Logger()


def run_function(tool: FunctionTool, arguments: Any, task: TaskContext) -> dict[str, Any]:
    """Run a function tool: `{"result": CallToolResult}`, or `{"ask": questions}` when it asks."""
    values = tool.check_arguments(arguments)
    try:
        return {"result": tool.run(values, task)}
    except ToolError as error:
        # A result and not a failure: no Catch clause has to know an exception's name.
        return {"result": error_result(str(error))}
    except InputRequired as required:
        return {"ask": {key: asked.as_json() for key, asked in required.questions.items()}}


def answers_so_far(event: Mapping[str, Any], payloads: PayloadStore, prefix: str) -> dict[str, Any]:
    """What a function tool was answered, by key: `earlier` answers and the `answers` since."""
    parts = [event.get("earlier") or {}, event.get("answers") or {}]
    earlier, since = payloads.resolve(parts, prefix, MAX_OBJECT_BYTES)
    return {**earlier, **since}


def answers_carried(
    event: Mapping[str, Any], answers: Mapping[str, Any], payloads: PayloadStore, prefix: str
) -> dict[str, Any]:
    """What the next run's event has to have as `earlier`, where this one's answers add up to more
    than Step Functions should carry: all of them, stored as one object.
    """
    if json_size(event.get("answers") or {}) <= ANSWERS_ROOM:
        return {}
    return {"earlier": payloads.put(prefix, json_text(answers)).as_json()}


def result_carried(output: dict[str, Any], payloads: PayloadStore, prefix: str) -> dict[str, Any]:
    """What `run_function` returned, as it may go through Step Functions.

    A large result is stored as it is, and pointed to: nobody has to load it on its way.
    """
    if "result" not in output:
        return output
    text = json_text(output["result"])
    if len(text) <= RESULT_ROOM and json_size(output) <= RESULT_ROOM:
        return output
    return {"result": payloads.put(prefix, text).as_json()}


def run_step(tool: WorkflowTool, name: str, arguments: Any, task: TaskContext) -> Any:
    """Run one of a workflow tool's steps and return its output as JSON values.

    Raises LookupError for a step that the tool does not have, TypeError for one that asks, and
    what the step raises.
    """
    step = tool.steps.get(name)
    if step is None:
        raise LookupError(f"{tool.name} has no step {name!r}; it has {', '.join(tool.steps)}")
    if isinstance(arguments, dict):
        # A state that passes on the execution's input passes on what is not an argument.
        arguments = {name: value for name, value in arguments.items() if name != META_MEMBER}
    try:
        return step.call(arguments, task)
    except InputRequired:
        raise TypeError(
            f"{tool.name}.{name}: a step cannot ask; a state with ${{ask}} can"
        ) from None


def report_to(
    task_table: TaskTable, task_id: str, clock: Callable[[], int]
) -> Callable[[str, float | None], None]:
    """How a step's reports reach its task's row; a report to a task that is over ends the step.

    One that cannot be written at the moment is left out: what a step does is worth more than what
    it says of it.
    """

    def report(message: str, progress: float | None) -> None:
        text = message if progress is None else f"{progress:.0%} {message}"
        try:
            task_table.report(task_id, text, clock())
        except (TaskEnded, UnknownTask):
            raise TaskCancelled from None
        except Exception as fault:
            if not is_transient(fault):
                raise
            logger.warning("A report was not written", error=error_code(fault))

    return report


def explain_to(
    task_table: TaskTable, task_id: str, clock: Callable[[], int]
) -> Callable[[str], None]:
    """How what a failing step says to the caller gets there: by its task's row, and no log."""

    def explain(message: str) -> None:
        try:
            task_table.store_tool_error(task_id, message[:MAX_MESSAGE], clock())
        except (TaskEnded, UnknownTask):
            return
        except Exception as fault:
            # The step fails as what it is; its client will not read why.
            if not is_transient(fault):
                raise
            logger.error("What a step has to say was not written", error=error_code(fault))

    return explain
