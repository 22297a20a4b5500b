"""The function that answers MCP requests, its permissions, and the API Gateway in front of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks import environment
from mcp_tasks.notifications.server_changes import RESOURCE_UPDATED
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.tool import Tool

from .alarms import alarm_for_server_errors, metrics_namespace
from .authorizer_function import Authorizer
from .event_bus import TaskEvents
from .function_code import FunctionCode
from .grants import allow, allow_declared, allow_executions, role_of
from .payloads_bucket import PayloadsBucket
from .request_state_key import RequestStateKey
from .response_transfer import BUFFERED, STREAMED, ResponseTransfer
from .rest_api import Gateway, GatewayProps
from .rollout import GradualRollout
from .secrets import allow_secrets, environment_of
from .settings import Settings
from .tables import Tables
from .tool_workflows import ToolWorkflows

MAILBOX_ACTIONS: Final = (
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:BatchWriteItem",
)
"""What `subscriptions/listen` does with its mailbox, and with the quota of its caller."""
SESSION_ACTIONS: Final = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
CALLER_ACTIONS: Final = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
)
"""What quotas and idempotency keys do with a caller's items."""


@dataclass(frozen=True, slots=True)
class ApiProps:
    """What every API of the stack is built from."""

    code: FunctionCode
    tables: Tables
    payloads: PayloadsBucket
    settings: Settings
    task_events: TaskEvents
    authorizer: Authorizer | None
    """Checks access tokens, where there are any (`-c auth=oauth`)."""

    def environment(self, transfer: ResponseTransfer) -> dict[str, str]:
        """What the server's code reads, whichever methods it answers."""
        settings = self.settings
        return {
            environment.TASKS_TABLE: self.tables.tasks.name,
            environment.MAILBOXES_TABLE: self.tables.mailboxes.name,
            environment.CALLERS_TABLE: self.tables.callers.name,
            environment.PAYLOADS_BUCKET: self.payloads.name,
            environment.CELL: settings.cell,
            environment.AUTH: settings.auth,
            environment.PRINCIPAL: settings.iam.principal,
            environment.QUOTA_PER: settings.iam.quota_per,
            environment.SCOPES: " ".join(settings.oauth.scopes) if settings.oauth else "",
            environment.SCOPE_PREFIX: settings.oauth.scope_names.prefix if settings.oauth else "",
            environment.RESOURCE_METADATA_URL: "",  # `Gateway` sets it when it serves the document
            environment.TRACING: "on" if settings.monitoring.tracing else "off",
            environment.COMPANION_TOOLS: "on" if settings.companion_tools else "off",
            environment.LIMITS: settings.limits.to_json(),
            environment.ALLOWED_ORIGINS: " ".join(settings.allowed_origins),
            environment.ALLOWED_HOSTS: " ".join(settings.allowed_hosts),
            **transfer.environment,
        }

    def gateway(
        self,
        scope: Construct,
        name: str,
        function: lambda_.Function,
        transfer: ResponseTransfer,
        alias: lambda_.IFunction | None = None,
    ) -> Gateway:
        """The API Gateway in front of a function, or of its alias."""
        called = alias or function
        props = GatewayProps(
            name, function, called, transfer, self.settings, self.authorizer, self.code.encryption
        )
        return Gateway(scope, "Gateway", props)


class McpApi(Construct):
    """The MCP endpoint: one function for all methods, behind a gateway."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        props: ApiProps,
        workflows: ToolWorkflows,
        catalogue: Catalogue,
    ) -> None:
        super().__init__(scope, construct_id)
        settings = props.settings
        streams = settings.streaming and not settings.separate_subscriptions_api
        transfer = STREAMED if streams else BUFFERED
        state_key = RequestStateKey(self, "RequestStateKey", props.code.encryption)
        self.function = function = props.code.function(
            self,
            "api",
            description="Answers MCP requests",
            environment={
                **environment_of(_within_requests(catalogue)),
                **props.environment(transfer),
                environment.SESSIONS_TABLE: props.tables.sessions.name,
                environment.EVENT_BUS: props.task_events.name,
                environment.STATE_MACHINE_PREFIX: workflows.arn_prefix,
                **metrics_namespace(self),
                environment.REQUEST_STATE_KEY_SECRET: state_key.arn,
            },
            timeout=transfer.timeout,
            memory_mb=1024,
        )
        _allow_storing(function, props)
        _allow_executions(function, workflows)
        workflows.allow_reading_executions(function, props.code.encryption)
        _allow_declared_permissions(function, catalogue)
        state_key.allow_reading(function)
        called = settings.rollout.api(function)
        self.gateway = props.gateway(self, settings.stack, function, transfer, called)
        if settings.rollout.deployment_config and isinstance(called, lambda_.Alias):
            alarm = alarm_for_server_errors(self, self.gateway.rest_api)
            GradualRollout(self, "Rollout", called, settings.rollout.deployment_config, [alarm])


def _allow_storing(function: lambda_.Function, props: ApiProps) -> None:
    props.tables.tasks.grant(
        function,
        "dynamodb:PutItem",
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:UpdateItem",
    )
    props.tables.tasks.allow_listing(function)
    props.tables.mailboxes.grant(function, *MAILBOX_ACTIONS)
    props.tables.callers.grant(function, *CALLER_ACTIONS)
    props.tables.sessions.grant(function, *SESSION_ACTIONS)
    props.payloads.allow(function, ["s3:GetObject", "s3:PutObject"], "")
    props.task_events.allow_announcing(function, RESOURCE_UPDATED)


def _allow_executions(function: lambda_.Function, workflows: ToolWorkflows) -> None:
    """SendTaskSuccess and SendTaskHeartbeat are checked against the token's state machine, though
    the service authorization reference lists no resource for them. The CDK's
    `grant_task_response` relies on it, too.
    """
    allow(
        function,
        ["states:StartExecution", "states:SendTaskSuccess", "states:SendTaskHeartbeat"],
        workflows.state_machines,
    )
    allow_executions(
        function, ["states:DescribeExecution", "states:StopExecution"], workflows.executions
    )
    workflows.allow_seeing_removal(function)


def _within_requests(catalogue: Catalogue) -> list[Tool]:
    """The tools of which code runs within requests."""
    entries = catalogue.tools.values()
    return [e.load() for e in entries if e.task_support != "required" or e.asks_first]


def _allow_declared_permissions(function: lambda_.Function, catalogue: Catalogue) -> None:
    """The permissions of code that runs within requests, and not in a worker of its own."""
    for tool in _within_requests(catalogue):
        allow_declared(role_of(function), tool.name, tool.permissions)
        allow_secrets(function, tool)
    for resource in catalogue.resources.values():
        allow_declared(role_of(function), resource.name, resource.load().permissions)
    for prompt in catalogue.prompts.values():
        allow_declared(role_of(function), prompt.name, prompt.load().permissions)
