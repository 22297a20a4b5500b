"""One run of a function tool inside a worker, and what its state machine does next.

    Run -> Next? -> Done       {"result": CallToolResult}    the execution's output
     ^       |----> Ask        {"ask": questions}            waits on a task token, then runs again
     |       |----> Wait       {"wait": {"until": ...}}      waits until then, then runs again
     |       |----> Map        {"map": {"id", "lanes"}}      runs the lanes, then runs again
     |       |----> Call       {"call": {"operation", ...}}  starts subtasks, then runs again
     +-------+----> Fail       {"fail": {"error", "cause"}}

A run that waits, maps or calls has done durable operations (`mcp_tasks.durable`), and so may have
been killed and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools import Logger

from .. import metrics
from ..crash_report import with_reference
from ..durable.journal import OUTCOME, Journal, JournalUnavailable
from ..durable.operations import DurableOperations
from ..durable.record import Failure, Kind, Operation, Record, State
from ..durable.run import Mode
from ..durable.suspension import (
    NonDeterminism,
    ReplayEnded,
    RunLanes,
    StartSubtasks,
    Suspended,
)
from ..durable.undo import may_have_to_be_undone, undo_all
from ..redaction import log_crash
from ..registry.asking import ToolError
from ..registry.context import Context, InputRequired
from ..registry.decorated_function import finished
from ..registry.function_tool import FunctionTool
from ..registry.results import error_result
from .execution_outcome import NON_DETERMINISM, NOT_UNDONE
from .retry import state_retried_if_transient
from .run_event import MAX_EVENTS, crashed, events_after, too_many_crashes
from .successor import SUCCESSOR
from .undo_execution import report_not_undone

logger = Logger()


def run_function(tool: FunctionTool, arguments: Any, task: Context) -> dict[str, Any]:
    """Run a function tool without durable operations: `{"result": ...}`, or `{"ask": ...}`."""
    values = tool.check_arguments(arguments)
    try:
        return {"result": tool.run(values, task)}
    except ToolError as error:
        # A result and not a failure: no Catch clause has to know an exception's name.
        return {"result": error_result(str(error))}
    except InputRequired as required:
        return _ask(required)


def _ask(required: InputRequired) -> dict[str, Any]:
    return {"ask": {key: asked.as_json() for key, asked in required.questions.items()}}


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A run of a tool that may have durable operations."""

    tool: FunctionTool
    operations: DurableOperations
    all_undone: Callable[[], None]
    """Writes to the task's row that there is nothing to undo any more."""
    journal_begun: bool = False
    """Whether an earlier run of the tool has done durable operations."""

    def output(self, event: Mapping[str, Any], arguments: Any, task: Context) -> dict[str, Any]:
        """Run the tool, and undo what it did if it fails. Returns what its state machine does next.

        A tool that was killed runs again if its journal has begun, so that it may be repeated. One
        whose execution has a long history goes on in another execution.

        Raises what the tool raises, when there is nothing to undo; and TRANSIENT_ERROR, when the
        journal could not be read or written for a while.
        """
        try:
            if event.get("crash") and (too_many_crashes(event) or not self._journal.read()):
                return crashed(event)
            if self.journal_begun:
                self._journal.read()  # what it has is not done again, nor reported
            output = self._next(arguments, self._context(task))
        except JournalUnavailable as unavailable:
            logger.error(
                "The journal, or the row, could not be read or written", error=str(unavailable)
            )
            with state_retried_if_transient():
                raise unavailable.error from None
        if "result" in output or "fail" in output or "lane" in output:
            return output
        answers = {name: event.get(name) or {} for name in ("answers", "earlier_answers")}
        if "call" in output and not event.get("calls"):
            return {SUCCESSOR: answers}  # the execution has a definition without subtasks
        events = events_after(event, output)
        undoes = self._mode is Mode.UNDO  # in one execution: nothing starts another after it
        if undoes or events <= MAX_EVENTS or not event.get("events"):
            return {**output, "events": events, "journal": bool(self._journal.records)}
        return {SUCCESSOR: answers}

    def _context(self, task: Context) -> Context:
        task = replace(task, operations=self.operations)
        if self._mode is not Mode.UNDO:
            return task
        self._journal.read()
        # The task has ended: a report would end this run, as one that nobody waits for.
        return replace(task, answers=self._journal.answers(), on_report=lambda *_: None)

    def _next(self, arguments: Any, task: Context) -> dict[str, Any]:
        try:
            return self._output(arguments, task)
        except Suspended:
            return self._suspended()
        except ReplayEnded:
            return {"lane": "ended"} if self._mode is Mode.LANE else self._undo()
        except NonDeterminism as error:
            logger.error("The tool takes another way than before", difference=str(error))
            metrics.count(metrics.NON_DETERMINISM)
            return {"fail": {"error": NON_DETERMINISM, "cause": str(error)}}

    def _output(self, arguments: Any, task: Context) -> dict[str, Any]:
        values = self.tool.check_arguments(arguments)
        try:
            result = self.tool.run(values, task)
        except ToolError as error:
            return self._failed(error) or {"result": error_result(str(error))}
        except InputRequired as required:
            if self._mode is Mode.UNDO:
                raise ReplayEnded from None
            return _ask(required)
        except Exception as error:
            if (output := self._failed(error)) is None:
                raise
            return output
        if self.operations.run.suspension is not None:
            raise self.operations.run.suspension  # the tool has caught it
        if self._mode is not Mode.FORWARD:
            raise ReplayEnded
        self.operations.check_end()
        return {"result": result}

    @property
    def _journal(self) -> Journal:
        return self.operations.run.journal

    @property
    def _mode(self) -> Mode:
        return self.operations.run.mode

    def _suspended(self) -> dict[str, Any]:
        suspension = self.operations.run.suspension
        if suspension is None:  # raised by nobody but Run.suspend
            raise RuntimeError("a run was suspended, and no operation waits")
        match suspension.first:
            case RunLanes(map_id, count):
                return {"map": {"id": map_id, "lanes": list(range(count))}}
            case StartSubtasks(operation, count):
                return {"call": {"operation": operation, "count": count}}
        return {"wait": {"until": _timestamp(suspension.until)}}

    def _failed(self, error: Exception) -> dict[str, Any] | None:
        """What follows when the tool has raised: None, when there is nothing to undo."""
        if self._mode is Mode.UNDO:
            if not isinstance(error, ToolError):
                log_crash(logger, error)
            return self._undo()
        if self._mode is Mode.LANE or not may_have_to_be_undone(self.operations):
            return None
        # Before anything is undone: a tool that were to run again might not fail this time, and
        # would go on with what is undone.
        if isinstance(error, ToolError):
            failure = Failure(ToolError.__name__, str(error))
        else:
            failure = Failure(type(error).__name__, "", log_crash(logger, error))
        operation = Operation(Kind.RUN, self.tool.name)
        self._journal.write(Record(OUTCOME, operation, State.FAILED, failure=failure))
        return self._undo()

    def _undo(self) -> dict[str, Any]:
        try:
            not_undone = finished(undo_all(self.operations))
        except Suspended:
            return self._suspended()
        outcome = self._journal.find(OUTCOME)
        # A task that failed by itself may be cancelled, or expire, while it is being undone: its
        # journal has the outcome, and its row is not written any more.
        ended = self.operations.run.task_ended or outcome is None
        if not ended:
            self.all_undone()
        if not_undone:
            report_not_undone(self._journal.task_id, not_undone)
        notice = f"{NOT_UNDONE}{', '.join(not_undone)}" if not_undone else ""
        if ended or outcome is None or outcome.failure is None:
            return {"result": {"not_undone": not_undone}}
        failure = outcome.failure
        if failure.name == ToolError.__name__:
            text = f"{failure.message}\n{notice}" if notice else failure.message
            return {"result": error_result(text)}
        cause = with_reference(notice or failure.name, failure.reference)
        return {"fail": {"error": failure.name, "cause": cause}}


def _timestamp(ms: int) -> str:
    """RFC 3339 in whole seconds, rounded up: a state that waits must not end too early."""
    return datetime.fromtimestamp(-(-ms // 1000), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
