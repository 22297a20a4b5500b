"""Which faults of AWS pass, by the errors that its services document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any, Final

import pytest
from botocore.awsrequest import AWSResponse, HTTPHeaders
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
    ReadTimeoutError,
)

from mcp_tasks.aws.clients import DEFAULT_CONFIG, aws_client
from mcp_tasks.aws.errors import error_code, is_transient, outcome_unknown
from tests.unit.support.aws import error_response

URL: Final = "https://dynamodb.us-east-1.amazonaws.com"


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError(error_response(code, status), "Operation")


@pytest.mark.parametrize(
    "code",
    [
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionConflictException",
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
    assert is_transient(refusal(code))


@pytest.mark.parametrize(
    ("reasons", "passes"),
    [
        (["ThrottlingError", "None"], True),
        (["None", "ProvisionedThroughputExceeded"], True),
        (["TransactionConflict", "ThrottlingError"], True),
        (["ConditionalCheckFailed", "ThrottlingError"], True),
        (["ConditionalCheckFailed", "None"], False),
        (["ThrottlingError", "ValidationError"], False),
        (["None", "ItemCollectionSizeLimitExceeded"], False),
    ],
)
def test_a_transaction_is_cancelled_for_a_while_or_for_good(
    reasons: list[str], passes: bool
) -> None:
    error: Any = refusal("TransactionCanceledException")
    error.response["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    assert is_transient(error) is passes


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_fault_of_the_service_passes(status: int) -> None:
    assert is_transient(refusal("InternalServerError", status))


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
    assert is_transient(error)


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
    ids=lambda error: error_code(error),
)
def test_what_is_asked_wrongly_does_not_pass(error: Exception) -> None:
    """And what is no answer of AWS is none of its faults: a bug of ours is not worth a retry."""
    assert not is_transient(error)


def test_an_error_that_says_nothing_does_not_pass() -> None:
    assert not is_transient(ClientError({}, "Operation"))


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
    assert error_code(error) == code


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
    assert outcome_unknown(error) is may_arrive


LOST, NOT_SENT = ReadTimeoutError, ConnectTimeoutError
THROTTLED: Final = "ThrottlingException"
CONFLICT: Final = "ConditionalCheckFailedException"
ATTEMPTS: Final = 4

Outcome = type[ReadTimeoutError] | type[ConnectTimeoutError] | str
"""Of one attempt: what is raised, or the error that AWS answers with."""


class Body(BytesIO):
    """An answer's, as urllib3 gives it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def final_error(monkeypatch: pytest.MonkeyPatch, outcomes: Iterable[Outcome]) -> Exception:
    """What a function's client raises whose attempts, one after the other, come to this."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    left = iter(outcomes)

    def send(**_: Any) -> AWSResponse:
        outcome = next(left)
        if not isinstance(outcome, str):
            raise outcome(endpoint_url=URL)
        body = Body(json.dumps({"__type": outcome}).encode())
        return AWSResponse(URL, 400, HTTPHeaders(), body)

    client = aws_client("dynamodb", DEFAULT_CONFIG)
    client.meta.events.register("before-send", send)
    with pytest.raises((ClientError, BotoCoreError)) as raised:
        client.delete_item(TableName="tasks", Key={"taskId": {"S": "1"}})
    assert list(left) == []
    return raised.value


@pytest.mark.parametrize(
    ("outcomes", "may_arrive"),
    [
        ([LOST] * ATTEMPTS, True),
        ([LOST, *[THROTTLED] * (ATTEMPTS - 1)], True),
        ([*[THROTTLED] * (ATTEMPTS - 2), LOST, THROTTLED], True),
        ([LOST, *[NOT_SENT] * (ATTEMPTS - 1)], True),
        ([THROTTLED] * ATTEMPTS, False),
        ([NOT_SENT] * ATTEMPTS, False),
        ([NOT_SENT, *[THROTTLED] * (ATTEMPTS - 1)], False),
        ([LOST, CONFLICT], False),
    ],
    ids=[
        "lost, all",
        "lost, then throttled",
        "lost between",
        "lost, then not sent",
        "throttled",
        "not sent",
        "not sent, then throttled",
        "lost, then refused",
    ],
)
def test_an_attempt_before_the_last_may_take_effect_too(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[Outcome], may_arrive: bool
) -> None:
    """botocore tells of the last one only."""
    assert outcome_unknown(final_error(monkeypatch, outcomes)) is may_arrive
