"""`make drain tool=NAME`, and the first thing that `make destroy` and `make deploy remove=NAME` do:
end the running tasks of tools, so that their state machines can be deleted.

    python -m operations.drain --tools "NAME ..." [--stack NAME] [--seconds N] [--profile local]

A state machine is deleted only when all its executions have ended (Step Functions API reference,
"DeleteStateMachine"). One that waits for a client's answer waits as long as its task lives, and so
would the stack.

The sweeper ends the tasks, with its own permissions: their clients are told why, and what they did
is undone. Where it is not there any more, the executions are stopped from here. Whoever calls this
needs cloudformation:DescribeStacks, cloudformation:ListStackResources, states:ListExecutions,
lambda:InvokeFunction, and states:StopExecution for the second way.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say
from mcp_tasks.workflows.execution_names import UNDO, task_of_execution
from mcp_tasks.workflows.executions import execution_arn

from .deployed_stack import (
    Clients,
    DeployedStack,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
)
from .running_executions import STATE_MACHINE, RunningExecution, running_executions

SECONDS: Final = 600
"""How long what tasks did may take to be undone."""
LAST_SECONDS: Final = 120
"""How long it may take then, until the list of running executions is empty."""
BATCH: Final = 100
"""Executions in one call of the sweeper: a second's work, or a minute's if all have subtasks."""
PAUSE: Final = 2.0
SWEEPER: Final = "SweepFunctionName"
"""The stack's output with the sweeper's name (`infra/dead_letter_queue.py`)."""

Running = Mapping[str, Sequence[RunningExecution]]
"""By the ARN of the state machine."""


@dataclass(frozen=True)
class Drain:
    """Ends the executions of a stack's state machines."""

    clients: Clients
    sweeper: str | None
    """The name of the function that ends tasks; None when the stack has none any more."""
    removed: str
    """`tool` or `server`: what the clients of the tasks are told of."""
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def run(self, state_machines: Sequence[str], seconds: float, *, all_of_them: bool) -> int:
        """End what runs; returns how many executions are left.

        What began later than the first that were seen counts only with `all_of_them`: as long as a
        tool may be called, there may always be some. After so many seconds, nothing more is undone.
        Raises ClientError and BotoCoreError.
        """
        began, newest = self.clock(), None
        told = ""
        while True:
            running = {arn: self._listed(arn) for arn in state_machines}
            listed = [each for executions in running.values() for each in executions]
            newest = newest or max((each.started_at for each in listed), default=None)
            waited_for = [
                each
                for each in listed
                if all_of_them or (newest and each.started_at <= newest) or _undoes(each)
            ]
            passed = (self.clock() - began).total_seconds()
            if not waited_for or passed > seconds + LAST_SECONDS:
                return len(waited_for)
            if (progress := _progress(running)) != told:
                say(f"  {progress}; {max(0, round(seconds - passed))} s are left for undo")
                told = progress
            for arn, executions in running.items():
                for names in _batches(executions):
                    self._end(arn, names, undo=passed < seconds)
            self.sleep(PAUSE)

    def _listed(self, arn: str) -> list[RunningExecution]:
        return running_executions(self.clients("stepfunctions"), arn)

    def _end(self, arn: str, names: Sequence[str], *, undo: bool) -> None:
        if not self._end_tasks(arn, names, undo=undo):
            for name in names:
                self._stop(arn, name)

    def _end_tasks(self, arn: str, names: Sequence[str], *, undo: bool) -> bool:
        """Let the sweeper end tasks; False when it is not there, or does not know how."""
        if self.sweeper is None:
            return False
        request = {
            "stateMachine": arn,
            "executions": list(names),
            "removed": self.removed,
            "undo": undo,
        }
        client = self.clients("lambda")
        try:
            response = client.invoke(
                FunctionName=self.sweeper, Payload=json.dumps({"remove": request}).encode()
            )
        except client.exceptions.ResourceNotFoundException:
            return False  # the stack is half deleted
        except client.exceptions.TooManyRequestsException:
            return True  # in the next round
        if "FunctionError" in response:
            error = json.loads(response["Payload"].read() or b"{}")
            say(f"WARNING: the sweeper failed: {error.get('errorType', 'no reason given')}")
            return False
        # One of an earlier version takes it for its schedule's call, and returns nothing.
        return isinstance(json.loads(response["Payload"].read() or b"null"), dict)

    def _stop(self, arn: str, name: str) -> None:
        states = self.clients("stepfunctions")
        try:
            states.stop_execution(
                executionArn=execution_arn(arn, name),
                error="Removed",
                cause="The tool or the server is removed",
            )
        except (
            states.exceptions.ExecutionDoesNotExist,
            states.exceptions.ValidationException,
        ):
            return  # it has ended meanwhile


def _undoes(execution: RunningExecution) -> bool:
    return task_of_execution(execution.name)[1] == UNDO


def _batches(executions: Sequence[RunningExecution]) -> Iterator[list[str]]:
    for start in range(0, len(executions), BATCH):
        yield [each.name for each in executions[start : start + BATCH]]


def _tool(arn: str) -> str:
    return arn.rpartition(":")[2]


def _progress(running: Running) -> str:
    counts = {_tool(arn): len(executions) for arn, executions in running.items() if executions}
    undoing = sum(_undoes(each) for executions in running.values() for each in executions)
    of_tools = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
    undone = f", {undoing} of them to undo what tasks did" if undoing else ""
    return f"{sum(counts.values())} executions run ({of_tools}){undone}"


def drain_tools(clients: Clients, stack: str, tools: Sequence[str], seconds: float) -> int:
    """End the running tasks of tools. Returns how many executions are left.

    Raises NoStack for a tool without a state machine, ClientError and BotoCoreError.
    """
    deployed = DeployedStack(stack, clients)
    machines = {_tool(arn): arn for arn in deployed.physical_ids(STATE_MACHINE)}
    unknown = [tool for tool in tools if f"{stack}-{tool}" not in machines]
    if unknown:
        raise NoStack(f"the stack {stack} has no state machine for: {', '.join(unknown)}")
    drain = Drain(clients, deployed.outputs.get(SWEEPER), "tool")
    arns = [machines[f"{stack}-{tool}"] for tool in tools]
    return drain.run(arns, seconds, all_of_them=False)


def main() -> int:
    """Drain. Returns 1 when executions are left."""
    parser = argparse.ArgumentParser(prog="python -m operations.drain")
    parser.add_argument("--tools", required=True, help="names, separated by spaces")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long to wait for undo")
    add_stack_options(parser)
    options = parser.parse_args()
    stack, tools = chosen_stack(options), options.tools.split()
    try:
        left = drain_tools(clients_of(options.profile), stack, tools, options.seconds)
    except (NoStack, ClientError, BotoCoreError) as error:
        return fail(error)
    if left:
        return fail(f"{left} executions still run; run the command again")
    say(f"no task of {', '.join(tools)} that began before this command runs any more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
