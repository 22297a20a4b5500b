"""How a function's answer reaches the gateway: buffered, or streamed while it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway


@dataclass(frozen=True, slots=True)
class ResponseTransfer:
    """The settings that a function and the gateway in front of it share."""

    timeout: Duration
    """The function's timeout."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The function's additional environment variables."""
    integration: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the gateway's integration, where they differ from the defaults."""


BUFFERED: Final = ResponseTransfer(
    # After API Gateway's 29 seconds, so that the caller gets the gateway's 504 and its reason.
    timeout=Duration.seconds(30)
)

STREAMED: Final = ResponseTransfer(
    # The maximum of Lambda, and of API Gateway for a streamed response. A subscription ends before.
    # A regional endpoint also ends a response that is idle for 5 minutes: the server writes a
    # comment into a stream that is quiet for 20 seconds (`mcp_tasks.server.http.quiet_stream`).
    timeout=Duration.minutes(15),
    # Lambda's Python runtime does not stream: this starts `mcp_tasks.aws.streaming_runtime`
    # instead.
    environment={"AWS_LAMBDA_EXEC_WRAPPER": "/var/task/api/exec_wrapper"},
    integration={
        "response_transfer_mode": apigateway.ResponseTransferMode.STREAM,
        "timeout": Duration.minutes(15),
    },
)
