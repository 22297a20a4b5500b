"""Run a tool as a task in this process, as its state machine and its worker do."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ..durable.journal import Journal
from ..durable.operations import DurableOperations
from ..durable.run import Run
from ..durable.suspension import RunLanes, StartSubtasks
from ..payloads.s3_store import PayloadStore
from ..registry.context import TaskCancelled, TaskContext
from ..registry.decorated_function import DECLARATION
from ..registry.function_tool import FunctionTool
from ..tasks.questions import Question, question
from ..workflows.execution_outcome import NON_DETERMINISM
from ..workflows.run_event import lane_of, mode_of
from ..workflows.tool_run import ToolRun
from .failed_run import failed_run, failure
from .local_calls import LocalCalls
from .memory import Crash, MemoryClock, MemoryJournalTable
from .memory_payloads import MemoryBucket

TASK_ID: Final = "c1-0123456789abcdef0123456789abcdef"
BEGINNING: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""When every task in a test begins."""
CRASH_ERROR: Final = "Runtime.ExitError"
WAIT_AFTER_CRASH_MS: Final = 10_000

Answers = Mapping[str, Mapping[str, Any]]


@dataclass
class LocalTask:
    """A task of a tool in this process. `start_task` begins one."""

    tool: FunctionTool
    arguments: Mapping[str, Any]
    steps: Mapping[Any, Callable[..., Any]] = field(default_factory=dict)
    """What is called instead of a step's function, or of a tool, by that function or tool."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    status: str = "working"
    """As clients see it: "working", "input_required", "completed", "failed" or "cancelled"."""
    result: dict[str, Any] | None = None
    """The CallToolResult of a task that is completed."""
    error: str | None = None
    """The name of the exception that a task failed with, or what else it failed with."""
    cause: str = ""
    """What is said about the error."""
    questions: dict[str, Question] = field(default_factory=dict)
    """The questions that wait for an answer, by key."""
    not_undone: list[str] = field(default_factory=list)
    """The steps that could not be undone."""
    executed: list[str] = field(default_factory=list)
    """The names of the functions of steps, in the order in which they ran, also in subtasks."""
    reports: list[str] = field(default_factory=list)
    """What the tool has reported, in order."""
    subtasks: list[LocalTask] = field(default_factory=list)
    """The tasks of the tools that the tool has called, but for those that `steps` replaces."""
    runs: int = 0
    """How often the tool was run from its first line, a map's lanes included."""
    journal_table: MemoryJournalTable = field(default_factory=MemoryJournalTable)
    clock: MemoryClock = field(
        default_factory=lambda: MemoryClock(round(BEGINNING.timestamp() * 1000))
    )
    to_undo: bool = False
    task_id: str = TASK_ID
    _bucket: Any = field(default_factory=MemoryBucket)
    _ended: Callable[[], None] = lambda: None
    """Tells the task that has called this one that it has ended."""
    _crashes: int = 0
    _events: int = 0
    _journal_begun: bool = False
    _killed_lanes: int = 0
    _called: RunLanes | StartSubtasks | None = None
    _calls: LocalCalls | None = None

    @property
    def waited(self) -> timedelta:
        """How long the task has slept and waited."""
        return timedelta(milliseconds=self.clock()) - (BEGINNING - datetime(1970, 1, 1, tzinfo=UTC))

    def answer(self, answers: Answers) -> LocalTask:
        """Answer questions, as a client does, and let the task go on."""
        self.answers |= answers
        if self.status == "input_required" and self.answers.keys() >= self.questions.keys():
            self.status, self.questions = "working", {}
            self._go_on()
        return self

    def cancel(self) -> LocalTask:
        """Cancel the task, and undo what it did."""
        if self.running:
            calls, self._calls = self._calls, None  # it does not go on with what they come to
            if calls is not None:
                calls.cancel()
            self.status, self.questions = "cancelled", {}
            self._undo()
            self._ended()
        return self

    @property
    def running(self) -> bool:
        """Whether the task has not ended."""
        return self.status in ("working", "input_required")

    def _go_on(self) -> None:
        while self.status == "working":
            output = self._run({})
            match output:
                case {"ask": asked}:
                    self._ask(asked)
                case {"fail": {"error": error, "cause": cause}}:
                    self.status, self.error, self.cause = "failed", *failure(error, cause)
                    if error != NON_DETERMINISM:
                        self._undo()
                case {"result": result}:
                    self.status, self.result = "completed", result
                case {"call": _} if isinstance(self._called, StartSubtasks):
                    self._calls = LocalCalls(self, self._called)
                    if not self._calls.start():
                        return  # a subtask asks; the last one that ends lets this one go on
                    self._calls = None
                case _:
                    self._wait(output)
        if not self.running:
            self._ended()

    def child(self, tool: FunctionTool, arguments: Mapping[str, Any]) -> LocalTask:
        """A subtask that has not begun, with this task's steps, answers, journal and clock."""
        return LocalTask(
            tool,
            arguments,
            self.steps,
            self.secrets,
            dict(self.answers),
            executed=self.executed,
            journal_table=self.journal_table,
            clock=self.clock,
            _bucket=self._bucket,
        )

    def begin(self, ended: Callable[[], None]) -> None:
        """Run until the task ends or asks; `ended` is called when it ends after it has asked."""
        self._go_on()
        self._ended = ended

    def subtask_ended(self) -> None:
        """Go on, if that was the last subtask that the tool waits for."""
        if self.status == "working" and self._calls is not None and self._calls.tell():
            self._calls = None
            self._go_on()

    def _ask(self, asked: Mapping[str, Any]) -> None:
        if not self.answers.keys() >= asked.keys():
            self.status = "input_required"
            self.questions = {key: question(each) for key, each in asked.items()}

    def _wait(self, output: Mapping[str, Any]) -> None:
        match output:
            case {"wait": {"until": until}}:
                self.clock.wait_until(round(datetime.fromisoformat(until).timestamp() * 1000))
            case {"map": {"id": map_id, "lanes": lanes}}:
                runs = [self._run({"lane": {"id": map_id, "number": n}}) for n in lanes]
                self._killed_lanes = sum("crash" in run for run in runs)
            case {"crash": _}:
                self.clock.wait_until(self.clock() + WAIT_AFTER_CRASH_MS)
            case {"successor": _}:
                self._events = 0

    def _undo(self) -> None:
        while self.to_undo:
            output = self._run({"undo": True})
            match output:
                case {"result": {"not_undone": left}}:
                    self.not_undone, self.to_undo = left, False
                case {"fail": _}:
                    self.not_undone, self.to_undo = ["some steps"], False
                case _:
                    self._wait(output)

    def _run(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """One invocation of the worker, and its output."""
        self.runs += 1
        event = {"answers": self.answers, "events": self._events, "calls": True, **more}
        if self._crashes and "lane" not in more:
            event["crash"] = {"error": CRASH_ERROR, "cause": "", "count": self._crashes}
        try:
            output = self._output(event)
        except Crash:
            if "lane" not in more:
                self._crashes += 1
            return {"crash": True}
        except TaskCancelled:
            return {"fail": {"error": TaskCancelled.__name__, "cause": ""}}
        except Exception as error:
            return failed_run(error, self.tool.name, self.task_id)
        self._crashes = 0 if "lane" not in more else self._crashes
        self._events = output.get("events", self._events)
        passed_on: dict[str, Any] = json.loads(json.dumps(output, allow_nan=False))
        return passed_on

    def _output(self, event: Mapping[str, Any]) -> dict[str, Any]:
        context = TaskContext(
            task_id=self.task_id,
            answers=self.answers,
            secrets=self.secrets,
            on_report=self._report,
        )
        run = Run(
            self.journal(),
            self.clock,
            self.clock() + self.tool.timeout // timedelta(milliseconds=1),
            self.tool.ttl,
            mode_of(event),
            lane_of(event),
            self._killed_lanes,
            announce_undo=self._announce_undo,
            stand_in=self._stand_in,
        )
        tool_run = ToolRun(self.tool, DurableOperations(run), self._all_undone, self._journal_begun)
        output = tool_run.output(event, dict(self.arguments), context)
        self._called = run.suspension.first if run.suspension is not None else None
        self._journal_begun = output.get("journal", self._journal_begun)
        return output

    def journal(self) -> Journal:
        """The task's journal, to be read."""
        return Journal(
            self.journal_table,
            PayloadStore(lambda: self._bucket, "memory"),
            self.tool.name,
            self.task_id,
            self.tool.ttl // timedelta(milliseconds=1),
            self.clock,
        )

    def _report(self, message: str, progress: float | None) -> None:
        """As on AWS, a report to a task that has ended ends the function."""
        if self.status != "working":
            raise TaskCancelled
        self.reports.append(message)

    def _announce_undo(self) -> None:
        if self.status != "working":
            raise TaskCancelled
        self.to_undo = True

    def _all_undone(self) -> None:
        if self.status != "working":
            raise TaskCancelled
        self.to_undo = False

    def _stand_in(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is called in the place of a step's function."""
        if isinstance(function, functools.partial):
            inner = self._stand_in(function.func)
            return functools.partial(inner, *function.args, **function.keywords)
        stub = self.steps.get(function, function)

        @functools.wraps(stub)
        def counted(*args: Any) -> Any:
            self.executed.append(getattr(function, "__name__", type(function).__name__))
            return stub(*args)

        return counted


def start_task(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    answers: Answers | None = None,
    steps: Mapping[Any, Callable[..., Any]] | None = None,
    secrets: Mapping[str, str] | None = None,
    journal_table: MemoryJournalTable | None = None,
) -> LocalTask:
    """Call a tool, a function with `@tool(task=...)`, as a client would, and run its task until it
    ends or waits for an answer.

    `answers` are given in advance, by the questions' keys. `steps` replaces functions of steps, and
    tools that are called: `{look_up: lambda company: FACTS}`. Other tools that are functions run as
    subtasks, one after the other (`LocalTask.subtasks`). Time that the tool sleeps or waits is
    skipped.

    Raises TypeError for a function that is no tool.
    """
    declaration = getattr(function, DECLARATION, None)
    if not isinstance(declaration, FunctionTool):
        raise TypeError(f"{function!r} is no function tool: declare it with @tool")
    task = LocalTask(declaration, arguments or {}, steps or {}, secrets or {}, dict(answers or {}))
    task.journal_table = journal_table or task.journal_table
    task._go_on()
    return task
