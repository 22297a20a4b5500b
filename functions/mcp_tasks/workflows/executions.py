"""The calls to Step Functions. An execution's name is its task's id.

Source: the Step Functions API reference, "StartExecution", "StopExecution", "DescribeExecution",
"SendTaskSuccess", "SendTaskHeartbeat".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ..aws.errors import error_code, is_transient

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


START_WITHIN_MS: Final = 80 * 24 * 3600 * 1000
"""How old a task may be whose execution is started once more. Step Functions forgets an execution,
and that its name was used, 90 days after it ended (API reference, StartExecution): one that is not
there by then may have run."""


class StartFailed(Exception):
    """The execution is not known to run; the message is the error's code, safe to log.

    `refused` tells a start that cannot succeed, and did not happen, from one that may succeed
    another time, or may have happened: AWS had no room or a fault, or its answer never came.
    """

    def __init__(self, code: str, refused: bool) -> None:
        super().__init__(code)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class ExecutionEnd:
    """How an execution is, or ended, as DescribeExecution tells it."""

    status: str
    output: Any = None
    error: str = ""
    cause: str = ""

    @property
    def running(self) -> bool:
        """Whether there is no end yet, or not any more: a redrive makes an ended one run again."""
        return self.status in ("RUNNING", "PENDING_REDRIVE")


class Executions:
    """Executions of the tools' state machines.

    The client is made on first use: most requests are polls, and need none.
    """

    def __init__(self, client: Callable[[], SFNClient]) -> None:
        self._make_client = client
        self._making = Lock()

    @property
    def _client(self) -> SFNClient:
        with self._making:  # the sweeper's threads all need it at once
            return self._made

    @cached_property
    def _made(self) -> SFNClient:
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
        except (ClientError, BotoCoreError) as error:
            raise StartFailed(error_code(error), refused=not is_transient(error)) from None

    def stop(self, state_machine_arn: str, task_id: str) -> None:
        """Stop the task's execution; one that has ended or never started is left alone."""
        try:
            self._client.stop_execution(
                executionArn=execution_arn(state_machine_arn, task_id),
                error="TaskOver",
                cause="The task is over: it was cancelled, has expired, or cannot go on",
            )
        except self._client.exceptions.ExecutionDoesNotExist:
            return

    def describe(self, state_machine_arn: str, task_id: str) -> ExecutionEnd | None:
        """Read how the task's execution is; None when there is none. Its events may omit the
        output; this call does not.

        What has just been started may not be found yet, and what has just ended be found running:
        the answer is eventually consistent. 90 days after its end, an execution is gone.
        """
        try:
            execution = self._client.describe_execution(
                executionArn=execution_arn(state_machine_arn, task_id)
            )
        except self._client.exceptions.ExecutionDoesNotExist:
            return None
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

    def waits(self, token: str) -> bool:
        """Whether a state still waits on the token.

        There is no call that only asks. A heartbeat tells, and changes nothing for a state that has
        no HeartbeatSeconds; `infra/state_machine_definition.py` sees to it
        that none has that asks a client.
        TaskTimedOut is said of a token whose task "has already been closed". InvalidToken is not:
        what proves nothing must not close a question.
        """
        try:
            self._client.send_task_heartbeat(taskToken=token)
        except (
            self._client.exceptions.TaskTimedOut,
            self._client.exceptions.TaskDoesNotExist,
        ):
            return False
        except self._client.exceptions.InvalidToken:
            pass
        return True


def execution_arn(state_machine_arn: str, task_id: str) -> str:
    """The ARN of a task's execution, which follows from its state machine and its name."""
    return f"{state_machine_arn.replace(':stateMachine:', ':execution:', 1)}:{task_id}"
