"""The executions of function tools: a double of Step Functions that reads their real definition.

It interprets the Amazon States Language of `infra/function_task.asl.json`, with the retries and the
timeouts that the stack adds to it, as far as that uses the language: a definition with anything
else is refused. JSONata is evaluated by the package that checks the definition in `tests/infra`.

As in `step_functions.py`, nothing happens by itself: the test lets a line of control go on
(`go_on`), runs the functions that states invoke, loses sight of them, and lets time pass. How often
a state is retried is cut down to RETRIES, so that retries run out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final

from jsonata.jsonata import Jsonata

from infra.state_machine_definition import Definition
from mcp_tasks.registry.function_tool import FunctionTool
from tests.campaigns.model.step_functions import RETRIES, Account, Execution, Token, Waits

ASK: Final = "${ask}"
SUBTASKS: Final = "${subtasks}"
WORKER: Final = "${worker}"
WITH_TOKEN: Final = "arn:${partition}:states:::lambda:invoke.waitForTaskToken"

KILLED: Final = "Lambda.Unknown"
"""The error of a function that was killed, or that Step Functions has lost sight of."""
KILLS: Final = (KILLED, "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory")
THROTTLED: Final = "Lambda.TooManyRequestsException"
TIMEOUT: Final = "States.Timeout"


class Doing(StrEnum):
    """What a line of control does."""

    QUEUES = "waits for its turn"
    BEGINS = "begins a state"
    INVOKES = "waits for a function"
    ASKS = "waits for a token"
    WAITS = "waits for a time"
    MAPS = "waits for its lanes"
    HEARD = "has what it waited for"
    FAILED = "has heard of an error"
    OVER = "is over"


@dataclass(eq=False)
class Invocation:
    """A function that a state invokes. It may be run more than once, or die."""

    execution: FunctionExecution
    line: Line
    function: str
    """`${worker}`, `${ask}` or `${subtasks}`, as the definition names it."""
    event: dict[str, Any]
    at: int
    times: int = 0
    """How often it was run."""

    @property
    def pending(self) -> bool:
        """Whether its state still waits for what it says."""
        return self.line.invocation is self and self.execution.running


@dataclass(eq=False)
class Line:
    """One line of control: an execution's own, or that of a Map's iteration."""

    states: Mapping[str, Any]
    at: str
    input: Any
    outer: Line | None = None
    item: Any = None
    variables: dict[str, Any] = field(default_factory=dict)
    doing: Doing = Doing.BEGINS
    invocation: Invocation | None = None
    token: Token | None = None
    until: int = 0
    heard: Any = None
    """The function's or the token's output, or the error: `{"Error", "Cause"}`."""
    lanes: list[Line] = field(default_factory=list)
    at_once: int = 0
    """How many of its lanes may run side by side."""
    retried: Counter[str] = field(default_factory=Counter)

    @property
    def state(self) -> Mapping[str, Any]:
        """The state that it is in."""
        state: Mapping[str, Any] = self.states[self.at]
        return state

    def all_variables(self) -> dict[str, Any]:
        """Its own variables, and those around it."""
        around = self.outer.all_variables() if self.outer is not None else {}
        return around | self.variables


@dataclass(eq=False)
class FunctionExecution(Execution):
    """An execution of a function tool's state machine."""

    line: Line = field(init=False)

    @property
    def lines(self) -> list[Line]:
        """Its lines of control."""
        return [self.line, *self.line.lanes] if self.running else []

    @property
    def invocations(self) -> list[Invocation]:
        """The functions that its states wait for."""
        return [i for line in self.lines if (i := line.invocation) is not None and i.pending]


