"""Runs one tool's Python: a function tool, or one step of a workflow tool.

Each tool has a worker of its own, with a role, a timeout and memory of its own. Its event:

    {"task": "c1-...", "input": {...}, "answers": {...}, "client_can": [...]}   a function tool
    {"task": "c1-...", "input": {...}, "step": "split"}                         a workflow's step

and, when the client sent trace context, `"trace": {"traceparent": ...}` in both.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from mcp_tasks.deployment import Deployment
from mcp_tasks.protocol.trace import logged, trace_context
from mcp_tasks.registry.context import TaskContext
from mcp_tasks.registry.tool import FunctionTool, WorkflowTool
from mcp_tasks.tasks.task import now_ms
from mcp_tasks.workflows.steps import explain_to, guarded, report_to, run_function, run_step

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
deployment = Deployment(os.environ)
entry = deployment.catalogue.tools.get(os.environ["TOOL"])


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Run it, and return its output; a failure leaves under its own name, without its message."""
    logger.append_keys(task_id=event["task"], tool=os.environ["TOOL"], step=event.get("step"))
    logger.append_keys(**logged(trace_context(event.get("trace") or {})))
    task = TaskContext(
        task_id=event["task"],
        answers=event.get("answers") or {},
        client_can=frozenset(event.get("client_can") or ()),
        on_report=report_to(deployment.rows, event["task"], now_ms),
    )

    def run() -> Any:
        tool = entry.load() if entry else None
        if isinstance(tool, FunctionTool):
            return run_function(tool, event["input"], task)
        if isinstance(tool, WorkflowTool):
            return run_step(tool, event["step"], event["input"], task)
        raise LookupError(f"there is no tool {os.environ['TOOL']} in this deployment")

    output = guarded(run, logger, explain_to(deployment.rows, event["task"], now_ms))
    logger.info("ran", remaining_ms=context.get_remaining_time_in_millis())
    return output
