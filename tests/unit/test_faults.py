"""Which faults of AWS pass, by the errors that its services document."""

from __future__ import annotations

from typing import Final

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
    ReadTimeoutError,
)

from mcp_tasks.faults import code_of, passing, unanswered
from tests.unit.aws import error_response

URL: Final = "https://dynamodb.us-east-1.amazonaws.com"


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError(error_response(code, status), "Operation")


@pytest.mark.parametrize(
    "code",
    [
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionInProgressException",
        "ExecutionLimitExceeded",
        "KmsThrottlingException",
        "SlowDown",
        "RequestTimeout",
        "TooManyRequestsException",
    ],
)
def test_no_room_passes(code: str) -> None:
    """Under a status that says that it is the caller's fault: 400."""
    assert passing(refusal(code))


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_fault_of_the_service_passes(status: int) -> None:
    assert passing(refusal("InternalServerError", status))


@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url="https://states"),
        ReadTimeoutError(endpoint_url="https://states"),
        EndpointConnectionError(endpoint_url="https://states"),
        ConnectionClosedError(endpoint_url="https://states"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_answer_that_never_came_passes(error: BotoCoreError) -> None:
    assert passing(error)


@pytest.mark.parametrize(
    "error",
    [
        refusal("AccessDeniedException"),
        refusal("ValidationException"),
        refusal("ConditionalCheckFailedException"),
        refusal("ResourceNotFoundException", 404),
        refusal("StateMachineDoesNotExist"),
        refusal("InvalidExecutionInput"),
        refusal("NoSuchBucket", 404),
        ParamValidationError(report="text"),
        ValueError("hunter2"),
        TimeoutError(),
    ],
    ids=lambda error: code_of(error),
)
def test_what_is_asked_wrongly_does_not_pass(error: Exception) -> None:
    """And what is no answer of AWS is none of its faults: a bug of ours is not worth a retry."""
    assert not passing(error)


def test_an_error_that_says_nothing_does_not_pass() -> None:
    assert not passing(ClientError({}, "Operation"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (refusal("SlowDown"), "SlowDown"),
        (ClientError({}, "Operation"), "ClientError"),
        (ReadTimeoutError(endpoint_url="https://states"), "ReadTimeoutError"),
        (KeyError("hunter2"), "KeyError"),
    ],
    ids=["client error", "no code", "no answer", "any other"],
)
def test_an_error_is_logged_by_its_name(error: Exception, code: str) -> None:
    """Its message may quote what was sent."""
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("error", "may_arrive"),
    [
        (ReadTimeoutError(endpoint_url=URL), True),
        (ConnectionClosedError(endpoint_url=URL), True),
        (ConnectTimeoutError(endpoint_url=URL), False),
        (EndpointConnectionError(endpoint_url=URL), False),
        (refusal("ThrottlingException"), False),
        (refusal("InternalServerError", 500), False),
        (ParamValidationError(report="wrong"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_call_that_was_sent_and_not_answered_may_still_take_effect(
    error: Exception, may_arrive: bool
) -> None:
    assert unanswered(error) is may_arrive
