"""The tasks of 2025-11-25 (2025-11-25 basic/utilities/tasks.mdx), over the same core as the tasks
extension of 2026-07-28.

A client asks for a task by `params.task`. It polls `tasks/get`, and gets the result and the task's
questions from `tasks/result`, which waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...audit import audit
from ...protocol import meta
from ...protocol.errors import ErrorCode, ProtocolError, invalid_params
from ...registry.catalogue import Catalogue
from ...tasks.task import now_ms
from ...tasks.task_list import TaskList
from ..call import Call, Complete, MethodTable, Outcome
from ..sealed import Seal, Unsealable
from ..stream_position import StreamPosition
from .poll_rate_limit import PollRateLimit
from .task_operations import TaskOperations
from .task_wire_2025_11_25 import listed_fields, task_fields

PAGE_SIZE: Final = 50
"""Tasks of one page of `tasks/list`."""

CURSOR_LIFETIME_MS: Final = 3600 * 1000

Follow = Callable[[Call, StreamPosition], Outcome]
"""Sends what a request's event stream has to bring, until its response."""


@dataclass(frozen=True, slots=True)
class Tasks20251125:
    """Serves `tasks/get`, `tasks/result`, `tasks/list` and `tasks/cancel`."""

    operations: TaskOperations
    poll_rate_limit: PollRateLimit
    task_list: TaskList
    cursors: Seal
    can_list: bool
    """Whether callers can be told apart: else each would see everybody's tasks ("Task Isolation and
    Access Control")."""

    def table(self, version: str, follow: Follow) -> MethodTable:
        """The methods by name."""
        return {
            "tasks/get": self.get,
            "tasks/result": lambda call: self.result(call, version, follow),
            "tasks/cancel": self.cancel,
            **({"tasks/list": self.list_tasks} if self.can_list else {}),
        }

    def capability(self) -> dict[str, Any]:
        """`capabilities.tasks` ("Server Capabilities")."""
        lists: dict[str, Any] = {"list": {}} if self.can_list else {}
        return {**lists, "cancel": {}, "requests": {"tools": {"call": {}}}}

    def get(self, call: Call) -> Complete:
        """`tasks/get` ("Getting Tasks")."""
        task_id = self._task_id(call)
        self.poll_rate_limit.count(call.principal, task_id)
        task = self.operations.read(call, task_id)
        self.poll_rate_limit.suggested(call.principal, task_id, task.poll_interval_ms)
        audit("read", task_id, call.principal)
        return Complete(task_fields(task, now_ms()))

    def result(self, call: Call, version: str, follow: Follow) -> Outcome:
        """`tasks/result` ("Retrieving Task Results"): waits until the task is terminal."""
        task_id = self._task_id(call)
        token = meta.progress_token(call.params.get("_meta", {}))
        position = StreamPosition(
            version, call.method, call.request_id, task_id, progress_token=token
        )
        return follow(call, position)

    def list_tasks(self, call: Call) -> Complete:
        """`tasks/list` ("Listing Tasks"): the caller's, newest first."""
        now = now_ms()
        page = self.task_list.page(call.principal, PAGE_SIZE, self._start(call, now))
        tasks = self.operations.task_table.get_many(page.task_ids, now, call.principal)
        permitted = self.operations.access.permitted(call, tasks.values())
        listed = [tasks[task_id] for task_id in page.task_ids if task_id in permitted]
        result: dict[str, Any] = {"tasks": [listed_fields(task, now) for task in listed]}
        if page.next_key is not None:
            result["nextCursor"] = self.cursors.seal(
                page.next_key, call.principal, now + CURSOR_LIFETIME_MS
            )
        return Complete(result)

    def cancel(self, call: Call) -> Complete:
        """`tasks/cancel` ("Cancelling Tasks"); a terminal task is an error (-32602)."""
        task, cancelled = self.operations.cancel(call, self._task_id(call))
        if not cancelled:
            status = task_fields(task, now_ms())["status"]
            raise invalid_params(f"Cannot cancel task: already in terminal status '{status}'")
        return Complete(task_fields(task, now_ms()))

    def _start(self, call: Call, now: int) -> Mapping[str, Any] | None:
        """Where the page begins. Raises ProtocolError (-32602) for no cursor of this caller's."""
        cursor = call.params.get("cursor")
        if cursor is None:
            return None
        try:
            if not isinstance(cursor, str):
                raise Unsealable
            start, _ = self.cursors.open(cursor, call.principal, now)
        except Unsealable:
            raise invalid_params(
                "params.cursor is not valid or has expired; list from the beginning"
            ) from None
        return start

    def _task_id(self, call: Call) -> str:
        return self.operations.check_id(call.params.get("taskId"))


def requested_ttl_ms(call_params: Mapping[str, Any], catalogue: Catalogue) -> int | None:
    """The `ttl` that a task-augmented `tools/call` asks for, in milliseconds; None for none.

    Raises ProtocolError: -32602 for what is no `params.task`, and -32601 for a tool that runs
    within the request ("Tool-Level Negotiation").
    """
    wanted = call_params.get("task")
    if not isinstance(wanted, dict):
        raise invalid_params("params.task must be an object")
    about = call_params.get("_meta", {})
    if isinstance(about, dict) and meta.CLIENT_CAPABILITIES in about:
        raise invalid_params("params.task goes without the _meta of 2026-07-28; send one of them")
    entry = catalogue.tools.get(str(call_params.get("name")))
    if entry is not None and entry.task_support == "forbidden":
        message = f"{entry.name} cannot run as a task; call it without params.task"
        raise ProtocolError(ErrorCode.METHOD_NOT_FOUND, message)
    ttl = wanted.get("ttl")
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl >= 1:
        raise invalid_params("params.task.ttl must be a positive number of milliseconds")
    return int(min(ttl, MAX_TTL_MS))


MAX_TTL_MS: Final = 10 * 366 * 24 * 3600 * 1000
"""Longer than any tool's. A float beyond it might be too large for an integer."""
