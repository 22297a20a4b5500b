"""The methods of the tasks extension, `io.modelcontextprotocol/tasks` (tasks.md)."""

from __future__ import annotations

from dataclasses import dataclass

from ...audit import audit
from ...protocol.errors import MissingCapability, invalid_params
from ...tasks.task import now_ms
from ..call import Call, Complete, MethodTable
from .poll_rate_limit import PollRateLimit
from .result_links import ResultLinks
from .task_operations import TaskOperations
from .task_wire_format import EXTENSION, REQUIRED, detailed_task


@dataclass(frozen=True, slots=True)
class TaskMethods:
    """Serves `tasks/get`, `tasks/update` and `tasks/cancel`."""

    operations: TaskOperations
    result_links: ResultLinks
    poll_rate_limit: PollRateLimit

    def table(self) -> MethodTable:
        """The methods by name."""
        return {
            "tasks/get": self.get,
            "tasks/update": self.update,
            "tasks/cancel": self.cancel,
        }

    def get(self, call: Call) -> Complete:
        """`tasks/get` ("Task Polling")."""
        task_id = self._task_id(call)
        self.poll_rate_limit.count(call.principal, task_id)
        task = self.operations.read(call, task_id)
        self.poll_rate_limit.suggested(call.principal, task_id, task.poll_interval_ms)
        audit("read", task_id, call.principal)
        now = now_ms()
        return Complete(detailed_task(self.result_links.with_result(task, now), now))

    def update(self, call: Call) -> Complete:
        """`tasks/update` ("Task Update Requests")."""
        task_id = self._task_id(call)
        responses = call.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise invalid_params("params.inputResponses must be an object of answers by key")
        self.operations.answer(call, task_id, responses)
        return Complete({})

    def cancel(self, call: Call) -> Complete:
        """`tasks/cancel` ("Task Cancellation")."""
        self.operations.cancel(call, self._task_id(call))
        return Complete({})

    def _task_id(self, call: Call) -> str:
        require_extension(call)
        return self.operations.check_id(call.params.get("taskId"))


def require_extension(call: Call) -> None:
    """Raise MissingCapability (-32021) for a request that does not declare the extension."""
    if not call.declares_tasks:
        message = f"This needs a client that declares the {EXTENSION} extension"
        raise MissingCapability(message, REQUIRED)