class FunctionExecutions(Account[FunctionExecution]):
    """An account whose executions are those of function tools."""

    def __init__(
        self,
        clock: Callable[[], int],
        read: Callable[[str, str], Any],
        definition: Callable[[str], Mapping[str, Any]],
    ) -> None:
        """`definition` is that of a state machine, by its ARN."""
        super().__init__(clock, read)
        self._definition = definition
        self.with_output = False
        """Whether the events of executions that succeeded have their output."""
        self.on_end: Callable[[FunctionExecution], None] = lambda execution: None

    def _begin(self, told: Execution) -> FunctionExecution:
        execution, definition = FunctionExecution(**vars(told)), self._definition(told.machine)
        given = json.loads(told.input)
        execution.line = Line(definition["States"], definition["StartAt"], given)
        return execution

    def _answered(self, token: Token, output: Any) -> None:
        for execution in self.executions:
            for line in execution.lines:
                if line.token is token:
                    line.doing, line.heard, line.invocation = Doing.HEARD, output, None

    # what may happen

    def movable(self, execution: FunctionExecution) -> list[Line]:
        """The lines that may go on now."""
        now = self._clock()
        ready = (Doing.BEGINS, Doing.HEARD, Doing.FAILED)
        return [
            line
            for line in execution.lines
            if line.doing in ready
            or (line.doing is Doing.WAITS and line.until <= now)
            or (line.doing is Doing.MAPS and all(ln.doing is Doing.OVER for ln in line.lanes))
        ]

    def waits(self) -> list[int]:
        """The times that executions wait for."""
        lines = [line for each in self.executions for line in each.lines]
        return [line.until for line in lines if line.doing is Doing.WAITS]

    def go_on(self, execution: FunctionExecution, line: Line) -> None:
        """Let a line of control take its next transition."""
        match line.doing:
            case Doing.BEGINS:
                self._enter(execution, line)
            case Doing.FAILED:
                self._handle(execution, line)
            case Doing.MAPS:
                self._leave(execution, line, [lane.heard for lane in line.lanes])
            case _:
                self._leave(execution, line, line.heard)

    def returned(self, invocation: Invocation, output: Any) -> None:
        """A function succeeded. That is all that its state waits for, unless it has a token."""
        if invocation.pending:
            line = invocation.line
            line.invocation = None
            if line.token is None:
                line.doing, line.heard = Doing.HEARD, json.loads(json.dumps(output))
            else:
                line.doing = Doing.ASKS

    def failed(self, invocation: Invocation, error: str, cause: str = "") -> None:
        """A function failed, or was lost sight of."""
        if invocation.pending:
            line = invocation.line
            line.invocation = None
            line.doing, line.heard = Doing.FAILED, {"Error": error, "Cause": cause}

    def time_passes(self) -> None:
        """States and executions run out of their time."""
        now = self._clock()
        for execution in self.executions:
            for invocation in execution.invocations:
                limit = invocation.line.state.get("TimeoutSeconds")
                if limit is not None and now >= invocation.at + limit * 1000:
                    self.failed(invocation, TIMEOUT)
            limit = self._definition(execution.machine)["TimeoutSeconds"]
            if execution.running and now >= execution.started_at + limit * 1000:
                self.close(execution, "TIMED_OUT")

    def close(self, execution: Execution, status: str, error: str = "", cause: str = "") -> None:
        super().close(execution, status, error, cause)
        event = self.events[-1]
        if not self.with_output:
            event |= {"error": None, "cause": None}
        elif execution.output is not None:
            event |= {"output": execution.output, "outputDetails": {"included": True}}
        assert isinstance(execution, FunctionExecution)
        self.on_end(execution)

    # Amazon States Language

    def _enter(self, execution: FunctionExecution, line: Line) -> None:
        state = line.state
        match state["Type"]:
            case "Task":
                self._invoke(execution, line)
            case "Wait":
                line.until = self._until(execution, line)
                line.doing = Doing.WAITS
            case "Choice":
                chosen = [
                    choice["Next"]
                    for choice in state["Choices"]
                    if self._value(execution, line, choice["Condition"])
                ]
                line.at = [*chosen, state["Default"]][0]
            case "Map":
                processor = state["ItemProcessor"]
                line.at_once = self._value(execution, line, state["MaxConcurrency"])
                for item in self._value(execution, line, state["Items"]):
                    lane = Line(processor["States"], processor["StartAt"], None, line, item)
                    lane.doing = Doing.QUEUES
                    lane.input = self._value(execution, lane, state["ItemSelector"], line.input)
                    line.lanes.append(lane)
                line.doing = Doing.MAPS
                self._let_begin(line)
            case "Fail":
                error, cause = (
                    self._value(execution, line, state[name]) for name in ("Error", "Cause")
                )
                self.close(execution, "FAILED", error, cause)
            case "Pass":
                self._leave(execution, line, line.input)
            case other:
                raise NotImplementedError(f"the double knows no state of the type {other}")

    def _invoke(self, execution: FunctionExecution, line: Line) -> None:
        state = line.state
        self._count += 1
        line.token = None
        function, event = state["Resource"], state["Arguments"]
        if function == WITH_TOKEN:
            function, event = event["FunctionName"], event["Payload"]
            line.token = Token(f"token-{self._count}", execution, frozenset())
            self.tokens[line.token.value] = line.token
        told = self._value(execution, line, event)
        if line.token is not None:
            line.token.names = frozenset(told.get("requests", ()))
        line.doing = Doing.INVOKES
        line.invocation = Invocation(execution, line, function, told, self._clock())

    def _until(self, execution: FunctionExecution, line: Line) -> int:
        state = line.state
        if "Seconds" in state:
            return self._clock() + int(state["Seconds"]) * 1000
        until = self._value(execution, line, state["Timestamp"])
        return round(datetime.fromisoformat(until).timestamp() * 1000)

    def _handle(self, execution: FunctionExecution, line: Line) -> None:
        """Retry the state, go on where an error is caught, or fail."""
        state, error = line.state, line.heard["Error"]
        if line.token is not None and line.token.waits is Waits.WAITING:
            line.token.waits = Waits.TIMED_OUT
        for retrier in state.get("Retry", ()):
            if error in retrier["ErrorEquals"]:
                name = retrier["ErrorEquals"][0]
                if line.retried[name] < min(retrier["MaxAttempts"], RETRIES):
                    line.retried[name] += 1
                    line.doing = Doing.BEGINS
                    return
                break
        for catcher in state.get("Catch", ()):
            if error in catcher["ErrorEquals"]:
                self._move(execution, line, catcher, line.heard, line.heard, None)
                return
        self.close(execution, "FAILED", error, line.heard["Cause"])

    def _leave(self, execution: FunctionExecution, line: Line, result: Any) -> None:
        """Leave a state, with what came of it."""
        if line.state["Type"] == "Wait":
            result = line.input
        self._move(execution, line, line.state, result, result, result)

    def _move(
        self,
        execution: FunctionExecution,
        line: Line,
        way: Mapping[str, Any],
        output: Any,
        error: Any,
        result: Any,
    ) -> None:
        """Assign variables and go to the next state; `way` is a state, or its catcher."""

        def value(template: Any) -> Any:
            return self._value(execution, line, template, line.input, result, error)

        assigned = value(way.get("Assign", {}))
        line.input = value(way["Output"]) if "Output" in way else output
        line.variables |= assigned
        line.retried.clear()
        line.lanes, line.invocation, line.token = [], None, None
        if "Next" in way:
            line.at, line.doing = way["Next"], Doing.BEGINS
            return
        line.doing, line.heard = Doing.OVER, line.input
        if line.outer is None:
            execution.output = json.dumps(line.input)
            self.close(execution, "SUCCEEDED")
        else:
            self._let_begin(line.outer)

    def _let_begin(self, line: Line) -> None:
        """Let as many iterations of a Map run as its MaxConcurrency says."""
        queued = [lane for lane in line.lanes if lane.doing is Doing.QUEUES]
        over = sum(lane.doing is Doing.OVER for lane in line.lanes)
        running = len(line.lanes) - len(queued) - over
        for lane in queued[: max(0, line.at_once - running)]:
            lane.doing = Doing.BEGINS

    def _value(
        self,
        execution: FunctionExecution,
        line: Line,
        template: Any,
        input: Any = None,
        result: Any = None,
        error: Any = None,
    ) -> Any:
        """What a template of JSON and JSONata comes to."""
        context: dict[str, Any] = {
            "Execution": {"Name": execution.name, "Input": json.loads(execution.input)},
            "State": {"Name": line.at},
        }
        if line.retried:
            context["State"]["RetryCount"] = line.retried.total()
        if line.token is not None:
            context["Task"] = {"Token": line.token.value}
        if line.item is not None:
            context["Map"] = {"Item": {"Value": line.item}}
        states = {"context": context, "input": line.input if input is None else input}
        if result is not None:
            states["result"] = result
        if error is not None:
            states["errorOutput"] = error
        values = {"states": states, **line.all_variables()}
        return json.loads(json.dumps(_rendered(template, values)))


def definitions(tools: Mapping[str, FunctionTool]) -> Mapping[str, Mapping[str, Any]]:
    """The state machines of tools, as they are deployed, by the tools' names."""
    return {name: json.loads(Definition.of(tool).text) for name, tool in tools.items()}


def _rendered(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        return {name: _rendered(each, values) for name, each in template.items()}
    if isinstance(template, list):
        return [_rendered(each, values) for each in template]
    if isinstance(template, str) and template.startswith("{%"):
        expression = _parsed(template.removeprefix("{%").removesuffix("%}").strip())
        frame = expression.create_frame()
        for name, value in values.items():
            frame.bind(name, value)
        return expression.evaluate(None, frame)
    return template


@cache
def _parsed(expression: str) -> Any:
    return Jsonata(expression)
