"""The streaming endpoint for listens, next to the buffered one for all else."""

from __future__ import annotations

from constructs import Construct

from .api import LISTENING, server_environment
from .authorizer_function import Authorizer
from .callers import CallersTable
from .function_code import FunctionCode
from .gateway import Gateway
from .mailboxes import MailboxesTable
from .payloads_bucket import PayloadsBucket
from .response_transfer import STREAMED
from .settings import Settings
from .table import TasksTable


class ListenApi(Construct):
    """The same code as `McpApi`'s, which may not do here what only other methods need.

    A domain's routing rules bring it nothing but `subscriptions/listen`. Asked at its gateway's own
    address, it also answers what needs no more than that, and calls of tools fail (-32603).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        mailboxes: MailboxesTable,
        callers: CallersTable,
        payloads: PayloadsBucket,
        settings: Settings,
        authorizer: Authorizer | None,
    ) -> None:
        super().__init__(scope, construct_id)
        # It mostly waits: what it costs is its memory, for as long as a listen lasts.
        function = code.function(
            self,
            "api",
            description="Answers MCP listens as a stream",
            environment=server_environment(table, mailboxes, callers, payloads, settings, STREAMED),
            timeout=STREAMED.timeout,
            memory_mb=512,
        )
        table.grant(function, "dynamodb:GetItem", "dynamodb:BatchGetItem")
        mailboxes.grant(function, *LISTENING)
        callers.grant(function, "dynamodb:GetItem", "dynamodb:UpdateItem")
        payloads.allow(function, ["s3:GetObject"], "")
        self.gateway = Gateway(
            self,
            f"{settings.stack}-listens",
            function,
            STREAMED,
            settings,
            authorizer,
            code.encryption,
        )
