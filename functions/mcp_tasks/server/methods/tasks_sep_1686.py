"""The tasks of SEP-1686 as it was first written, over the same core as the tasks of 2025-11-25.

The client chooses a task's id, and sends it with its call (`modelcontextprotocol.io/task` in
`_meta`, "Creating Tasks"). The response to that call is the tool's own result. Meanwhile the client
may poll, and get the result on another connection.

An id is its caller's own: two callers may use the same one. The task's id in the table follows from
both (`DerivedIds`), and the client's is kept with the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...audit import audit
from ...protocol import meta
from ...protocol.errors import ProtocolError, invalid_params
from ...protocol.notifications import notification
from ...tasks.ids import cell_of
from ...tasks.poll_interval import poll_interval_ms
from ...tasks.state import Status
from ...tasks.task import Task, now_ms
from ..call import Call, Complete, Method, MethodTable
from ..sealed import DerivedIds
from .poll_rate_limit import PollRateLimit
from .result_links import ResultLinks
from .task_operations import TaskOperations

TASK: Final = "modelcontextprotocol.io/task"
RELATED_TASK: Final = "modelcontextprotocol.io/related-task"

CLIENT_TASK_ID: Final = "taskId"
"""The member of a task's client context that has the client's id."""
REQUEST_ID: Final = "requestId"
"""The member that has the id of the request, as JSON, which `notifications/cancelled` names."""

MAX_ID_CHARACTERS: Final = 255


@dataclass(frozen=True, slots=True)
class ClientTask:
    """What a call says about the task that it wants."""

    id: str
    keep_alive_ms: int | None


def client_task(about: Mapping[str, Any]) -> ClientTask | None:
    """Read `_meta` of a call; None for a call that wants no such task. Raises ProtocolError."""
    wanted = about.get(TASK)
    if wanted is None:
        return None
    if not isinstance(wanted, dict) or not isinstance(wanted.get("taskId"), str):
        raise invalid_params(f"params._meta['{TASK}'] must be an object with a taskId")
    task_id, keep_alive = wanted["taskId"], wanted.get("keepAlive")
    if not 0 < len(task_id) <= MAX_ID_CHARACTERS or cell_of(task_id) is not None:
        raise invalid_params(
            f"A taskId has at most {MAX_ID_CHARACTERS} characters, and not the form of the "
            "server's own; a UUID is one"
        )
    if keep_alive is None:
        return ClientTask(task_id, None)
    if isinstance(keep_alive, bool) or not isinstance(keep_alive, int) or keep_alive < 1:
        raise invalid_params("keepAlive must be a positive number of milliseconds")
    return ClientTask(task_id, keep_alive)


def created(client_id: str) -> dict[str, Any]:
    """`notifications/tasks/created` ("Task Creation Notification")."""
    return notification("notifications/tasks/created", {meta.META_MEMBER: related(client_id)})


def related(client_id: str) -> dict[str, Any]:
    """The member of `_meta` that names a message's task ("Related Task Metadata")."""
    return {RELATED_TASK: {"taskId": client_id}}


def fields(task: Task, now: int) -> dict[str, Any]:
    """A task ("Task Get Response"). A task that nothing was heard of is `submitted`."""
    client_id = str(task.client_context[CLIENT_TASK_ID])
    submitted = task.status is Status.WORKING and task.revision == 1
    found = {
        "taskId": client_id,
        "status": "submitted" if submitted else task.status.value,
        "keepAlive": max(0, task.expires_at - now),
        "pollFrequency": poll_interval_ms(task, now),
    }
    if task.status is Status.FAILED:
        found["error"] = (task.error or {}).get("message", "Internal error")
    return found


@dataclass(frozen=True, slots=True)
class TasksSep1686:
    """Serves the methods for tasks with an id of the client's."""

    operations: TaskOperations
    result_links: ResultLinks
    poll_rate_limit: PollRateLimit
    ids: DerivedIds

    def task_id(self, principal: str, client_id: str) -> str:
        """The id of a caller's task in the table."""
        return self.ids.derive("client", principal, client_id)

    def beside(self, others: MethodTable) -> MethodTable:
        """The methods by name; for other ids, those of the other design of tasks."""
        return {
            **others,
            "tasks/get": self._or(self.get, others["tasks/get"]),
            "tasks/result": self._or(self.result, others["tasks/result"]),
            "tasks/delete": self.delete,
        }

    def get(self, call: Call) -> Complete:
        """`tasks/get` ("Getting Tasks")."""
        client_id, task_id = self._ids(call)
        self.poll_rate_limit.count(call.principal, task_id)
        task = self._read(call, task_id)
        self.poll_rate_limit.suggested(call.principal, task_id, task.poll_interval_ms)
        audit("read", task_id, call.principal)
        return Complete({**fields(task, now_ms()), meta.META_MEMBER: related(client_id)})

    def result(self, call: Call) -> Complete:
        """`tasks/result` ("Retrieving Task Results"), of a task that is completed."""
        client_id, task_id = self._ids(call)
        task = self._read(call, task_id)
        if task.status is not Status.COMPLETED:
            status = fields(task, now_ms())["status"]
            raise invalid_params(
                f"Cannot retrieve result: Task status is '{status}', not 'completed'"
            )
        audit("read", task_id, call.principal)
        result = self.result_links.with_result(task, now_ms()).result or {}
        return Complete(with_related(result, client_id))

    def delete(self, call: Call) -> Complete:
        """`tasks/delete` ("Task Deletion"), of a task that has ended."""
        client_id, task_id = self._ids(call)
        task = self._read(call, task_id)
        if not task.status.terminal:
            raise invalid_params("Cannot delete task: it has not ended; cancel its request first")
        if task.parent is not None:
            raise invalid_params("Cannot delete task: it is a subtask, and goes with its parent")
        self.operations.tree.discard(task, now_ms())
        audit("delete", task_id, call.principal)
        return Complete({meta.META_MEMBER: related(client_id)})

    def cancel(self, call: Call, task_ids: list[str], request_id: str) -> None:
        """Cancel the one of these tasks that a request has asked for, if there is one."""
        if not task_ids:
            return
        tasks = self.operations.task_table.get_many(task_ids, now_ms(), call.principal)
        for task in tasks.values():
            if task.client_context.get(REQUEST_ID) == request_id:
                self.operations.cancel(call, task.task_id)

    def _or(self, own: Method, other: Method) -> Method:
        def answer(call: Call) -> Any:
            task_id = call.params.get("taskId")
            clients = isinstance(task_id, str) and cell_of(task_id) is None
            return own(call) if clients else other(call)

        return answer

    def _ids(self, call: Call) -> tuple[str, str]:
        client_id = call.params.get("taskId")
        if not isinstance(client_id, str):
            raise invalid_params("params.taskId must be a string")
        if not 0 < len(client_id) <= MAX_ID_CHARACTERS:
            raise _not_found()
        if cell_of(client_id) is not None:  # one that the server has chosen
            return client_id, self.operations.check_id(client_id)
        return client_id, self.task_id(call.principal, client_id)

    def _read(self, call: Call, task_id: str) -> Task:
        return self.operations.read(call, task_id)


def with_related(result: Mapping[str, Any], client_id: str) -> dict[str, Any]:
    """A result with the metadata of its task."""
    return {
        **result,
        meta.META_MEMBER: {**result.get(meta.META_MEMBER, {}), **related(client_id)},
    }


def _not_found() -> ProtocolError:
    return invalid_params("Failed to retrieve task: Task not found")
