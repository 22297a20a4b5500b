"""How answers leave a function: whole when they are done, or as they are being written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway


@dataclass(frozen=True, slots=True)
class ResponseTransfer:
    """What a function and the gateway in front of it agree on."""

    timeout: Duration
    """The function's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the function gets in addition."""
    integration: Mapping[str, Any] = field(default_factory=dict)
    """How the gateway calls it, when not as it calls any function."""


BUFFERED: Final = ResponseTransfer(
    # After API Gateway's 29 seconds, so that the caller gets the gateway's 504 and its reason.
    timeout=Duration.seconds(30)
)

STREAMED: Final = ResponseTransfer(
    # Lambda's limit, and API Gateway's for a response that is streamed. A listen ends before it.
    # A regional endpoint also ends a response that is idle for 5 minutes: the server writes a
    # comment every 15 seconds.
    timeout=Duration.minutes(15),
    # Lambda's Python runtime does not stream: this starts a loop of our own in its place.
    environment={"AWS_LAMBDA_EXEC_WRAPPER": "/var/task/api/stream"},
    integration={
        "response_transfer_mode": apigateway.ResponseTransferMode.STREAM,
        "timeout": Duration.minutes(15),
    },
)
