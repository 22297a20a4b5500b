"""The streaming API for `subscriptions/listen`, beside the buffered one for all other methods."""

from __future__ import annotations

from constructs import Construct

from mcp_tasks import environment

from .api import MAILBOX_ACTIONS, ApiProps
from .response_transfer import STREAMED


class SubscriptionsApi(Construct):
    """The same code as `McpApi`'s, with the permissions that `subscriptions/listen` needs.

    A domain's routing rules send it nothing but `subscriptions/listen`. Any other request to its
    gateway's own address is an unknown method, so no tool runs in it.
    """

    def __init__(self, scope: Construct, construct_id: str, props: ApiProps) -> None:
        super().__init__(scope, construct_id)
        # It mostly waits, and costs its memory for as long as a subscription lasts.
        self.function = function = props.code.function(
            self,
            "api",
            description="Answers subscriptions/listen as a stream",
            environment={
                **props.environment(STREAMED),
                environment.METHODS: "subscriptions/listen",
            },
            timeout=STREAMED.timeout,
            memory_mb=512,
        )
        props.tables.tasks.grant(function, "dynamodb:GetItem", "dynamodb:BatchGetItem")
        props.tables.mailboxes.grant(function, *MAILBOX_ACTIONS)
        props.payloads.allow(function, ["s3:GetObject"], "")
        name = f"{props.settings.stack}-subscriptions"
        self.gateway = props.gateway(self, name, function, STREAMED)
