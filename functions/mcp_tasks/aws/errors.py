"""Faults of AWS that pass: no room for a call at the moment, a fault inside, a lost answer.

What a caller is told of them is that the call may be repeated. The SDK's own retries are over by
the time that they get here (AWS SDKs and Tools reference guide, "Retry behavior").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
)

if TYPE_CHECKING:
    from botocore.client import BaseClient

THROTTLING_CODES: Final = frozenset(
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

_EARLIER: Final = "mcp-tasks/unanswered"
"""Where an error keeps that an attempt before the last was not answered."""


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed another time."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error_code(error) in THROTTLING_CODES
    return isinstance(error, BotoCoreError) and not isinstance(error, ParamValidationError)


def outcome_unknown(error: BaseException) -> bool:
    """Whether a call was sent, and may take effect even now.

    It may be an attempt before the last that was: botocore raises what came of the last, and tells
    of those before it only how many there were. Clients tell more (see `notice_unanswered`).
    """
    if isinstance(error, ClientError):
        return is_transient(error) and _EARLIER in error.response.get("ResponseMetadata", {})
    return is_transient(error) and (_sent(error) or hasattr(error, _EARLIER))


def record_unanswered_attempts(client: BaseClient) -> None:
    """Have a client's errors tell whether an attempt before the last was not answered.

    botocore emits `needs-retry` after each attempt, and `after-call` or `after-call-error` after
    the last.
    """
    events = client.meta.events
    events.register("needs-retry", _note)
    events.register("after-call", _tell)
    events.register("after-call-error", _tell_with)


def _sent(error: BaseException) -> bool:
    """Whether an error other than AWS's own came when the call was on its way."""
    return not isinstance(error, (ConnectTimeoutError, EndpointConnectionError))


def _note(caught_exception: Exception | None, request_dict: dict[str, Any], **_: Any) -> None:
    if caught_exception is not None and _sent(caught_exception):
        request_dict["context"][_EARLIER] = True


def _tell(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    if _EARLIER in context:
        parsed["ResponseMetadata"][_EARLIER] = True


def _tell_with(exception: Exception, context: dict[str, Any], **_: Any) -> None:
    if _EARLIER in context:
        setattr(exception, _EARLIER, True)


def error_code(error: BaseException) -> str:
    """The error's code, or its type: safe to log, whatever its message quotes."""
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") or "ClientError"
    return type(error).__name__
