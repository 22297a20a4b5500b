"""The stack: a parts list."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Annotations, CfnOutput, Stack, Tags
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue

from .alarms import tell
from .api import McpApi
from .ask import AskFunction
from .authorizer_function import Authorizer
from .callers import CallersTable
from .deliver import DeliverFunction
from .encryption import Encryption
from .event_bus import TaskEvents
from .finish import FinishFunction
from .function_code import FunctionCode
from .listen_api import ListenApi
from .mailboxes import MailboxesTable
from .payloads_bucket import PayloadsBucket
from .publish import PublishFunction
from .routing import Routing
from .settings import Settings
from .sweep import SweepFunction
from .table import TasksTable
from .tool_workflows import ToolWorkflows


class McpTasksStack(Stack):
    """One cell: an endpoint, its tools, its tasks, and those who follow them."""

    def __init__(
        self, scope: Construct, settings: Settings, catalogue: Catalogue, bundle: Path
    ) -> None:
        super().__init__(scope, settings.stack, description="Workflow-backed MCP server")
        encryption = Encryption(self, "Encryption", settings.encryption)
        code = FunctionCode(bundle, settings.profile, encryption)
        table = TasksTable(self, "Tasks", encryption)
        mailboxes = MailboxesTable(self, "Mailboxes", encryption)
        callers = CallersTable(self, "Callers", encryption)
        payloads = PayloadsBucket(self, "Payloads", encryption, settings.max_ttl)
        ask = AskFunction(self, "Ask", code, table)
        workflows = ToolWorkflows(
            self, "Tools", code, table, payloads, ask, catalogue, settings.cell
        )
        FinishFunction(self, "Finish", code, table, payloads, workflows)
        SweepFunction(self, "Sweep", code, table, payloads, workflows)
        task_events = TaskEvents(self, "Events", encryption)
        PublishFunction(self, "Publish", code, table, task_events)
        DeliverFunction(self, "Deliver", code, mailboxes, task_events)
        authorizer = None
        if settings.oauth:
            authorizer = Authorizer(self, "Authorizer", code, settings.oauth)
        api = McpApi(
            self,
            "Api",
            code,
            table,
            mailboxes,
            callers,
            payloads,
            workflows,
            catalogue,
            settings,
            authorizer,
        )
        gateway = listens = api.gateway
        if settings.separate_subscriptions_api:
            listens = ListenApi(
                self, "Listens", code, table, mailboxes, callers, payloads, settings, authorizer
            ).gateway
            CfnOutput(self, "ListensApiId", value=listens.rest_api_id)
        if settings.domain:
            Routing(self, "Routing", settings, gateway, listens)
        if settings.alarms:
            tell(self, settings.alarms)
        Tags.of(self).add("mcp-cell", settings.cell)
        CfnOutput(self, "Endpoint", value=gateway.url, description="The MCP endpoint")
        CfnOutput(self, "ApiId", value=gateway.rest_api_id)
        CfnOutput(self, "Stage", value=gateway.stage)
        CfnOutput(self, "TasksTable", value=table.name)
        CfnOutput(self, "PayloadsBucket", value=payloads.name, description="Outlives the stack")
        CfnOutput(self, "EventBus", value=task_events.name, description="Hears every change")
        if settings.auth == "none" and settings.profile.auth != "none":
            Annotations.of(self).add_warning_v2(
                "mcp-tasks:open",
                "-c auth=none: anybody who knows the endpoint can call every tool, and all callers "
                "count as one",
            )
        # W3005: the CDK lets a function depend on its role, which the function refers to as well.
        self.template_options.metadata = {"cfn-lint": {"config": {"ignore_checks": ["W3005"]}}}
