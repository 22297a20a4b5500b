"""The errors that Step Functions retries: transient errors of AWS, and none of a tool."""

from __future__ import annotations

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError, EndpointConnectionError

from infra.state_machine_definition import TRANSIENT_ERRORS, UNKNOWN_OUTCOME_ERRORS
from mcp_tasks.redaction import step_errors_redacted
from mcp_tasks.workflows.retry import TRANSIENT_ERROR, state_retried_if_transient
from tests.unit.support.aws import error_response


def refused(code: str, status: int = 400) -> ClientError:
    return ClientError(error_response(code, status), "PutObject")


@pytest.mark.parametrize(
    "error",
    [
        refused("SlowDown", 503),
        refused("ProvisionedThroughputExceededException"),
        EndpointConnectionError(endpoint_url="https://s3"),
        refused("AccessDenied", 403),
    ],
    ids=["S3's throttle", "DynamoDB's", "no connection", "a permission that is missing yet"],
)
def test_a_transient_error_leaves_under_the_name_that_states_retry(error: Exception) -> None:
    with (
        pytest.raises(Exception, match=rf"^\[{TRANSIENT_ERROR}\]") as raised,
        state_retried_if_transient(),
    ):
        raise error
    assert type(raised.value).__name__ == TRANSIENT_ERROR
    assert TRANSIENT_ERROR in TRANSIENT_ERRORS


@pytest.mark.parametrize("error", [refused("NoSuchBucket"), KeyError("a")], ids=["S3's", "a bug"])
def test_another_error_leaves_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, state_retried_if_transient():
        raise error
    assert raised.value is error


@pytest.mark.parametrize("name", ["Unavailable", "ServiceException", "ClientError", "Timeout"])
def test_no_exception_of_an_author_s_is_taken_for_a_transient_error(name: str) -> None:
    """Lambda's errorType is the class's `__name__`. A step that raised it may have had effects."""

    def run() -> None:
        raise type(name, (Exception,), {})

    with (
        pytest.raises(Exception, match=name) as left,
        step_errors_redacted(Logger(), list[str]().append),
    ):
        run()
    assert type(left.value).__name__ not in (*TRANSIENT_ERRORS, *UNKNOWN_OUTCOME_ERRORS)


def test_the_error_name_is_one_that_a_class_may_have() -> None:
    """The emulator reads the name in a traceback, and `outcome` in a message."""
    assert TRANSIENT_ERROR.isidentifier()
