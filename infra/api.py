"""The function that answers MCP requests, and what it may do."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks.registry.catalogue import Catalogue

from .authorizer_function import Authorizer
from .callers import CallersTable
from .function_code import FunctionCode
from .gateway import Gateway
from .grants import allow, allow_declared, allow_executions, role_of
from .mailboxes import MailboxesTable
from .payloads_bucket import PayloadsBucket
from .request_state_key import StateKey
from .response_transfer import BUFFERED, STREAMED, ResponseTransfer
from .settings import Settings
from .table import TasksTable
from .tool_workflows import ToolWorkflows

LISTENING: Final = (
    "dynamodb:Query",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
)
"""What a listen does with its mailbox."""
COUNTING: Final = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
)
"""What limits and idempotency keys do with a caller's items."""


class McpApi(Construct):
    """The MCP endpoint: a function behind a gateway."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        mailboxes: MailboxesTable,
        callers: CallersTable,
        payloads: PayloadsBucket,
        workflows: ToolWorkflows,
        catalogue: Catalogue,
        settings: Settings,
        authorizer: Authorizer | None,
    ) -> None:
        super().__init__(scope, construct_id)
        transfer = (
            STREAMED if settings.streaming and not settings.separate_subscriptions_api else BUFFERED
        )
        state_key = StateKey(self, "StateKey", code.encryption)
        function = code.function(
            self,
            "api",
            description="Answers MCP requests",
            environment={
                **server_environment(table, mailboxes, callers, payloads, settings, transfer),
                "STATE_MACHINE_PREFIX": workflows.arn_prefix,
                "REQUEST_STATE_KEY_SECRET": state_key.arn,
            },
            timeout=transfer.timeout,
            memory_mb=1024,
        )
        table.grant(
            function,
            "dynamodb:PutItem",
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:UpdateItem",
        )
        mailboxes.grant(function, *LISTENING)
        callers.grant(function, *COUNTING)
        payloads.allow(function, ["s3:GetObject", "s3:PutObject"], "")
        # Answers to tokens are checked against the token's state machine, though the authorization
        # reference lists no resource for them; the CDK's `grant_task_response` relies on it, too.
        allow(
            function,
            ["states:StartExecution", "states:SendTaskSuccess", "states:SendTaskHeartbeat"],
            workflows.state_machines,
        )
        allow_executions(
            function, ["states:DescribeExecution", "states:StopExecution"], workflows.executions
        )
        code.encryption.allow_reading_executions(function, workflows.own)
        self._allow_what_runs_here(function, catalogue)
        state_key.allow_reading(function)
        self.gateway = Gateway(
            self, settings.stack, function, transfer, settings, authorizer, code.encryption
        )

    def _allow_what_runs_here(self, function: lambda_.Function, catalogue: Catalogue) -> None:
        """What the code declares that runs within requests, and not in a worker of its own."""
        for tool in catalogue.tools.values():
            if tool.task_support != "required" or tool.asks_first:
                allow_declared(role_of(function), tool.name, tool.load().permissions)
        for resource in catalogue.resources.values():
            allow_declared(role_of(function), resource.name, resource.load().permissions)
        for prompt in catalogue.prompts.values():
            allow_declared(role_of(function), prompt.name, prompt.load().permissions)


def server_environment(
    table: TasksTable,
    mailboxes: MailboxesTable,
    callers: CallersTable,
    payloads: PayloadsBucket,
    settings: Settings,
    transfer: ResponseTransfer,
) -> dict[str, str]:
    """What the server's code reads, whichever methods it answers."""
    return {
        "TASKS_TABLE": table.name,
        "MAILBOXES_TABLE": mailboxes.name,
        "CALLERS_TABLE": callers.name,
        "PAYLOADS_BUCKET": payloads.name,
        "CELL": settings.cell,
        "AUTH": settings.auth,
        "SCOPES": " ".join(settings.oauth.scopes) if settings.oauth else "",
        "RESOURCE_METADATA_URL": "",  # the gateway's to say, if it serves any
        "LIMITS": settings.limits.to_json(),
        "ALLOWED_ORIGINS": " ".join(settings.allowed_origins),
        "ALLOWED_HOSTS": " ".join(settings.allowed_hosts),
        **transfer.environment,
    }
