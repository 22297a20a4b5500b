"""The stack: a parts list."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CfnOutput, Stack, Tags
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue

from .api import McpApi
from .ask import AskFunction
from .finish import FinishFunction
from .functions import FunctionCode
from .settings import Settings
from .table import TasksTable
from .tools import ToolWorkflows


class McpTasksStack(Stack):
    """One cell: an endpoint, its tools, its tasks."""

    def __init__(
        self, scope: Construct, settings: Settings, catalogue: Catalogue, bundle: Path
    ) -> None:
        super().__init__(scope, settings.stack, description="Workflow-backed MCP server")
        code = FunctionCode(bundle, settings.profile)
        table = TasksTable(self, "Tasks")
        ask = AskFunction(self, "Ask", code, table)
        workflows = ToolWorkflows(self, "Tools", code, table, ask, catalogue, settings.cell)
        FinishFunction(self, "Finish", code, table, workflows)
        api = McpApi(self, "Api", code, table, workflows, catalogue, settings)
        Tags.of(self).add("mcp-cell", settings.cell)
        CfnOutput(self, "Endpoint", value=api.url, description="The MCP endpoint")
        CfnOutput(self, "ApiId", value=api.rest_api_id)
        CfnOutput(self, "Stage", value=api.stage)
        CfnOutput(self, "TasksTable", value=table.name)
        # W3005: the CDK lets a function depend on its role, which the function refers to as well.
        self.template_options.metadata = {"cfn-lint": {"config": {"ignore_checks": ["W3005"]}}}
