"""Runs one tool's Python: a function tool, or one step of a workflow tool.

Each tool has a worker of its own, with a role, a timeout and memory of its own. Its event:

    {"task": "c1-...", "input": {...}, "answers": {...}, "client_can": [...]}   a function tool
    {"task": "c1-...", "input": {...}, "step": "split"}                         a workflow's step

and in both, `"trace": {"traceparent": ...}` when the client sent trace context. `"room"` is how
many bytes a step's output may have, where that is less than usual; `"earlier"` is what was answered
before `answers`, once that is much. Definitions that are older than this code tell neither. Large
values are pointers (`mcp_tasks.payloads`), which the tool gets whole.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks import environment
from mcp_tasks.deployment import Deployment
from mcp_tasks.payloads.offloading import MAX_OBJECT_BYTES
from mcp_tasks.payloads.pointer import payload_prefix
from mcp_tasks.protocol.trace import loggable, trace_context
from mcp_tasks.redaction import step_errors_redacted
from mcp_tasks.registry.context import TaskContext
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.workflow_tool import WorkflowTool
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.retry import state_retried_if_transient
from mcp_tasks.workflows.steps import (
    STEP_ROOM,
    answers_carried,
    answers_so_far,
    explain_to,
    report_to,
    result_carried,
    run_function,
    run_step,
)

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)
TOOL = os.environ[environment.TOOL]
entry = deployment.catalogue.tools.get(TOOL)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Run it, and return its output; a failure leaves under its own name, without its message."""
    logger.append_keys(task_id=event["task"], tool=TOOL, step=event.get("step"))
    logger.append_keys(**loggable(trace_context(event.get("trace") or {})))
    prefix = payload_prefix(TOOL, event["task"])
    payloads = deployment.payloads

    def run() -> Any:
        tool = entry.load() if entry else None
        with state_retried_if_transient():
            answers = answers_so_far(event, payloads, prefix)
            given = payloads.resolve(event["input"], prefix, MAX_OBJECT_BYTES)
        task = TaskContext(
            task_id=event["task"],
            answers=answers,
            client_can=frozenset(event.get("client_can") or ()),
            on_report=report_to(deployment.task_table, event["task"], now_ms),
        )
        if isinstance(tool, FunctionTool):
            output = run_function(tool, given, task)
            with state_retried_if_transient():
                if "ask" in output:
                    return {**output, **answers_carried(event, answers, payloads, prefix)}
                return result_carried(output, payloads, prefix)
        if isinstance(tool, WorkflowTool):
            output = run_step(tool, event["step"], given, task)
            with state_retried_if_transient():
                return payloads.offload(output, event.get("room") or STEP_ROOM, prefix)
        raise LookupError(f"there is no tool {TOOL} in this deployment")

    with step_errors_redacted(logger, explain_to(deployment.task_table, event["task"], now_ms)):
        output = run()
    logger.info("ran", remaining_ms=context.get_remaining_time_in_millis())
    return output
