"""One change of a task, as it travels: the params of `notifications/tasks` (tasks.md, "Task Status
Notifications"), that is the task as `tasks/get` gave it at that moment.

Two members of `_meta` are added on the way, and are not for clients: the task's revision, by which
changes are put in order, and the names of members that were too large to travel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..protocol.meta import RESERVED
from ..tasks.state import Status
from ..tasks.task import Task
from ..tasks.task_item import revision_of, task_of

REVISION: Final = "mcp-tasks/revision"
LEFT_OUT: Final = "mcp-tasks/leftOut"

MAX_BYTES: Final = 240_000
"""Of an event's detail. EventBridge takes 256 KB, with what it adds itself; so does SQS."""

LARGE: Final = ("result", "inputRequests", "error", "statusMessage")
"""What is left out of a detail that is too large, the first of these first."""

Shape = Callable[[Task, int], dict[str, Any]]
"""Makes a task the params of its notification, at a time in milliseconds."""


@dataclass(frozen=True, slots=True)
class Change:
    """A state that a task has reached."""

    task_id: str
    revision: int
    params: dict[str, Any]
    """The notification's params, without `_meta`."""
    left_out: tuple[str, ...] = ()
    """The members of `params` that did not fit."""

    @property
    def terminal(self) -> bool:
        """Whether the task is over."""
        return Status(self.params["status"]).terminal

    def detail(self) -> str:
        """The change as an event's detail, which `read_change` reads."""
        about: dict[str, Any] = {REVISION: self.revision}
        if self.left_out:
            about[LEFT_OUT] = list(self.left_out)
        return json.dumps({**self.params, RESERVED: about}, separators=(",", ":"))


def change_to(task: Task, at: int, shape: Shape) -> Change:
    """The change that led to a task as it is; a result that is kept elsewhere is left out."""
    params = shape(task, at)
    if task.result is None and task.result_payload is not None:
        params.pop("result", None)
        return Change(task.task_id, task.revision, params, ("result",))
    return Change(task.task_id, task.revision, params)


def read_change(detail: Mapping[str, Any]) -> Change:
    """Read an event's detail.

    Raises KeyError, TypeError or ValueError for one that `Change.detail` did not write.
    """
    about = detail[RESERVED]
    return Change(
        task_id=detail["taskId"],
        revision=int(about[REVISION]),
        params={name: value for name, value in detail.items() if name != RESERVED},
        left_out=tuple(about.get(LEFT_OUT, ())),
    )


def published(records: Iterable[Mapping[str, Any]], shape: Shape) -> Iterator[tuple[Task, Change]]:
    """The changes among a table stream's records, in their order (DynamoDB developer guide, "Change
    data capture for DynamoDB Streams").

    A write that clients cannot see, and a row's removal, is none.
    """
    for record in records:
        images = record["dynamodb"]
        new, old = images.get("NewImage"), images.get("OldImage")
        if new is None or (old is not None and revision_of(new) == revision_of(old)):
            continue
        task = task_of(new)
        yield task, fitting(change_to(task, task.last_updated_at, shape))


def fitting(change: Change) -> Change:
    """The change without what makes it too large for an event."""
    params, left_out = dict(change.params), list(change.left_out)
    for member in LARGE:
        if len(json.dumps(params, separators=(",", ":"))) <= MAX_BYTES:
            break
        if params.pop(member, None) is not None:
            left_out.append(member)
    return Change(change.task_id, change.revision, params, tuple(left_out))
