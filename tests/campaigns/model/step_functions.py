"""AWS Step Functions as its documentation has it: what `Executions` calls, and what goes on inside.

`Account` is what is asked of it. `StepFunctions` is an account whose executions are scripts;
`state_machine.py` has one whose executions are those of function tools.

An execution's input says in `arguments.script` what it does. A script is a list of states:

    {"do": "report"}                    a step that tells how far it is
    {"do": "explain"}                   a step that leaves a message for the case that it fails
    {"do": "ask", "asks": [n, ...]}     parallel states that wait, each for answers to n questions
    {"do": "end", "status": ...}        SUCCEEDED, FAILED, or ToolError, which is FAILED as well

Nothing happens by itself: the test makes states begin (`enter`), runs the functions that they
invoke (`Invocation`), and lets states and executions run out of time. Whatever AWS leaves open is
the test's to choose; whatever AWS promises is kept.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from botocore.exceptions import ClientError

from tests.unit.support.aws import real

DAY: Final = 24 * 3600 * 1000
REMEMBERED_MS: Final = 90 * DAY
"""API reference, "StartExecution": a name may be used again 90 days after its execution closed."""

RETRIES: Final = 2
"""So often is a state entered again whose function failed (states language, "Retry")."""


class Waits(StrEnum):
    """What became of a task token."""

    WAITING = "waiting"
    ANSWERED = "answered"
    TIMED_OUT = "timed out"
    OVER = "over"
    """Its execution has ended."""


@dataclass(eq=False)
class Token:
    """What a state that waits for an answer is told apart by."""

    value: str
    execution: Execution
    names: frozenset[str]
    waits: Waits = Waits.WAITING
    outputs: list[Any] = field(default_factory=list)


@dataclass(eq=False)
class Invocation:
    """A function that a state invokes. It may be run more than once, or die."""

    execution: Script
    branch: Branch
    event: dict[str, Any]
    pending: bool = True

    @property
    def function(self) -> str:
        """`report`, `explain` or `ask`."""
        return self.branch.do


@dataclass(eq=False)
class Branch:
    """A state, or one of several that are parallel."""

    do: str
    questions: int
    done: bool = False
    attempts: int = 0
    token: Token | None = None
    invocation: Invocation | None = None


@dataclass(eq=False)
class Execution:
    """An execution of a state machine."""

    machine: str
    name: str
    input: str
    arguments: dict[str, Any]
    started_at: int
    seen_from: int
    """DescribeExecution is eventually consistent: before this, it knows of no execution."""
    status: str = "RUNNING"
    ended_at: int = 0
    end_seen_from: int = 0
    output: str | None = None
    error: str = ""
    cause: str = ""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status == "RUNNING"


@dataclass(eq=False)
class Script(Execution):
    """An execution that does what its input says."""

    position: int = -1
    branches: list[Branch] = field(default_factory=list)

    @property
    def script(self) -> list[dict[str, Any]]:
        """What it does."""
        script: list[dict[str, Any]] = self.arguments["script"]
        return script

    @property
    def ready(self) -> bool:
        """Whether the next state may begin."""
        return self.running and all(branch.done for branch in self.branches)

    @property
    def invocations(self) -> list[Invocation]:
        """The functions that its states wait for."""
        found = [branch.invocation for branch in self.branches if self.running]
        return [invocation for invocation in found if invocation and invocation.pending]


E = TypeVar("E", bound=Execution)


class Account(ABC, Generic[E]):
    """All executions of an account, and the client that the code under test has."""

    def __init__(self, clock: Callable[[], int], read: Callable[[str, str], Any]) -> None:
        """`read` reads the arguments in an execution's input: it gets its name, and the input."""
        self.lag_ms = 0
        """How much later DescribeExecution knows of what happens from now on."""
        self.executions: list[E] = []
        self.tokens: dict[str, Token] = {}
        self.events: list[dict[str, Any]] = []
        """Status events that nobody has heard of yet: best effort, in any order, more than once
        (developer guide, "Automating Step Functions event delivery with EventBridge")."""
        self.exceptions = real("stepfunctions").exceptions
        self._clock = clock
        self._read = read
        self._count = 0

    @abstractmethod
    def _begin(self, told: Execution) -> E:
        """An execution that was started a moment ago."""

    @abstractmethod
    def _answered(self, token: Token, output: Any) -> None:
        """A state that waits gets its answer."""

    # what is asked of it

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:
        """API reference, "StartExecution": with the name and the input of one that runs, it
        succeeds and changes nothing; with the name of one that is closed, or with another input, it
        is refused, for 90 days.
        """
        earlier = self.find(stateMachineArn, name)
        if earlier is not None:
            if not earlier.running or earlier.input != input:
                raise self._error("ExecutionAlreadyExists", "StartExecution")
            return {"executionArn": _arn(earlier), "startDate": earlier.started_at}
        now = self._clock()
        arguments = self._read(name, input)
        told = Execution(stateMachineArn, name, input, arguments, now, now + self.lag_ms)
        self.executions.append(self._begin(told))
        return {"executionArn": _arn(told), "startDate": now}

    def stop_execution(self, *, executionArn: str, error: str, cause: str) -> dict[str, Any]:
        """API reference, "StopExecution"."""
        execution = self._named(executionArn)
        if execution is None:
            raise self._error("ExecutionDoesNotExist", "StopExecution")
        if execution.running:
            self.close(execution, "ABORTED", error=error, cause=cause)
        return {"stopDate": execution.ended_at}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:
        """API reference, "DescribeExecution": eventually consistent."""
        execution, now = self._named(executionArn), self._clock()
        if execution is None or now < execution.seen_from:
            raise self._error("ExecutionDoesNotExist", "DescribeExecution")
        told: dict[str, Any] = {
            "executionArn": executionArn,
            "name": execution.name,
            "status": "RUNNING",
            "input": execution.input,
            "startDate": datetime.fromtimestamp(execution.started_at / 1000, UTC),
        }
        if execution.running or now < execution.end_seen_from:
            return told
        told["status"] = execution.status
        if execution.output is not None:
            told["output"] = execution.output
        if execution.error:
            told |= {"error": execution.error, "cause": execution.cause}
        return told

    def send_task_success(self, *, taskToken: str, output: str) -> dict[str, Any]:
        """API reference, "SendTaskSuccess": a token is good for one answer, while its state waits.

        TaskTimedOut: "The task token has either expired or the task associated with the token has
        already been closed."
        """
        token = self._waiting(taskToken, "SendTaskSuccess")
        token.waits = Waits.ANSWERED
        token.outputs.append(json.loads(output))
        self._answered(token, json.loads(output))
        return {}

    def send_task_heartbeat(self, *, taskToken: str) -> dict[str, Any]:
        """API reference, "SendTaskHeartbeat": resets a heartbeat's clock, and nothing else."""
        self._waiting(taskToken, "SendTaskHeartbeat")
        return {}

    # what goes on inside

    def close(self, execution: Execution, status: str, error: str = "", cause: str = "") -> None:
        """End an execution, whatever it is doing; its tokens are void and its functions go on."""
        now = self._clock()
        execution.status, execution.error, execution.cause = status, error, cause
        execution.ended_at, execution.end_seen_from = now, now + self.lag_ms
        for token in self.tokens.values():
            if token.execution is execution and token.waits is Waits.WAITING:
                token.waits = Waits.OVER
        self.events.append(
            {
                "name": execution.name,
                "stateMachineArn": execution.machine,
                "status": status,
                "startDate": execution.started_at,
                "stopDate": now,
                "error": error or None,
                "cause": cause or None,
            }
        )

    def find(self, machine: str, name: str) -> E | None:
        """The execution of that name that is remembered."""
        now = self._clock()
        for execution in reversed(self.executions):
            if (execution.machine, execution.name) == (machine, name):
                remembered = execution.running or now < execution.ended_at + REMEMBERED_MS
                return execution if remembered else None
        return None

    def of(self, name: str) -> list[E]:
        """All executions that ever had that name."""
        return [execution for execution in self.executions if execution.name == name]

    def _named(self, arn: str) -> E | None:
        machine, _, name = arn.rpartition(":")
        return self.find(machine.replace(":execution:", ":stateMachine:", 1), name)

    def _waiting(self, value: str, operation: str) -> Token:
        token = self.tokens.get(value)
        if token is None:
            raise self._error("InvalidToken", operation)
        if token.waits is not Waits.WAITING:
            gone = token.waits is Waits.OVER
            raise self._error("TaskDoesNotExist" if gone else "TaskTimedOut", operation)
        return token

    def _error(self, code: str, operation: str) -> ClientError:
        modelled: type[ClientError] = getattr(self.exceptions, code)
        response: Any = {
            "Error": {"Code": code, "Message": "no"},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }
        return modelled(response, operation)


