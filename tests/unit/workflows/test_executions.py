"""Calls to Step Functions, and what its documented answers mean.

The answers come from botocore's Stubber, which checks requests and responses against the service's
model: moto accepts used tokens, and starts an execution of a name that is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from botocore.stub import ANY, Stubber

from mcp_tasks.workflows.executions import ExecutionEnd, Executions, StartFailed, execution_arn
from tests.unit.support.aws import REGION

MACHINE: Final = "arn:aws:states:us-east-1:123456789012:stateMachine:demo-count"
EXECUTION: Final = "arn:aws:states:us-east-1:123456789012:execution:demo-count:c1-0"
START: Final = {"stateMachineArn": MACHINE, "name": "c1-0", "input": '{"a":1}'}
STOP: Final = {"executionArn": EXECUTION, "error": "TaskEnded", "cause": ANY}
WHEN: Final = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def client() -> Any:
    return boto3.client(
        "stepfunctions",
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.fixture
def aws(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def executions(client: Any, aws: Stubber) -> Executions:
    return Executions(lambda: client)


def test_no_client_is_made_before_it_is_needed() -> None:
    def refuse() -> Any:
        raise AssertionError("a poll needs no Step Functions client")

    Executions(refuse)


def test_one_client_is_made_for_all_calls(client: Any, aws: Stubber) -> None:
    made = []

    def make() -> Any:
        made.append(client)
        return client

    executions = Executions(make)
    for _ in range(2):
        aws.add_response("stop_execution", {"stopDate": WHEN}, STOP)
        executions.stop(MACHINE, "c1-0")
    assert len(made) == 1


# start


def test_an_execution_is_named_after_its_task(executions: Executions, aws: Stubber) -> None:
    response = {"executionArn": EXECUTION, "startDate": WHEN}
    aws.add_response("start_execution", response, START)
    assert executions.start(MACHINE, "c1-0", '{"a":1}')


def test_an_execution_that_exists_is_started(executions: Executions, aws: Stubber) -> None:
    """StartExecution answers so when it has ended meanwhile; an earlier attempt arrived."""
    aws.add_client_error("start_execution", "ExecutionAlreadyExists", expected_params=START)
    assert not executions.start(MACHINE, "c1-0", '{"a":1}')


@pytest.mark.parametrize(
    ("code", "status", "refused"),
    [
        ("StateMachineDoesNotExist", 400, True),
        ("StateMachineDeleting", 400, True),
        ("InvalidExecutionInput", 400, True),
        ("InvalidName", 400, True),
        ("AccessDeniedException", 400, True),
        ("ExecutionLimitExceeded", 400, False),
        ("ThrottlingException", 400, False),
        ("ServiceUnavailable", 503, False),
    ],
)
def test_a_start_that_fails_says_which_error_and_whether_it_may_succeed_later(
    executions: Executions, aws: Stubber, code: str, status: int, refused: bool
) -> None:
    """The error's code and no more: its message quotes what was sent."""
    aws.add_client_error("start_execution", code, "input was hunter2", status)
    with pytest.raises(StartFailed) as caught:
        executions.start(MACHINE, "c1-0", '{"a":1}')
    assert str(caught.value) == code
    assert caught.value.refused is refused
    assert caught.value.__suppress_context__


def test_a_start_that_finds_no_connection_may_succeed_later() -> None:
    class Unreachable:
        exceptions = boto3.client("stepfunctions", region_name=REGION).exceptions

        def start_execution(self, **arguments: Any) -> Any:
            raise ConnectTimeoutError(endpoint_url="https://states")

    with pytest.raises(StartFailed, match="ConnectTimeoutError") as caught:
        Executions(Unreachable).start(MACHINE, "c1-0", "{}")  # type: ignore[arg-type]
    assert not caught.value.refused


# stop


def test_a_stop_names_its_reason(executions: Executions, aws: Stubber) -> None:
    aws.add_response("stop_execution", {"stopDate": WHEN}, STOP)
    executions.stop(MACHINE, "c1-0")


def test_an_execution_that_never_was_is_left_alone(executions: Executions, aws: Stubber) -> None:
    aws.add_client_error("stop_execution", "ExecutionDoesNotExist", expected_params=STOP)
    executions.stop(MACHINE, "c1-0")


