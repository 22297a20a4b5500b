"""Errors of AWS: which are transient (throttling, an internal error, a lost answer), and which
leave open whether the call took effect.

The SDK has used up its own retries when it raises one of them (AWS SDKs and Tools reference guide,
"Retry behavior").
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
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""Transient errors whose HTTP status is below 500, as if the caller were at fault."""

PASSING_REASONS: Final = frozenset(
    {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}
)
"""Why DynamoDB cancels a transaction that may succeed when it is repeated (API reference,
"TransactWriteItems")."""

_UNANSWERED: Final = "mcp-tasks/unanswered"
"""The mark of an error before which an earlier attempt of the call got no answer."""


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed when it is repeated."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        passes = status >= 500 or error_code(error) in THROTTLING_CODES
        return passes or _cancelled_for_a_while(error)
    return isinstance(error, BotoCoreError) and not isinstance(error, ParamValidationError)


def outcome_unknown(error: BaseException) -> bool:
    """Whether a failed call was sent, and may have taken effect or take effect later.

    An earlier attempt counts as well: `record_unanswered_attempts` marks the errors after one.
    """
    if isinstance(error, ClientError):
        return is_transient(error) and _UNANSWERED in error.response.get("ResponseMetadata", {})
    return is_transient(error) and (_sent(error) or hasattr(error, _UNANSWERED))


def record_unanswered_attempts(client: BaseClient) -> None:
    """Record on a client's errors whether an earlier attempt of the call got no answer.

    botocore raises the last attempt's error, and reports earlier attempts only as a count. It emits
    the event `needs-retry` after each attempt, and `after-call` or `after-call-error` after the
    last.
    """
    events = client.meta.events
    events.register("needs-retry", _record_attempt)
    events.register("after-call", _mark_response)
    events.register("after-call-error", _mark_exception)


def _cancelled_for_a_while(error: ClientError) -> bool:
    """Whether a transaction was cancelled for want of capacity, or by another write. What it says
    of conditions then, it says of rows that may be changed by the time that it is repeated."""
    response: Any = error.response
    reasons = {str(each.get("Code")) for each in response.get("CancellationReasons", ())}
    lasting = reasons - PASSING_REASONS - {"None", "ConditionalCheckFailed"}
    return bool(reasons & PASSING_REASONS) and not lasting


def _sent(error: BaseException) -> bool:
    """Whether the call was sent when an error came that is not an answer of AWS."""
    return not isinstance(error, (ConnectTimeoutError, EndpointConnectionError))


def _record_attempt(
    caught_exception: Exception | None, request_dict: dict[str, Any], **_: Any
) -> None:
    if caught_exception is not None and _sent(caught_exception):
        request_dict["context"][_UNANSWERED] = True


def _mark_response(parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    if _UNANSWERED in context:
        parsed["ResponseMetadata"][_UNANSWERED] = True


def _mark_exception(exception: Exception, context: dict[str, Any], **_: Any) -> None:
    if _UNANSWERED in context:
        setattr(exception, _UNANSWERED, True)


def error_code(error: BaseException) -> str:
    """The error's code, or the name of its class: safe to log, unlike its message."""
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") or "ClientError"
    return type(error).__name__
