"""The names under which functions fail: those that a state is tried again for, and a tool's own."""

from __future__ import annotations

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError, EndpointConnectionError

from infra.state_machine_definition import ASKED_AGAIN, RETRIED
from mcp_tasks.workflows.failures import UNAVAILABLE, tried_again
from mcp_tasks.workflows.steps import guarded
from tests.unit.support.aws import error_response


def refused(code: str, status: int = 400) -> ClientError:
    return ClientError(error_response(code, status), "PutObject")


@pytest.mark.parametrize(
    "fault",
    [
        refused("SlowDown", 503),
        refused("ProvisionedThroughputExceededException"),
        EndpointConnectionError(endpoint_url="https://s3"),
        refused("AccessDenied", 403),
    ],
    ids=["S3's throttle", "DynamoDB's", "no connection", "a permission that is missing yet"],
)
def test_a_fault_that_may_pass_leaves_under_a_name_that_is_tried_again(fault: Exception) -> None:
    with pytest.raises(Exception, match=rf"^\[{UNAVAILABLE}\]") as raised, tried_again():
        raise fault
    assert type(raised.value).__name__ == UNAVAILABLE
    assert UNAVAILABLE in RETRIED


@pytest.mark.parametrize("fault", [refused("NoSuchBucket"), KeyError("a")], ids=["S3's", "a bug"])
def test_a_fault_that_stays_is_not_tried_again(fault: Exception) -> None:
    with pytest.raises(type(fault)) as raised, tried_again():
        raise fault
    assert raised.value is fault


@pytest.mark.parametrize("name", ["Unavailable", "ServiceException", "ClientError", "Timeout"])
def test_no_exception_of_an_author_s_is_taken_for_a_fault_of_aws(name: str) -> None:
    """Lambda's errorType is the class's `__name__`. A step that raised it may have had effects."""

    def run() -> None:
        raise type(name, (Exception,), {})

    with pytest.raises(Exception, match=name) as left:
        guarded(run, Logger(), list[str]().append)
    assert type(left.value).__name__ not in (*RETRIED, *ASKED_AGAIN)


def test_a_name_that_is_tried_again_is_a_class_s() -> None:
    """The emulator reads the name in a traceback, and `outcome` in a message."""
    assert UNAVAILABLE.isidentifier()
