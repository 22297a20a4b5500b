"""Run the subtasks of a local task: what `mcp_tasks.workflows.subtasks` does on AWS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..durable.calls import Called
from ..durable.journal import item_id, journal_partition
from ..durable.record import Failure, Kind, Operation, Record, State
from ..durable.suspension import StartSubtasks
from ..registry.asking import ToolError
from ..registry.decorated_function import finished
from ..registry.function_tool import FunctionTool
from ..registry.results import error_result, function_result
from ..registry.tool import Tool
from ..tasks.subtask import subtask_id

if TYPE_CHECKING:
    from .local_task import LocalTask


@dataclass
class LocalCalls:
    """The subtasks of one operation of a task."""

    task: LocalTask
    calls: StartSubtasks
    subtasks: dict[int, LocalTask] = field(default_factory=dict)

    def start(self) -> bool:
        """Run those that have no outcome yet; whether all have ended."""
        journal, operation = self.task.journal(), self.calls.operation_id
        journal.read()
        record = journal.records[operation]
        called = Called.from_json(journal.value(record))
        ended = journal.items(operation)
        for number, arguments in enumerate(called.arguments):
            if number not in ended:
                self._start(number, arguments)
        return self.tell()

    def tell(self) -> bool:
        """Write the outcomes of those that have ended; whether all have."""
        for number, subtask in self.subtasks.items():
            if not subtask.running:
                self._keep(number, subtask.status, subtask.result, subtask.error or "")
        return not any(subtask.running for subtask in self.subtasks.values())

    def cancel(self) -> None:
        """Cancel those that run."""
        for subtask in self.subtasks.values():
            subtask.cancel()

    def _start(self, number: int, arguments: Mapping[str, Any]) -> None:
        tool, task = self.calls.tool, self.task
        function = tool.function if isinstance(tool, FunctionTool) else None
        stub = task.steps.get(tool) or task.steps.get(function)
        if stub is not None:
            self._keep(number, *_result_of(stub, tool, arguments))
            return
        if not isinstance(tool, FunctionTool):
            raise TypeError(
                f"{tool.name} is a workflow, which does not run here: replace it by "
                "start_task(..., steps={it: function})"
            )
        subtask = replace(
            task.child(tool, arguments),
            task_id=subtask_id(task.task_id, self.calls.operation_id, number),
        )
        self.subtasks[number] = subtask
        task.subtasks.append(subtask)
        subtask.begin(task.subtask_ended)

    def _keep(self, number: int, status: str, result: dict[str, Any] | None, error: str) -> None:
        operation = Operation(Kind.SUBTASK, self.calls.tool.name)
        record = Record(item_id(0, number), operation, State.DONE, value=result)
        if status != "completed":
            message = f"The tool failed: {error}" if error else ""
            failure = Failure(status, message)
            record = replace(record, state=State.FAILED, value=None, failure=failure)
        task = self.task
        partition = journal_partition(task.tool.name, task.task_id, self.calls.operation_id)
        task.journal_table.keep(partition, record)


def _result_of(
    stub: Any, tool: Tool, arguments: Mapping[str, Any]
) -> tuple[str, dict[str, Any] | None, str]:
    """The status, the result and the error of what stands in for a tool."""
    try:
        return "completed", function_result(finished(stub(**arguments)), tool.result), ""
    except ToolError as error:
        return "completed", error_result(str(error)), ""
    except Exception as error:
        return "failed", None, type(error).__name__
