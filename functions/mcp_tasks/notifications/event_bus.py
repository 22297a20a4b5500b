"""The stack's event bus, to which every change of a task, a resource and a list is published.

Any EventBridge rule on the bus can match the events.

A change that EventBridge refuses for good is published once more without its content: the stream
would otherwise repeat it for an hour, with everybody's later changes behind it. Whoever gets a
change without its content reads the task.

Source: EventBridge API reference, "PutEvents" and "PutEventsResultEntry" (which error codes are
retryable); user guide, "Handling failures with PutEvents".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from ..aws.errors import THROTTLING_CODES, error_code
from ..aws.xray import trace_header
from ..tasks.task import Task
from ..workflows.executions import execution_arn
from .changes import MAX_DETAIL_BYTES, Change, read_change, without_content
from .server_changes import MAX_URI_CHARACTERS, RESOURCE_UPDATED

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

SOURCE: Final = "mcp.tasks"
DETAIL_TYPE: Final = "notifications/tasks"

MAX_ENTRIES: Final = 10
"""Of one call of PutEvents."""

RETRYABLE_CODES: Final = THROTTLING_CODES | {
    "InternalException",
    "InternalFailure",
    "ServiceUnavailable",
}
"""Of an entry. An entry that was refused with another code is refused every time."""

REFUSED_CALLS: Final = frozenset(
    {"RequestEntityTooLargeException", "SerializationException", "ValidationException"}
)
"""Codes of a whole call, one of whose entries is refused every time."""

logger = Logger()


class NotPublished(Exception):
    """EventBridge did not take all events of a call. The message has its error codes."""

    def __init__(self, codes: Iterable[str]) -> None:
        super().__init__(", ".join(sorted(set(codes))))


@dataclass(frozen=True, slots=True)
class _Event:
    """An event that is to be put onto the bus."""

    entry: PutEventsRequestEntryTypeDef
    change: Change | None = None
    """What it tells of a task."""

    def without_content(self) -> _Event | None:
        """The same event with less in it; None when there is nothing to leave out."""
        if self.change is None or (less := without_content(self.change)) == self.change:
            return None
        return _Event({**self.entry, "Detail": less.detail()}, less)


class EventBus:
    """Publishes changes, those of one task in their order."""

    def __init__(self, client: EventBridgeClient, name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, changes: Iterable[tuple[Task, Change]]) -> int:
        """Publish every change, and return how many there were.

        A change that EventBridge refuses for good is published without its content. Raises
        NotPublished when EventBridge did not take some of them, and may later. It took those
        before. The stream repeats all of them, so an event comes at least once.
        """
        count = 0
        for events in _batches(_Event(self._entry(task, each), each) for task, each in changes):
            self._put(events)
            count += len(events)
        return count

    def publish_again(self, event: Mapping[str, Any]) -> None:
        """Publish what was an event on the bus. Raises NotPublished, ClientError, and KeyError for
        what was none.
        """
        detail_type, detail = event["detail-type"], event["detail"]
        entry: PutEventsRequestEntryTypeDef = {
            "EventBusName": self._name,
            "Source": event["source"],
            "DetailType": detail_type,
            "Detail": json.dumps(detail),
            "Resources": event["resources"],
            "Time": event["time"],
        }
        self._put([_Event(entry, read_change(detail) if detail_type == DETAIL_TYPE else None)])

    def announce(self, method: str, params: Mapping[str, Any]) -> None:
        """Publish a change of a resource or a list. Raises NotPublished, and ClientError."""
        response = self._client.put_events(
            Entries=[
                {
                    "EventBusName": self._name,
                    "Source": SOURCE,
                    "DetailType": method,
                    "Detail": json.dumps(dict(params)),
                }
            ]
        )
        if response["FailedEntryCount"]:
            raise NotPublished([str(response["Entries"][0].get("ErrorCode"))])

    def resource_changed(self, uri: str) -> None:
        """Announce that a resource has changed.

        An announcement that fails is logged: what the author's function has done stays done.
        Raises ValueError for what is no URI.
        """
        if not isinstance(uri, str) or not 0 < len(uri) <= MAX_URI_CHARACTERS:
            raise ValueError(f"a URI is a text of at most {MAX_URI_CHARACTERS} characters")
        try:
            self.announce(RESOURCE_UPDATED, {"uri": uri})
        except (NotPublished, BotoCoreError, ClientError) as error:
            logger.error("A change of a resource was not published", error=error_code(error))

    def _put(self, events: Sequence[_Event]) -> None:
        """Put events onto the bus, without their content those that are refused with it.

        Raises NotPublished for an event that is refused without its content: the bus or this
        function's rights are in disorder then, and whoever mends them wants the event.
        """
        less: list[_Event] = []
        for event, code in self._refused(events):
            smaller = event.without_content()
            if smaller is None or smaller.change is None:
                raise NotPublished([code])
            change = smaller.change
            logger.error(
                "EventBridge refused a change of a task; it is published without its content",
                error=code,
                task_id=change.task_id,
                revision=change.revision,
                left_out=change.left_out,
            )
            less.append(smaller)
        if less and (refused := self._refused(less)):
            raise NotPublished(code for _, code in refused)

    def _refused(self, events: Sequence[_Event]) -> list[tuple[_Event, str]]:
        """Put events onto the bus; returns those that are refused for good, with their codes.

        Raises NotPublished and ClientError for what may succeed another time.
        """
        try:
            response = self._client.put_events(Entries=[event.entry for event in events])
        except ClientError as error:
            if error_code(error) not in REFUSED_CALLS:
                raise
            if len(events) == 1:
                return [(events[0], error_code(error))]
            return [refused for event in events for refused in self._refused([event])]
        codes = [entry.get("ErrorCode") for entry in response["Entries"]]
        if retryable := [code for code in codes if code in RETRYABLE_CODES]:
            raise NotPublished(code for code in retryable if code)
        return [(event, code) for event, code in zip(events, codes, strict=True) if code]

    def _entry(self, task: Task, change: Change) -> PutEventsRequestEntryTypeDef:
        entry: PutEventsRequestEntryTypeDef = {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Detail": change.detail(),
            # A rule can match the tool, the account and the region.
            "Resources": [execution_arn(task.state_machine_arn, task.task_id)],
            "Time": datetime.fromtimestamp(task.last_updated_at / 1000, UTC),
        }
        if header := trace_header(task.client_context):
            entry["TraceHeader"] = header
        return entry


def _batches(events: Iterable[_Event]) -> Iterator[list[_Event]]:
    """Split the events into calls of PutEvents, no two events of one task in the same call.

    EventBridge may refuse an entry and take a later one of the same call.
    """
    batch: list[_Event] = []
    tasks: set[str] = set()
    size = 0
    for event in events:
        (task,), length = event.entry["Resources"], _size(event.entry)
        full = len(batch) == MAX_ENTRIES or size + length > MAX_DETAIL_BYTES
        if batch and (full or task in tasks):
            yield batch
            batch, tasks, size = [], set(), 0
        batch.append(event)
        tasks.add(task)
        size += length
    if batch:
        yield batch


def _size(entry: Mapping[str, Any]) -> int:
    """Bytes as EventBridge counts them (user guide, "PutEvents event entry size")."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"])
    return 14 + sum(len(text.encode()) for text in texts)
