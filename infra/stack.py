"""The stack: a parts list."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aws_cdk import Annotations, CfnOutput, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue

from .api import ApiProps, McpApi
from .ask import AskFunction
from .audiences import warn_of_other_audiences
from .authorizer_function import Authorizer
from .budget import TAG
from .custom_domain import CustomDomain
from .deliver import DeliverFunction
from .encryption import Encryption
from .endpoint_address import serves_its_root
from .event_bus import TaskEvents
from .execution_log import ExecutionLog
from .finish import FinishFunction
from .function_code import FunctionCode
from .kept_choices import CHOICES, kept_choices
from .monitoring import Monitoring
from .payloads_bucket import PayloadsBucket
from .publish import PublishFunction
from .rest_api import Gateway
from .retained_data import protect_data
from .routing import Routing
from .settings import Settings
from .subscriptions_api import SubscriptionsApi
from .subtasks import SubtasksFunction
from .sweep import SweepFunction, SweptStores
from .tables import Tables
from .tool_workflows import ToolWorkflows, WorkflowProps
from .tracebacks import TracebacksLog

HIDDEN_ISSUER: Final = (
    "-c auth=oauth without a domain: clients that do not follow WWW-Authenticate cannot find the "
    "issuer, because API Gateway's own host serves nothing outside of a stage (RFC 9728, section "
    "3.1). Add -c domain=mcp.example.com -c hosted_zone=ID (aws route53 list-hosted-zones), or "
    "-c url= of a CDN in front; make doctor url=... shows where each client would stop"
)


class McpTasksStack(Stack):
    """One cell: an endpoint, its tools, its tasks, and the notifications about them."""

    def __init__(
        self, scope: Construct, settings: Settings, catalogue: Catalogue, bundle: Path
    ) -> None:
        super().__init__(scope, settings.stack, description="Workflow-backed MCP server")
        encryption = Encryption(self, "Encryption", settings.encryption, settings.earlier_keys)
        watching = settings.monitoring
        code = self._function_code(bundle, settings, encryption)
        tables = Tables.create(self, encryption)
        payloads = PayloadsBucket(self, "Payloads", encryption, settings.max_ttl)
        ask = AskFunction(self, "Ask", code, tables.tasks)
        subtasks = SubtasksFunction(self, "Subtasks", code, tables, payloads)
        task_events = TaskEvents(self, "Events", encryption)
        instances = settings.max_workers
        log = ExecutionLog(self, "Executions", encryption) if watching.execution_log else None
        props = WorkflowProps(code, tables, payloads, ask, subtasks, task_events, instances, log)
        workflows = ToolWorkflows(self, "Tools", props, catalogue, settings.cell)
        FinishFunction(self, "Finish", code, tables, payloads, workflows)
        stores = SweptStores(tables, payloads)
        SweepFunction(self, "Sweep", code, stores, workflows, task_events)
        PublishFunction(self, "Publish", code, tables.tasks, task_events, watching.tool_metrics)
        deliver = DeliverFunction(self, "Deliver", code, tables.mailboxes, task_events)
        authorizer = None
        if oauth := settings.oauth:
            authorizer = Authorizer(self, "Authorizer", code, oauth, settings.rollout)
        apis = ApiProps(code, tables, payloads, settings, task_events, authorizer)
        api = McpApi(self, "Api", apis, workflows, catalogue)
        # What subscribes is replaced after `deliver`, which reads what both versions write.
        api.function.node.add_dependency(deliver.function)
        self._answer_at_domain(api.gateway, apis, deliver.function)
        if settings.profile.monitored:
            Monitoring(self, "Monitoring", watching, settings.cell, encryption)
        self._tag(settings.cell)
        CfnOutput(self, "TasksTable", value=tables.tasks.name)
        CfnOutput(self, "JournalTable", value=tables.journal.name)
        CfnOutput(self, "PayloadsBucket", value=payloads.name, description="Outlives the stack")
        CfnOutput(self, "EventBus", value=task_events.name, description="Gets every change")
        protect_data(self, retain=settings.data == "retain")
        self._warn_of_open_server(settings)
        self._warn_of_hidden_issuer(settings)
        self._describe(settings)

    def _describe(self, settings: Settings) -> None:
        """Add the template's metadata: what was chosen, and what cfn-lint need not look at."""
        # W3005: the CDK lets a function depend on its role, which the function refers to as well.
        self.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3005"]}})
        self.add_metadata(CHOICES, kept_choices(settings))

    def _function_code(
        self, bundle: Path, settings: Settings, encryption: Encryption
    ) -> FunctionCode:
        """What all functions run, and where they write tracebacks."""
        tracebacks = TracebacksLog(self, "Tracebacks") if settings.log_messages else None
        reserved, tracing = settings.reserved_concurrency, settings.monitoring.tracing
        return FunctionCode(bundle, reserved, encryption, tracing, tracebacks)

    def _tag(self, cell: str) -> None:
        """Tag everything that takes tags, so that its cost can be told. A dashboard takes none by
        the specification that cfn-lint has.
        """
        dashboards = ["AWS::CloudWatch::Dashboard"]
        Tags.of(self).add(TAG, cell, exclude_resource_types=dashboards)

    def _answer_at_domain(
        self, gateway: Gateway, apis: ApiProps, deliver: lambda_.Function
    ) -> None:
        """The API's outputs; with a domain, its rules, and an API of their own for subscriptions
        if they are streamed.
        """
        settings, subscriptions = apis.settings, gateway
        if settings.separate_subscriptions_api:
            api = SubscriptionsApi(self, "SubscriptionsApi", apis)
            api.function.node.add_dependency(deliver)
            subscriptions = api.gateway
            CfnOutput(self, "SubscriptionsApiId", value=subscriptions.rest_api_id)
        if settings.domain:
            routing = Routing(self, "Routing", settings, gateway, subscriptions)
            if settings.own_domain:
                domain = CustomDomain(self, "Domain", settings.own_domain)
                routing.node.add_dependency(domain)
                # An update of a stage closes API Gateway's own host (developer guide, "Disable the
                # default endpoint for REST APIs"): not while the certificate is being validated.
                for each in dict.fromkeys((gateway, subscriptions)):
                    each.deploy_after(domain)
        warn_of_other_audiences(self, settings.oauth, gateway.url)
        CfnOutput(self, "Endpoint", value=gateway.url, description="The MCP endpoint")
        CfnOutput(self, "ApiId", value=gateway.rest_api_id)
        CfnOutput(self, "Stage", value=gateway.stage)

    def _warn_of_open_server(self, settings: Settings) -> None:
        if settings.auth == "none" and settings.profile.auth != "none":
            Annotations.of(self).add_warning_v2(
                "mcp-tasks:open",
                "-c auth=none: anybody who knows the endpoint can call every tool, and all callers "
                "count as one",
            )

    def _warn_of_hidden_issuer(self, settings: Settings) -> None:
        if settings.oauth and not serves_its_root(settings) and not settings.profile.loopback:
            Annotations.of(self).add_warning_v2("mcp-tasks:discovery", HIDDEN_ISSUER)
