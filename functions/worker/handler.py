"""Runs one tool's Python: a function tool, or one step of a workflow tool.

Each tool has a worker of its own, with its own role, timeout and memory. The worker's event is

    {"task": "c1-...", "input": {...}, "answers": {...}, "client_can": [...]}   for a function tool
    {"task": "c1-...", "input": {...}, "step": "split"}                         for a step

A function tool that may have durable operations gets more (`mcp_tasks/workflows/run_event.py`).
Both have `"trace": {"traceparent": ...}` when the client sent a trace context. `"earlier_answers"`
points to the answers before `"answers"`, once these are many. `"max_output_bytes"` limits a step's
output, where less than usual may pass. Large values are payload pointers, which are resolved before
the tool gets them.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from mcp_tasks import environment
from mcp_tasks.deployment import Deployment
from mcp_tasks.durable.journal import Journal
from mcp_tasks.durable.operations import DurableOperations
from mcp_tasks.durable.run import Run
from mcp_tasks.payloads.offloading import MAX_OBJECT_BYTES
from mcp_tasks.payloads.pointer import payload_prefix
from mcp_tasks.protocol.trace import loggable, trace_context
from mcp_tasks.redaction import step_errors_redacted
from mcp_tasks.registry.context import TaskContext
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.secret_values import SecretValues
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.tracebacks import keep_tracebacks
from mcp_tasks.workflows.retry import state_retried_if_transient
from mcp_tasks.workflows.run_event import lane_of, mode_of
from mcp_tasks.workflows.step_payloads import (
    MAX_STEP_OUTPUT_BYTES,
    all_answers,
    offload_result,
    store_answers,
)
from mcp_tasks.workflows.step_reports import (
    cancellation_check,
    status_reporter,
    tool_error_reporter,
    undo_notice,
)
from mcp_tasks.workflows.steps import run_step
from mcp_tasks.workflows.tool_run import ToolRun, run_function

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

END_MARGIN_MS: Final = 5_000
"""How much sooner a run ends than its function's time: `infra` gives the function that much more
than the tool's own timeout."""

logger = Logger()
keep_tracebacks(os.environ)
deployment = Deployment(os.environ)
TOOL = os.environ[environment.TOOL]
entry = deployment.catalogue.tools.get(TOOL)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Run the tool and return its output; an exception leaves without its message."""
    logger.append_keys(task_id=event["task"], tool=TOOL, step=event.get("step"))
    logger.append_keys(**loggable(trace_context(event.get("trace") or {})))
    explain = tool_error_reporter(deployment.task_table, event["task"], now_ms)
    with step_errors_redacted(logger, explain):
        output = run(event, now_ms() + context.get_remaining_time_in_millis() - END_MARGIN_MS)
    logger.info("step ran", remaining_ms=context.get_remaining_time_in_millis())
    return output


def run(event: dict[str, Any], deadline: int) -> Any:
    """Run the tool with its payloads resolved, and offload what is large of its output.

    A run that may go on later ends before the deadline, in milliseconds since the epoch.
    """
    prefix = payload_prefix(TOOL, event["task"])
    payloads = deployment.payloads
    tool = entry.load() if entry else None
    with state_retried_if_transient():
        answers = all_answers(event, payloads, prefix)
        arguments = payloads.resolve(event["input"], prefix, MAX_OBJECT_BYTES)
    task = TaskContext(
        task_id=event["task"],
        answers=answers,
        client_can=frozenset(event.get("client_can") or ()),
        secrets=SecretValues(tool.secrets if tool else {}),
        on_resource_changed=lambda uri: deployment.event_bus.resource_changed(uri),
        on_report=status_reporter(deployment.task_table, event["task"], now_ms),
    )
    if isinstance(tool, FunctionTool):
        if tool.context_parameter is None:
            output = run_function(tool, arguments, task)
        else:
            output = durable_run(tool, event, deadline).output(event, arguments, task)
        with state_retried_if_transient():
            if "result" in output:
                return offload_result(output, payloads, prefix)
            return {**output, **store_answers(event, answers, payloads, prefix)}
    if isinstance(tool, WorkflowTool):
        output = run_step(tool, event["step"], arguments, task)
        with state_retried_if_transient():
            max_bytes = event.get("max_output_bytes") or MAX_STEP_OUTPUT_BYTES
            return payloads.offload(output, max_bytes, prefix)
    raise LookupError(f"there is no tool {TOOL} in this deployment")


def durable_run(tool: FunctionTool, event: dict[str, Any], deadline: int) -> ToolRun:
    """One run of a tool that may have durable operations."""
    journal = Journal(
        deployment.journal_table,
        deployment.payloads,
        TOOL,
        event["task"],
        tool.ttl // timedelta(milliseconds=1),
        now_ms,
    )
    note_undo = undo_notice(deployment.task_table, event["task"], now_ms)
    run = Run(
        journal,
        now_ms,
        deadline,
        tool.ttl,
        mode_of(event),
        lane_of(event),
        event.get("killed_lanes") or 0,
        check_cancelled=cancellation_check(deployment.task_table, event["task"], now_ms),
        announce_undo=lambda: note_undo(True),
    )
    begun = bool(event.get("journal"))
    return ToolRun(tool, DurableOperations(run), lambda: note_undo(False), begun)
