"""The stack: a parts list."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack, Tags
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue

from .api import McpApi
from .ask import AskFunction
from .bundle import build
from .finish import FinishFunction
from .functions import FunctionCode
from .settings import Settings
from .table import TasksTable
from .tools import ToolWorkflows


class McpTasksStack(Stack):
    """One cell: an endpoint, its tools, its tasks."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, settings.stack, description="Workflow-backed MCP server")
        catalogue = Catalogue.discover(settings.tools)
        code = FunctionCode(
            self, build(catalogue, settings.tools, settings.profile.target), settings.profile
        )
        table = TasksTable(self, "Tasks")
        ask = AskFunction(self, "Ask", code, table)
        workflows = ToolWorkflows(self, "Tools", code, table, ask, catalogue)
        FinishFunction(self, "Finish", code, table, workflows)
        api = McpApi(self, "Api", code, table, workflows, settings)
        Tags.of(self).add("mcp-cell", settings.cell)
        CfnOutput(self, "Endpoint", value=api.url, description="The MCP endpoint")
        CfnOutput(self, "ApiId", value=api.rest_api_id)
        CfnOutput(self, "Stage", value=api.stage)
        CfnOutput(self, "TasksTable", value=table.name)