class StepFunctions(Account[Script]):
    """An account whose executions are scripts."""

    def _begin(self, told: Execution) -> Script:
        return Script(**vars(told))

    def _answered(self, token: Token, output: Any) -> None:
        for execution in self.executions:
            for branch in execution.branches:
                if branch.token is token:
                    branch.done = True

    def enter(self, execution: Script) -> None:
        """Begin the next state."""
        execution.position += 1
        state = execution.script[execution.position]
        if state["do"] == "end":
            self.end(execution, state["status"])
            return
        execution.branches = [
            Branch(state["do"], questions) for questions in state.get("asks", [0])
        ]
        for branch in execution.branches:
            self._invoke(execution, branch)

    def returned(self, invocation: Invocation) -> None:
        """A function succeeded. That is all that its state waits for, unless it asks."""
        if self._counts(invocation):
            invocation.pending = False
            invocation.branch.done = invocation.branch.done or invocation.branch.token is None

    def failed(self, invocation: Invocation) -> None:
        """A function failed: its state is entered again, with a new token, or the execution fails.

        Developer guide, "Callback with the task token": each attempt has a token of its own.
        """
        if self._counts(invocation):
            self._again(invocation.execution, invocation.branch)

    def time_out(self, token: Token, again: bool) -> None:
        """A state that waits runs out of its time (TimeoutSeconds); it is entered again, or goes on
        without an answer (states language, "Retry" and "Catch" of States.Timeout).
        """
        token.waits = Waits.TIMED_OUT
        for execution in self.executions:
            for branch in execution.branches:
                if branch.token is token and again:
                    self._again(execution, branch)
                elif branch.token is token:
                    branch.done = True

    def end(self, execution: Script, status: str, error: str = "", cause: str = "") -> None:
        """End an execution, as the script says or from outside."""
        if status == "SUCCEEDED":
            text = execution.name + execution.arguments.get("data", "")
            execution.output = json.dumps({"content": [{"type": "text", "text": text}]})
        elif status in ("FAILED", "ToolError"):
            error = error or ("ToolError" if status == "ToolError" else "Boom")
            status, cause = "FAILED", cause or "as the script says"
        self.close(execution, status, error, cause)

    def _counts(self, invocation: Invocation) -> bool:
        """Whether a state still waits for what this function says."""
        return invocation in invocation.execution.invocations

    def _again(self, execution: Script, branch: Branch) -> None:
        if branch.token is not None and branch.token.waits is Waits.WAITING:
            branch.token.waits = Waits.TIMED_OUT
        if branch.done:
            return
        if branch.attempts > RETRIES:
            self.end(execution, "FAILED", error="Lambda.Unknown", cause="a function failed")
            return
        self._invoke(execution, branch)

    def _invoke(self, execution: Script, branch: Branch) -> None:
        branch.attempts += 1
        self._count += 1
        event: dict[str, Any] = {"task": execution.name, "message": f"step {self._count}"}
        if branch.do == "ask":
            names = [f"q{n}" for n in range(branch.questions)]
            token = Token(f"token-{self._count}", execution, frozenset(names))
            self.tokens[token.value] = branch.token = token
            event |= {"token": token.value, "requests": dict.fromkeys(names, QUESTION)}
        branch.invocation = Invocation(execution, branch, event)


QUESTION: Final = {
    "message": "How many?",
    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


def _arn(execution: Execution) -> str:
    return f"{execution.machine.replace(':stateMachine:', ':execution:', 1)}:{execution.name}"
