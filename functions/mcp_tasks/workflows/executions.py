"""The calls to Step Functions. An execution's name is its task's id.

Source: the Step Functions API reference, "StartExecution", "StopExecution", "DescribeExecution",
"SendTaskSuccess".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class StartFailed(Exception):
    """The execution is not known to run; the message is the error's code, safe to log.

    `may_run` tells a refusal from an answer that never came, or came from a fault of AWS: then the
    execution may have started all the same.
    """

    def __init__(self, code: str, may_run: bool) -> None:
        super().__init__(code)
        self.may_run = may_run


@dataclass(frozen=True, slots=True)
class ExecutionEnd:
    """How an execution ended, as DescribeExecution tells it."""

    status: str
    output: Any = None
    error: str = ""
    cause: str = ""


class Executions:
    """Executions of the tools' state machines.

    The client is made on first use: most requests are polls, and need none.
    """

    def __init__(self, client: Callable[[], SFNClient]) -> None:
        self._make_client = client

    @cached_property
    def _client(self) -> SFNClient:
        return self._make_client()

    def start(self, state_machine_arn: str, task_id: str, execution_input: str) -> None:
        """Start the task's execution, once.

        `execution_input` must be byte-stable: a repeated start with the same name and input is the
        same execution, and one that has ended meanwhile answers ExecutionAlreadyExists; both mean
        that an earlier attempt arrived. Raises StartFailed.
        """
        try:
            self._client.start_execution(
                stateMachineArn=state_machine_arn, name=task_id, input=execution_input
            )
        except self._client.exceptions.ExecutionAlreadyExists:
            return
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            raise StartFailed(error.response["Error"]["Code"], may_run=status >= 500) from None
        except BotoCoreError as error:
            raise StartFailed(type(error).__name__, may_run=True) from None

    def stop(self, state_machine_arn: str, task_id: str) -> None:
        """Stop the task's execution; one that has ended or never started is left alone."""
        try:
            self._client.stop_execution(
                executionArn=execution_arn(state_machine_arn, task_id),
                error="Cancelled",
                cause="tasks/cancel",
            )
        except self._client.exceptions.ExecutionDoesNotExist:
            return

    def describe(self, arn: str) -> ExecutionEnd:
        """Read an ended execution. Its events may omit the output; this call does not."""
        execution = self._client.describe_execution(executionArn=arn)
        output = execution.get("output")
        return ExecutionEnd(
            status=execution["status"],
            output=None if output is None else json.loads(output),
            error=execution.get("error", ""),
            cause=execution.get("cause", ""),
        )

    def resume(self, token: str, output: dict[str, Any]) -> bool:
        """Give a waiting state its answers; False when nothing waits on the token any more.

        A token that was used already answers TaskTimedOut or InvalidToken: an earlier attempt
        arrived, or the execution has ended. Neither is an error to the client.
        """
        try:
            self._client.send_task_success(taskToken=token, output=json.dumps(output))
        except (
            self._client.exceptions.TaskTimedOut,
            self._client.exceptions.TaskDoesNotExist,
            self._client.exceptions.InvalidToken,
        ):
            return False
        return True


def execution_arn(state_machine_arn: str, task_id: str) -> str:
    """The ARN of a task's execution, which follows from its state machine and its name."""
    return f"{state_machine_arn.replace(':stateMachine:', ':execution:', 1)}:{task_id}"
