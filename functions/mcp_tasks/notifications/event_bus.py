"""The stack's event bus, where every change of every task is heard by whoever has a rule for it.

Source: EventBridge API reference, "PutEvents"; user guide, "Handling failures with PutEvents".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..tasks.task import Task
from ..workflows.executions import execution_arn
from .changes import MAX_BYTES, Change

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

SOURCE: Final = "mcp.tasks"
DETAIL_TYPE: Final = "notifications/tasks"

MAX_ENTRIES: Final = 10
"""Of one call to PutEvents."""


class NotPublished(Exception):
    """EventBridge did not take all of a call's events; the message is its error codes."""


class EventBus:
    """Puts changes onto the bus, those of one task in their order."""

    def __init__(self, client: EventBridgeClient, name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, changes: Iterable[tuple[Task, Change]]) -> int:
        """Put every change onto the bus, and return how many there were.

        Raises NotPublished when some were not taken. Those before them were; all are to be
        published again, so an event comes at least once.
        """
        count = 0
        for entries in _calls(self._entry(task, change) for task, change in changes):
            response = self._client.put_events(Entries=entries)
            if response["FailedEntryCount"]:
                codes = {e["ErrorCode"] for e in response["Entries"] if "ErrorCode" in e}
                raise NotPublished(", ".join(sorted(codes)))
            count += len(entries)
        return count

    def _entry(self, task: Task, change: Change) -> PutEventsRequestEntryTypeDef:
        return {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Detail": change.detail(),
            # Which tool it is, and in which account and region, for rules that want to know.
            "Resources": [execution_arn(task.state_machine_arn, task.task_id)],
            "Time": datetime.fromtimestamp(task.last_updated_at / 1000, UTC),
        }


def _calls(
    entries: Iterable[PutEventsRequestEntryTypeDef],
) -> Iterator[list[PutEventsRequestEntryTypeDef]]:
    """Entries in calls of their own order, no two of one task in the same call.

    Of one call, EventBridge may take a later entry and refuse an earlier one.
    """
    call: list[PutEventsRequestEntryTypeDef] = []
    tasks: set[str] = set()
    size = 0
    for entry in entries:
        (task,), length = entry["Resources"], _size(entry)
        if call and (task in tasks or len(call) == MAX_ENTRIES or size + length > MAX_BYTES):
            yield call
            call, tasks, size = [], set(), 0
        call.append(entry)
        tasks.add(task)
        size += length
    if call:
        yield call


def _size(entry: Mapping[str, Any]) -> int:
    """Bytes as EventBridge counts them (user guide, "PutEvents event entry size")."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"])
    return 14 + sum(len(text.encode()) for text in texts)
