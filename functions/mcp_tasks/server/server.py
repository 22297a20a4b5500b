"""The server of a deployment: every method it answers, by name."""

from __future__ import annotations

from ..deployment import Deployment
from .discovery import discover, list_tools
from .endpoint import Endpoint
from .methods import MethodTable
from .tasks_extension import cancel_task, get_task, update_task
from .tool_calls import call_tool


def mcp_server(deployment: Deployment) -> Endpoint:
    """The MCP endpoint of a deployment. What is not in this table is answered with -32601."""
    rows, executions = deployment.rows, deployment.executions
    methods: MethodTable = {
        "server/discover": discover(),
        "tools/list": list_tools(deployment.catalogue),
        "tools/call": call_tool(
            deployment.catalogue, rows, executions, deployment.state_machine_arn, deployment.cell
        ),
        "tasks/get": get_task(rows),
        "tasks/update": update_task(rows, executions),
        "tasks/cancel": cancel_task(rows, executions),
    }
    return Endpoint(methods, deployment.server_info, deployment.allowed_origins)
