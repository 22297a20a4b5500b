"""The one way from a request to a task: it is the caller's, and the token has its tool's scopes.

tasks.md, "Security Considerations": "authorization checks on each task-related request". A method
that takes a task id reads the task here, so it cannot leave a check out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..audit import Action, audit
from ..protocol.errors import InsufficientScope, ProtocolError, invalid_params
from ..registry.catalogue import Catalogue
from ..tasks.errors import UnknownTask
from ..tasks.task import Task
from ..tasks.task_table import TaskTable
from .call import Call
from .scopes import ScopeCheck

TASK_NOT_FOUND: Final = "Task not found: it never existed, or it has expired"
"""The same words for a task that does not exist, has expired, or belongs to another caller."""


@dataclass(frozen=True, slots=True)
class TaskAccess:
    """Reads tasks for requests."""

    task_table: TaskTable
    catalogue: Catalogue
    scope_check: ScopeCheck

    def read(self, call: Call, task_id: str, now: int, action: Action) -> Task:
        """The caller's task, by one consistent read.

        Raises ProtocolError: -32602 for a task that does not exist for the caller, which is
        audited, and HTTP 403 for a token that lacks a scope of the task's tool.
        """
        try:
            task = self.task_table.get(task_id, now, call.principal)
        except UnknownTask:
            raise not_found(action, task_id, call) from None
        self.scope_check.check(call, self._scopes(task))
        return task

    def permitted(self, call: Call, tasks: Iterable[Task]) -> set[str]:
        """The ids of those of the caller's tasks whose scopes the token has.

        Raises InsufficientScope (HTTP 403) when it has those of none.
        """
        permitted, refusal = set(), None
        for task in tasks:
            try:
                self.scope_check.check(call, self._scopes(task))
                permitted.add(task.task_id)
            except InsufficientScope as error:
                refusal = error
        if refusal is not None and not permitted:
            raise refusal
        return permitted

    def _scopes(self, task: Task) -> list[str]:
        """What the tool needs today, and what it needed when the task was created: a tool that is
        removed, or needs less, does not open the tasks that it has.

        A subtask is as open as the task that its client has asked for: a task's `childTaskIds` can
        all be read (SEP-2268, "Getting Subtasks").
        """
        entry = self.catalogue.tools.get(task.parent.root_tool if task.parent else task.tool)
        return [*(entry.scopes if entry else ()), *task.scopes]


def not_found(action: Action, task_id: str, call: Call) -> ProtocolError:
    """-32602 for a task that does not exist for the caller, with its line in the audit log."""
    audit(action, task_id, call.principal, refused=True)
    return invalid_params(TASK_NOT_FOUND)
