"""Faults of AWS that pass: no room for a call at the moment, a fault inside, a lost answer.

What a caller is told of them is that the call may be repeated. The SDK's own retries are over by
the time that they get here (AWS SDKs and Tools reference guide, "Retry behavior").
"""

from __future__ import annotations

from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
)

NO_ROOM: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "ExecutionLimitExceeded",
        "KmsThrottlingException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
"""Errors that come with a status below 500 and are none of the caller's."""


def passing(error: BaseException) -> bool:
    """Whether the same call may succeed another time."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or code_of(error) in NO_ROOM
    return isinstance(error, BotoCoreError) and not isinstance(error, ParamValidationError)


def unanswered(error: BaseException) -> bool:
    """Whether a call was sent, and may take effect even now."""
    not_sent = (ClientError, ConnectTimeoutError, EndpointConnectionError)
    return passing(error) and not isinstance(error, not_sent)


def code_of(error: BaseException) -> str:
    """The error's code, or its type: safe to log, whatever its message quotes."""
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") or "ClientError"
    return type(error).__name__
