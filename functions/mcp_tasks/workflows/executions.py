"""The calls to Step Functions. `execution_names` has the names of a task's executions.

Source: the Step Functions API reference, "StartExecution", "StopExecution", "DescribeExecution",
"SendTaskSuccess", "SendTaskHeartbeat".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from ..aws.errors import error_code, is_transient

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


MAX_START_AGE_MS: Final = 80 * 24 * 3600 * 1000
"""How old a task may be whose execution is started once more. 90 days after an execution ended,
Step Functions forgets it and that its name was used (API reference, "StartExecution"): an execution
that is not found by then may have run."""


MAX_START_BEFORE_TASK_MS: Final = 3600 * 1000
"""How much earlier than its task's creation an execution may have started: clocks differ. One that
started before that is of an earlier task with the same id (`ExecutionEnd.is_of`)."""

logger = Logger()


class StartFailed(Exception):
    """StartExecution failed; the message is the error's code, which is safe to log.

    `refused` is true when the start did not happen and cannot succeed. It is false for a transient
    error, after which the start may succeed another time, or may have happened.
    """

    def __init__(self, code: str, refused: bool) -> None:
        super().__init__(code)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class ExecutionEnd:
    """An execution's status and end, as DescribeExecution returns them."""

    status: str
    output: Any = None
    error: str = ""
    cause: str = ""
    input: str = field(default="", compare=False)
    """As it was started with."""
    started_at: int | None = field(default=None, compare=False)
    """In milliseconds since the epoch, by Step Functions' clock."""

    @property
    def running(self) -> bool:
        """Whether the execution has not ended; a redrive makes an ended execution run again."""
        return self.status in ("RUNNING", "PENDING_REDRIVE")

    def is_of(self, created_at: int) -> bool:
        """Whether the execution is of the task with its name that was created at this time.

        Where clients choose a task's id, an id may be used again when its row has been deleted, at
        least a day after the task expired. The execution's name is not free again for 90 days.
        """
        return self.started_at is None or self.started_at > created_at - MAX_START_BEFORE_TASK_MS


class Executions:
    """Executions of the tools' state machines.

    The client is made on first use: most requests are polls, and need none.
    """

    def __init__(self, client: Callable[[], SFNClient]) -> None:
        self._make_client = client
        self._making = Lock()

    @property
    def _client(self) -> SFNClient:
        with self._making:  # the sweeper's threads ask for it at the same moment
            return self._made

    @cached_property
    def _made(self) -> SFNClient:
        return self._make_client()

    def start(self, state_machine_arn: str, name: str, execution_input: str) -> bool:
        """Start an execution, once; False when its name was used before.

        `execution_input` must be the same bytes in every attempt: Step Functions takes a repeated
        start with the same name and input for the same execution, and answers
        ExecutionAlreadyExists when that has ended. Both mean that an earlier attempt arrived, or
        that an earlier task had the same id. Raises StartFailed.
        """
        try:
            self._client.start_execution(
                stateMachineArn=state_machine_arn, name=name, input=execution_input
            )
        except self._client.exceptions.ExecutionAlreadyExists:
            return False
        except (ClientError, BotoCoreError) as error:
            raise StartFailed(error_code(error), refused=not is_transient(error)) from None
        return True

    def stop(self, state_machine_arn: str, name: str) -> None:
        """Stop an execution, unless it has ended or was never started."""
        try:
            self._client.stop_execution(
                executionArn=execution_arn(state_machine_arn, name),
                error="TaskEnded",
                cause="The task has ended: it was cancelled, has expired, or cannot go on",
            )
        except self._client.exceptions.ExecutionDoesNotExist:
            return
        except self._client.exceptions.ValidationException:
            # What becomes of a stop of an execution that has ended is not documented. Whoever gets
            # an error for it has nothing left to stop.
            logger.warning("StopExecution was refused; the execution has ended", execution=name)

    def is_deleting(self, state_machine_arn: str) -> bool:
        """Whether a state machine is being deleted, or is gone.

        It is deleted when all its executions have ended, and starts none meanwhile (API reference,
        "DeleteStateMachine").
        """
        try:
            described = self._client.describe_state_machine(
                stateMachineArn=state_machine_arn, includedData="METADATA_ONLY"
            )
        except self._client.exceptions.StateMachineDoesNotExist:
            return True
        return described["status"] == "DELETING"

    def describe(self, state_machine_arn: str, name: str) -> ExecutionEnd | None:
        """Read the status of an execution, with its input and output; None when there is none.

        The answer is eventually consistent: an execution that was started a moment ago may not be
        found, and one that ended a moment ago may be found running. 90 days after its end, an
        execution is not found any more.
        """
        try:
            execution = self._client.describe_execution(
                executionArn=execution_arn(state_machine_arn, name)
            )
        except self._client.exceptions.ExecutionDoesNotExist:
            return None
        output = execution.get("output")
        return ExecutionEnd(
            status=execution["status"],
            output=None if output is None else json.loads(output),
            error=execution.get("error", ""),
            cause=execution.get("cause", ""),
            input=execution.get("input", ""),
            started_at=round(execution["startDate"].timestamp() * 1000),
        )

    def resume(self, token: str, output: dict[str, Any]) -> bool:
        """Send a waiting state its answers; False when no state waits on the token any more.

        For a token that was used, Step Functions answers TaskTimedOut or InvalidToken: an earlier
        attempt arrived, or the execution has ended. Neither is an error for the client.
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

    def is_waiting(self, token: str) -> bool:
        """Whether a state still waits on the token.

        Step Functions has no call that only reads this. A heartbeat answers it, and changes nothing
        for a state without HeartbeatSeconds; `infra/state_machine_definition.py` refuses that
        member in states that ask. TaskTimedOut means that the token's task "has already been
        closed". InvalidToken does not prove that, so it closes no question.
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


def execution_arn(state_machine_arn: str, name: str) -> str:
    """The ARN of an execution, which follows from its state machine and its name."""
    return f"{state_machine_arn.replace(':stateMachine:', ':execution:', 1)}:{name}"
