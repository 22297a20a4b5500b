"""One change of a task, as an event carries it: the params of `notifications/tasks` (tasks.md,
"Task Status Notifications"), which are the task as `tasks/get` returned it at that moment.

An event has more members in `_meta`, which clients do not get: the task's revision, by which
changes are put in order; the names of the members that an event cannot carry; and a hash of the
session whose client has asked for the task.

Source: EventBridge API reference, "PutEvents": JSON's integers have 64 bits, its objects and arrays
at most 1,000 levels, an entry at most 256 KB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..protocol.meta import META_MEMBER
from ..tasks.caller_key import digest
from ..tasks.state import Status
from ..tasks.task import Task
from ..tasks.task_item import UnreadableRow, revision_of, task_of

REVISION: Final = "mcp-tasks/revision"
LEFT_OUT: Final = "mcp-tasks/leftOut"
SESSION: Final = "mcp-tasks/session"

MAX_DETAIL_BYTES: Final = 240_000
"""Of an event's detail. EventBridge and SQS take 256 KB, with what EventBridge adds itself."""

OMITTED_FIRST: Final = ("result", "inputRequests", "error", "statusMessage")
"""The members that are left out of a detail that is too large, in this order. They are a change's
content: all that a tool, its caller or its user has a say in."""

SMALLEST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**63 - 1
MAX_DEPTH: Final = 500
"""Levels of a member. Python's encoder takes about 1,000, as EventBridge does."""

logger = Logger()

WireFormat = Callable[[Task, int], dict[str, Any]]
"""A function that makes the params of a task's notification, at a time in milliseconds."""


@dataclass(frozen=True, slots=True)
class Change:
    """A state that a task has reached."""

    task_id: str
    revision: int
    params: dict[str, Any]
    """The notification's params, without `_meta`."""
    left_out: tuple[str, ...] = ()
    """The names of the members that the event does not carry."""
    session: str | None = None
    """The session whose client has asked for the task, as its topic (`session_topic`)."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Mailboxes that follow one of these receive it."""
        return (task_topic(self.task_id), *([self.session] if self.session else []))

    @property
    def entry_key(self) -> str:
        """Its sort key in a mailbox: one for each revision, in their order."""
        return f"{self.task_id}#{self.revision:012}"

    @property
    def terminal(self) -> bool:
        """Whether the task is completed, failed or cancelled."""
        return Status(self.params["status"]).terminal

    def detail(self) -> str:
        """The change as an event's detail (JSON), which `read_change` reads."""
        about: dict[str, Any] = {REVISION: self.revision}
        if self.left_out:
            about[LEFT_OUT] = list(self.left_out)
        if self.session:
            about[SESSION] = self.session
        return json.dumps({**self.params, META_MEMBER: about}, separators=(",", ":"))


def task_topic(task_id: str) -> str:
    """What mailboxes follow that receive the changes of a task."""
    return f"task#{task_id}"


def session_topic(session_key: str) -> str:
    """What the mailbox of a session's own stream follows: the tasks that its client asks for."""
    return f"session#{digest(session_key)[:32]}"


def change_to(task: Task, at: int, wire_format: WireFormat) -> Change:
    """The change that led to a task's current state. A result that is stored in S3 is left out."""
    params, key = wire_format(task, at), task.client_context.get("session")
    session = session_topic(str(key)) if key is not None else None
    if task.result is None and task.result_payload is not None:
        params.pop("result", None)
        return Change(task.task_id, task.revision, params, ("result",), session)
    return Change(task.task_id, task.revision, params, session=session)


def read_change(detail: Mapping[str, Any]) -> Change:
    """Read an event's detail.

    Raises KeyError, TypeError or ValueError for a detail that `Change.detail` did not write.
    """
    about = detail[META_MEMBER]
    return Change(
        task_id=detail["taskId"],
        revision=int(about[REVISION]),
        params={name: value for name, value in detail.items() if name != META_MEMBER},
        left_out=tuple(about.get(LEFT_OUT, ())),
        session=about.get(SESSION),
    )


def changes_to_publish(
    records: Iterable[Mapping[str, Any]], wire_format: WireFormat
) -> Iterator[tuple[Task, Change]]:
    """The changes among the records of the table's stream, in their order (DynamoDB developer
    guide, "Change data capture for DynamoDB Streams").

    The removal of a row, and a write that clients cannot see, are no changes. A row that no
    function of this code can have written is left out: it would hold up everybody's changes until
    the stream gives it up.
    """
    for record in records:
        images = record["dynamodb"]
        new, old = images.get("NewImage"), images.get("OldImage")
        if new is None:
            continue
        try:
            if old is not None and revision_of(new) == revision_of(old):
                continue
            task = task_of(new)
            change = fit_to_event(change_to(task, task.last_updated_at, wire_format))
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, UnreadableRow) and "schemaVersion" in new:
                raise  # of another version of this code, which a later attempt may read
            task_id = images.get("Keys", {}).get("taskId", {}).get("S")
            logger.error("A row is no task", task_id=task_id, error=type(error).__name__)
            continue
        yield task, change


def fit_to_event(change: Change) -> Change:
    """The change without the members that PutEvents would refuse, and without those that make it
    too large for an event."""
    refused = [name for name in OMITTED_FIRST if not _may_be_put(change.params.get(name))]
    change = _without(change, refused)
    for member in OMITTED_FIRST:
        if len(json.dumps(change.params, separators=(",", ":"))) <= MAX_DETAIL_BYTES:
            break
        change = _without(change, [member])
    return change


def without_content(change: Change) -> Change:
    """The change with nothing but the task's id, status and times."""
    return _without(change, OMITTED_FIRST)


def _without(change: Change, members: Sequence[str]) -> Change:
    absent = [name for name in members if change.params.get(name) is not None]
    if not absent:
        return change
    params = {name: value for name, value in change.params.items() if name not in absent}
    return replace(change, params=params, left_out=(*change.left_out, *absent))


def _may_be_put(value: Any) -> bool:
    """Whether all integers of a JSON value have 64 bits, and it is not too deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                deeper.extend(each.values())
            elif isinstance(each, list):
                deeper.extend(each)
            elif isinstance(each, int) and not SMALLEST_INTEGER <= each <= LARGEST_INTEGER:
                return False
        if not deeper:
            return True
        level = deeper
    return False