def test_a_stop_that_fails_is_an_error(executions: Executions, aws: Stubber) -> None:
    aws.add_client_error("stop_execution", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        executions.stop(MACHINE, "c1-0")


@pytest.mark.parametrize(
    ("machine", "execution"),
    [
        (MACHINE, EXECUTION),
        (
            "arn:aws-cn:states:cn-north-1:123456789012:stateMachine:stateMachine",
            "arn:aws-cn:states:cn-north-1:123456789012:execution:stateMachine:c1-0",
        ),
    ],
)
def test_an_executions_arn_follows_from_its_task(machine: str, execution: str) -> None:
    assert execution_arn(machine, "c1-0") == execution


# describe


def described(**fields: Any) -> dict[str, Any]:
    return {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "startDate": WHEN,
        "status": "SUCCEEDED",
        **fields,
    }


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"output": '{"a": [1, 0.5]}'}, ExecutionEnd("SUCCEEDED", {"a": [1, 0.5]})),
        ({"output": "null"}, ExecutionEnd("SUCCEEDED")),
        ({"output": '"text"'}, ExecutionEnd("SUCCEEDED", "text")),
        ({"status": "RUNNING"}, ExecutionEnd("RUNNING")),
        (
            {"status": "FAILED", "error": "KeyError", "cause": "{}"},
            ExecutionEnd("FAILED", error="KeyError", cause="{}"),
        ),
        ({"status": "FAILED"}, ExecutionEnd("FAILED")),
        ({"status": "TIMED_OUT"}, ExecutionEnd("TIMED_OUT")),
        (
            {"status": "ABORTED", "error": "Cancelled", "cause": "tasks/cancel"},
            ExecutionEnd("ABORTED", error="Cancelled", cause="tasks/cancel"),
        ),
    ],
)
def test_an_end_is_read_as_it_is_described(
    executions: Executions, aws: Stubber, fields: dict[str, Any], end: ExecutionEnd
) -> None:
    aws.add_response("describe_execution", described(**fields), {"executionArn": EXECUTION})
    assert executions.describe(MACHINE, "c1-0") == end


def test_an_execution_that_is_not_there_is_none(executions: Executions, aws: Stubber) -> None:
    """It was never started, or ended 90 days ago (API reference, "StartExecution")."""
    aws.add_client_error("describe_execution", "ExecutionDoesNotExist")
    assert executions.describe(MACHINE, "c1-0") is None


def test_an_execution_that_cannot_be_described_is_an_error(
    executions: Executions, aws: Stubber
) -> None:
    """It is not taken for one that is not there, which would be started."""
    aws.add_client_error("describe_execution", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        executions.describe(MACHINE, "c1-0")


@pytest.mark.parametrize(
    ("status", "running"),
    [
        ("RUNNING", True),
        ("PENDING_REDRIVE", True),
        ("SUCCEEDED", False),
        ("FAILED", False),
        ("TIMED_OUT", False),
        ("ABORTED", False),
    ],
)
def test_an_execution_that_is_to_be_redriven_has_not_ended(status: str, running: bool) -> None:
    """All values of DescribeExecution's `status` (API reference)."""
    assert ExecutionEnd(status).running is running


# resume

SENT: Final = {"taskToken": "token", "output": '{"sure": {"action": "decline"}}'}
ANSWER: Final = {"sure": {"action": "decline"}}


def test_a_waiting_state_gets_its_answers(executions: Executions, aws: Stubber) -> None:
    aws.add_response("send_task_success", {}, SENT)
    assert executions.resume("token", ANSWER) is True


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_token_that_nothing_waits_on_is_no_error(
    executions: Executions, aws: Stubber, code: str
) -> None:
    """A used token, or one of an execution that has ended."""
    aws.add_client_error("send_task_success", code, expected_params=SENT)
    assert executions.resume("token", ANSWER) is False


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException", "InvalidOutput"])
def test_an_answer_that_was_not_sent_is_an_error(
    executions: Executions, aws: Stubber, code: str
) -> None:
    """The client repeats its update, and the answer is sent again."""
    aws.add_client_error("send_task_success", code)
    with pytest.raises(ClientError, match=code):
        executions.resume("token", ANSWER)


# waits


def test_a_heartbeat_tells_that_a_state_waits(executions: Executions, aws: Stubber) -> None:
    aws.add_response("send_task_heartbeat", {}, {"taskToken": "token"})
    assert executions.is_waiting("token") is True


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist"])
def test_a_heartbeat_tells_that_nothing_waits(
    executions: Executions, aws: Stubber, code: str
) -> None:
    aws.add_client_error("send_task_heartbeat", code)
    assert executions.is_waiting("token") is False


def test_a_token_that_is_called_invalid_may_be_waited_on(
    executions: Executions, aws: Stubber
) -> None:
    """It says nothing of a task that was closed (API reference, SendTaskHeartbeat)."""
    aws.add_client_error("send_task_heartbeat", "InvalidToken")
    assert executions.is_waiting("token") is True


def test_a_heartbeat_that_fails_tells_nothing(executions: Executions, aws: Stubber) -> None:
    """What is asked stays open."""
    aws.add_client_error("send_task_heartbeat", "ThrottlingException")
    with pytest.raises(ClientError, match="Throttling"):
        executions.is_waiting("token")
